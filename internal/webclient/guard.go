package webclient

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
)

// Allowed are where requests may go beside public addresses.
type Allowed struct {
	Networks []netip.Prefix
	// Hosts by their names in small letters, whatever addresses they have.
	Hosts []string
}

// special are addresses inside 2000::/3 and among IPv4's that are nobody's on the Internet, or stand for others (RFC
// 6890 and those after it): a request must not reach what only this machine can.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

// global is where the Internet's IPv6 addresses are: neither loopback, private, link-local and multicast ones nor those
// that carry an IPv4 address, such as NAT64's.
var global = netip.MustParsePrefix("2000::/3")

func prefixes(all ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(all))
	for i, p := range all {
		parsed[i] = netip.MustParsePrefix(p)
	}
	return parsed
}

// public reports whether an address is one of the Internet's.
func public(ip netip.Addr) bool {
	in := func(p netip.Prefix) bool { return p.Contains(ip) }
	return (ip.Is4() || global.Contains(ip)) && !slices.ContainsFunc(special, in)
}

// allows reports whether a request may go to an address.
func (a *Allowed) allows(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return public(ip) || slices.ContainsFunc(a.Networks, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// BlockedError is of an address that a request may not go to.
type BlockedError struct{ address string }

func (e *BlockedError) Error() string {
	return "the host's address " + e.address + " is not public; RETRY_WORKER_WEBHOOK_ALLOW may allow it"
}

// dial connects where that is allowed. It is looked at when the name is resolved, for each address that is tried: what
// a name stands for may change at any time.
func (a *Allowed) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: connectTime, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return &BlockedError{"that cannot be read"}
		}
		if !a.allows(to.Addr()) {
			return &BlockedError{to.Addr().String()}
		}
		return nil
	}}
	host, _, err := net.SplitHostPort(address)
	if err == nil && slices.Contains(a.Hosts, strings.ToLower(strings.TrimSuffix(host, "."))) {
		dialer.Control = nil
	}
	return dialer.DialContext(ctx, network, address)
}

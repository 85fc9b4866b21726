package web

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

const (
	// connectTime bounds one connection.
	connectTime = 10 * time.Second
	// maxHead is the bytes that are read of an answer's head.
	maxHead = 16 << 10
)

// NewClient returns a client that goes to public addresses and to those that are allowed; version is what it says it is. It
// uses no proxy, follows no redirect, and keeps no connection.
func NewClient(allowed Allowed, version string) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: agent{version, &http.Transport{
			DialContext: allowed.dial, TLSHandshakeTimeout: connectTime, MaxResponseHeaderBytes: maxHead,
			TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true, ForceAttemptHTTP2: true,
		}},
	}
}

// agent says what sends.
type agent struct {
	version string
	next    http.RoundTripper
}

func (a agent) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("User-Agent", "retry-worker/"+a.version)
	return a.next.RoundTrip(r)
}

// Allowed are where requests may go beside public addresses.
type Allowed struct {
	Networks []netip.Prefix
	// Hosts by their names in small letters, whatever addresses they have.
	Hosts []string
	// Dial connects wherever a request goes; nil: by TCP, where that is allowed.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// public lets addresses of the Internet through: no special ones (RFC 6890), and none that carry an IPv4 address.
var public = ssrf.New()

// allows reports whether a request may go to an address.
func (a *Allowed) allows(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return public.SafeAddr(ip) == nil ||
		slices.ContainsFunc(a.Networks, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// BlockedError is of an address that a request may not go to.
type BlockedError struct{ address string }

func (e *BlockedError) Error() string {
	return "the host's address " + e.address + " is not public; RETRY_WORKER_WEBHOOK_ALLOW may allow it"
}

// dial connects where that is allowed. It is looked at when the name is resolved, for each address that is tried: what
// a name stands for may change at any time.
func (a *Allowed) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if a.Dial != nil {
		return a.Dial(ctx, network, address)
	}
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

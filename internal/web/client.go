package web

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
	"go.uber.org/zap"
)

const (
	// connectTime bounds one connection.
	connectTime = 10 * time.Second
	// maxHead bounds a response's header, in bytes.
	maxHead = 16 << 10
)

// NewClient returns a client that connects to public addresses and to those that are allowed. It names version in its
// User-Agent, uses no proxy, follows no redirect, and keeps no connection.
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

// agent sets the User-Agent of each request.
type agent struct {
	version string
	next    http.RoundTripper
}

func (a agent) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("User-Agent", "retry-worker/"+a.version)
	return a.next.RoundTrip(r)
}

// Allowed says where requests may go beside public addresses.
type Allowed struct {
	Networks []netip.Prefix
	// Hosts are names in lower case, allowed whatever their addresses are.
	Hosts []string
	// Dial replaces the check and the TCP connection; it may be nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// public accepts addresses of the Internet: no special ones (RFC 6890), and no IPv6 address that embeds an IPv4 one.
var public = ssrf.New()

// allows reports whether a request may go to an address.
func (a *Allowed) allows(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return public.SafeAddr(ip) == nil ||
		slices.ContainsFunc(a.Networks, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// BlockedError reports an address that a request may not go to.
type BlockedError struct{ address string }

func (e *BlockedError) Error() string {
	return "the host's address " + e.address + " is not public; RETRY_WORKER_WEBHOOK_ALLOW may allow it"
}

// dial connects to an allowed address. It checks each address that the name resolves to just before connecting, since
// that may change at any time.
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

// probeTime bounds one probe.
const probeTime = 10 * time.Second

// NewProbe returns a function that reports whether a GET of address answers with one of the expected statuses. It does not
// read the body. If not, it logs why, naming the host alone, unless ctx was cancelled. It is safe for concurrent use.
func NewProbe(client *http.Client, log *zap.Logger) func(ctx context.Context, address string, expect []int) bool {
	return func(ctx context.Context, address string, expect []int) bool {
		ctx, cancel := context.WithTimeout(ctx, probeTime)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		if err != nil {
			log.Warn("a probe's address cannot be used", zap.String("event", "probe_failed"))
			return false
		}
		answer, err := client.Do(request)
		if u, ok := errors.AsType[*url.Error](err); ok { // it names the whole address
			err = u.Err
		}
		why := zap.Error(err)
		if err == nil {
			answer.Body.Close()
			if slices.Contains(expect, answer.StatusCode) {
				return true
			}
			why = zap.Int("status", answer.StatusCode)
		}
		if !errors.Is(ctx.Err(), context.Canceled) {
			log.Warn("a probe failed", zap.String("event", "probe_failed"), zap.String("host", request.URL.Host), why)
		}
		return false
	}
}

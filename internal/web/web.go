// Package web serves handlers on ports with bounded connections, times and sizes, and makes requests to the addresses
// that policies name: webhooks, and probes of destinations.
package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
	"go.uber.org/zap"

	"retry-worker/internal/smallfile"
)

// Server serves one handler on one port.
type Server struct {
	what     string
	http     *http.Server
	listener net.Listener
	served   chan struct{} // closed when serving has ended
}

// Opener opens an address to listen on, as [net.Listen] does.
type Opener func(network, address string) (net.Listener, error)

// Listen opens addr (host:port; port 0 picks one) and serves handler in the background until Close: over TLS with c, in
// plain text if c is nil. Errors name what is served and the setting that holds its address.
func Listen(open Opener, addr, what, setting string, handler http.Handler, c Certificate, peers Peers) (*Server, error) {
	listener, err := open("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w; choose another %s", what, err, setting)
	}
	s := &Server{what: what, listener: listener, served: make(chan struct{}), http: &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
		// These bound a connection's memory: the defaults allow megabytes, and hundreds of streams. Browsers open six
		// connections at once over HTTP/1.1.
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 6, MaxReadFrameSize: 16 << 10,
			MaxReceiveBufferPerConnection: 64 << 10, MaxReceiveBufferPerStream: 32 << 10},
	}}
	(&guard{peers: peers, from: map[net.Conn]netip.Prefix{}}).watch(s.http)
	serve := s.http.Serve
	if c != nil {
		s.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, CipherSuites: authenticated,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c(), nil }}
		s.http.ErrorLog = log.New(io.Discard, "", 0) // it would have a line for each scanner that speaks no TLS
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	go func() {
		defer close(s.served)
		_ = serve(s.listener) // returns when Close is called
	}()
	return s, nil
}

// Addr returns the address that s listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close stops serving and frees the port. It cuts off requests that outlast ctx, which is no error: a silent client
// must not make a clean stop fail. Idempotent.
func (s *Server) Close(ctx context.Context) error {
	// A server closed before it began to serve frees its port a moment later.
	defer func() { <-s.served }()
	if s.http.Shutdown(ctx) == nil {
		return nil
	}
	if err := s.http.Close(); err != nil {
		return fmt.Errorf("stop serving %s: %w", s.what, err)
	}
	return nil
}

// Certificate returns the certificate that a TLS server presents now.
type Certificate = func() *tls.Certificate

// OpenCertificate reads a certificate, with its intermediate authorities, and its key from two PEM files. The watcher
// reads them again when they change, so a renewed certificate needs no restart. The error is one line that names the
// file.
func OpenCertificate(certFile, keyFile string) (*smallfile.Watcher[tls.Certificate], error) {
	return smallfile.Watch(certFile,
		func(path string) ([]byte, error) { return smallfile.ReadPair(path, keyFile) },
		func(path string, pair []byte) (*tls.Certificate, error) {
			return smallfile.ParsePair(path, keyFile, pair)
		})
}

// authenticated lists the TLS 1.2 cipher suites with authenticated encryption (AEAD) and forward secrecy. All suites of
// TLS 1.3 have both.
var authenticated = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

const (
	// mostConnections bounds one port's open connections, so that they leave file descriptors to the rest of the
	// process.
	mostConnections = 1000
	// mostOfOneAddress is enough for many people behind one address: a browser opens six, and idle ones make room.
	mostOfOneAddress = 100
)

// Peers says which peers are trusted, and whom to tell of crowding. The zero value trusts nobody and tells nobody.
type Peers struct {
	// Proxies may open more than mostOfOneAddress, and their X-Forwarded-For is believed: it becomes a request's
	// RemoteAddr.
	Proxies []netip.Prefix
	// Crowded is called for each connection that finds no place free. It may be nil, and must not block.
	Crowded func(netip.Addr)
}

// guard keeps peers from occupying a server. When it is full, or a network has its share, it closes the connection that
// has been longest without a request marked by Keep; if all have one, it closes the new one. Safe for concurrent use.
type guard struct {
	peers Peers

	mu    sync.Mutex
	from  map[net.Conn]netip.Prefix // the network of each open connection
	spare []net.Conn                // those that may be closed, the oldest in front
}

// watch makes g follow the connections of s, link each request to its own, and believe the proxies' header.
func (g *guard) watch(s *http.Server) {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, keepKey{}, func() { g.setSpare(c, false) })
	}
	s.ConnState = func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			g.admit(c)
		case http.StateIdle: // the answer has been sent
			g.setSpare(c, true)
		case http.StateClosed, http.StateHijacked:
			g.mu.Lock()
			defer g.mu.Unlock()
			g.drop(c)
		}
	}
	next := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 {
			// net/http removes a Content-Length beside it, so what follows may be a smuggled request.
			w.Header().Set("Connection", "close")
		}
		if from := g.client(r); from.IsValid() {
			r.RemoteAddr = netip.AddrPortFrom(from, 0).String()
		}
		next.ServeHTTP(w, r)
	})
}

// admit counts a new connection if there is room or room can be made, and closes it otherwise.
func (g *guard) admit(c net.Conn) {
	peer := Address(c.RemoteAddr().String())
	network, share := Network(peer), 0
	var crowd func(net.Conn) bool // those of which one must give way; nil if there is room
	defer func() {
		if crowd != nil && g.peers.Crowded != nil {
			g.peers.Crowded(peer)
		}
	}()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.from {
		if n == network {
			share++
		}
	}
	if share >= mostOfOneAddress && !within(g.peers.Proxies, peer) {
		crowd = func(o net.Conn) bool { return g.from[o] == network }
	} else if len(g.from) >= mostConnections {
		crowd = func(net.Conn) bool { return true }
	}
	if crowd == nil || g.makeRoom(crowd) {
		g.from[c], g.spare = network, append(g.spare, c)
	} else {
		cut(c)
	}
}

// makeRoom closes the oldest spare connection among those, and reports whether there was one.
func (g *guard) makeRoom(those func(net.Conn) bool) bool {
	n := slices.IndexFunc(g.spare, those)
	if n < 0 {
		return false
	}
	c := g.spare[n]
	g.drop(c)
	cut(c)
	return true
}

// cut closes a connection without the farewell of TLS, for which a peer could let it wait.
func cut(c net.Conn) {
	if t, is := c.(*tls.Conn); is {
		c = t.NetConn()
	}
	_ = c.Close()
}

// drop stops counting a connection.
func (g *guard) drop(c net.Conn) {
	g.keep(c)
	delete(g.from, c)
}

// keep takes a connection out of those that may be closed.
func (g *guard) keep(c net.Conn) {
	g.spare = slices.DeleteFunc(g.spare, func(o net.Conn) bool { return o == c })
}

// setSpare records whether a connection may be closed for another.
func (g *guard) setSpare(c net.Conn, is bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keep(c)
	if _, open := g.from[c]; is && open {
		g.spare = append(g.spare, c)
	}
}

type keepKey struct{}

// Keep marks a request as authenticated: its connection is not closed in favour of another until it is
// answered. Keep does nothing for a request that no Server of this package serves.
func Keep(r *http.Request) {
	if keep, is := r.Context().Value(keepKey{}).(func()); is {
		keep()
	}
}

// client returns the client that a proxy asks for: the last address of X-Forwarded-For that is no proxy's. It returns
// the zero address if there is none, or if the peer is no proxy, since anybody can send that header.
func (g *guard) client(r *http.Request) netip.Addr {
	if !within(g.peers.Proxies, Address(r.RemoteAddr)) {
		return netip.Addr{}
	}
	for _, hop := range slices.Backward(strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")) {
		if a, _ := netip.ParseAddr(strings.TrimSpace(hop)); !within(g.peers.Proxies, a.Unmap()) {
			return a
		}
	}
	return netip.Addr{}
}

func within(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Address returns the address in a request's RemoteAddr, or the zero one if it is not an address and port.
func Address(remoteAddr string) netip.Addr {
	at, _ := netip.ParseAddrPort(remoteAddr)
	return at.Addr().Unmap().WithZone("")
}

// Network returns what counts as one peer: an IPv4 address, or an IPv6 /64, of which one machine may use every address.
// It returns the zero prefix for the zero address.
func Network(a netip.Addr) netip.Prefix {
	p, _ := a.Prefix(min(64, a.BitLen()))
	return p
}

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
	return public.SafeAddr(ip) == nil || within(a.Networks, ip)
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

// NewProbe returns a function that reports whether a GET of address answers with one of the expected statuses. It does
// not read the body. If not, it logs why, naming the host alone, unless ctx was cancelled. It is safe for concurrent
// use.
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

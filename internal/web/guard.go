package web

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

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

// guard is a listener that no peer can occupy. When it is full, or a network has its share, it closes the connection
// that has been longest without a request marked by Keep; if all have one, it refuses the new one. Safe for concurrent
// use.
type guard struct {
	net.Listener
	peers Peers

	mu    sync.Mutex
	count int
	of    map[netip.Prefix]int // each network's share of count
	spare []*conn              // those that may be closed, the oldest in front
}

// conn is a connection that the guard let in.
type conn struct {
	net.Conn
	guard  *guard
	from   netip.Prefix
	closed bool
}

// Accept returns the next connection that admit lets in, and closes the others.
func (g *guard) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := Address(c.RemoteAddr().String())
		t := &conn{Conn: c, guard: g, from: Network(peer)}
		admitted, crowded := g.admit(t, within(g.peers.Proxies, peer))
		if crowded && g.peers.Crowded != nil {
			g.peers.Crowded(peer)
		}
		if admitted {
			return t, nil
		}
		_ = c.Close() // nothing was sent yet
	}
}

// admit counts a connection if there is room or room can be made; crowded reports whether there was none.
func (g *guard) admit(t *conn, proxy bool) (admitted, crowded bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of[t.from] >= mostOfOneAddress && !proxy {
		if crowded = true; !g.makeRoom(func(o *conn) bool { return o.from == t.from }) {
			return false, true
		}
	}
	if g.count >= mostConnections {
		if crowded = true; !g.makeRoom(func(*conn) bool { return true }) {
			return false, true
		}
	}
	g.count++
	g.of[t.from]++
	g.spare = append(g.spare, t)
	return true, crowded
}

// makeRoom closes the oldest spare connection among those, and reports whether there was one.
func (g *guard) makeRoom(those func(*conn) bool) bool {
	n := slices.IndexFunc(g.spare, those)
	if n < 0 {
		return false
	}
	t := g.spare[n]
	g.drop(t)
	_ = t.Conn.Close()
	return true
}

// drop stops counting a connection.
func (g *guard) drop(t *conn) {
	if t.closed {
		return
	}
	t.closed = true
	g.keep(t)
	g.count--
	if g.of[t.from]--; g.of[t.from] == 0 {
		delete(g.of, t.from)
	}
}

// keep takes a connection out of those that may be closed.
func (g *guard) keep(t *conn) {
	g.spare = slices.DeleteFunc(g.spare, func(o *conn) bool { return o == t })
}

// Close closes the connection and frees its place. Idempotent.
func (t *conn) Close() error {
	t.guard.mu.Lock()
	t.guard.drop(t)
	t.guard.mu.Unlock()
	return t.Conn.Close()
}

// setSpare records whether a connection may be closed for another.
func (t *conn) setSpare(is bool) {
	t.guard.mu.Lock()
	defer t.guard.mu.Unlock()
	t.guard.keep(t)
	if is && !t.closed {
		t.guard.spare = append(t.guard.spare, t)
	}
}

// Keep marks a request as coming from somebody who is let in: its connection is not closed for another until it is
// answered. Keep does nothing for a request that no Server of this package serves.
func Keep(r *http.Request) {
	if t, is := r.Context().Value(connKey{}).(*conn); is {
		t.setSpare(false)
	}
}

type connKey struct{}

// connOf returns the guard's connection under c, with TLS or without.
func connOf(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return c.(*conn)
}

// watch makes s report idle connections, link each request to its connection, and believe the proxies' header.
func (g *guard) watch(s *http.Server) {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, connOf(c))
	}
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateIdle { // the answer has been sent
			connOf(c).setSpare(true)
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

package web

import (
	"container/list"
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
	// mostConnections of one port at once: who opens many takes no file from the rest of the process, and none from
	// another port.
	mostConnections = 1000
	// mostOfOneAddress are enough for many people behind one: a browser opens six, and idle ones make room.
	mostOfOneAddress = 100
)

// Peers are who may connect. The zero value trusts nobody and tells nobody.
type Peers struct {
	// Proxies have no share of their own of the connections, and are believed whom they ask for: their requests'
	// RemoteAddr is that client's.
	Proxies []netip.Prefix
	// Crowded is called for a connection that comes where there is no place left; nil: nothing is. It must not block.
	Crowded func(netip.Addr)
}

// guard is a listener of which no peer gets all. Where it is full, or a network has its share, the connection that has
// been idle longest, or has served nobody's request that Keep knows for longest, is closed for the new one: who dawdles
// keeps nobody out. Where there is none, the new one is. Safe for concurrent use.
type guard struct {
	net.Listener
	peers Peers

	mu    sync.Mutex
	count int
	of    map[netip.Prefix]int // each network's part of count
	spare list.List            // of *conn, those that may be closed, the oldest in front
}

// conn is a connection that the guard let in.
type conn struct {
	net.Conn
	guard  *guard
	from   netip.Prefix
	spare  *list.Element // nil while a request is kept, and at the end
	closed bool
}

// Accept returns the next connection that there is room for.
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
		_ = c.Close() // nothing was said yet
	}
}

// admit counts a connection where there is room; crowded reports whether room had to be made.
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
	t.spare = g.spare.PushBack(t)
	return true, crowded
}

// makeRoom closes the oldest of those connections that may be closed, and reports whether there was one.
func (g *guard) makeRoom(those func(*conn) bool) bool {
	for e := g.spare.Front(); e != nil; e = e.Next() {
		if t := e.Value.(*conn); those(t) {
			g.drop(t)
			_ = t.Conn.Close()
			return true
		}
	}
	return false
}

// drop counts a connection no longer.
func (g *guard) drop(t *conn) {
	if t.closed {
		return
	}
	t.closed = true
	t.unqueue()
	g.count--
	if g.of[t.from]--; g.of[t.from] == 0 {
		delete(g.of, t.from)
	}
}

func (t *conn) unqueue() {
	if t.spare != nil {
		t.guard.spare.Remove(t.spare)
		t.spare = nil
	}
}

// Close closes the connection and frees its place. Idempotent.
func (t *conn) Close() error {
	t.guard.mu.Lock()
	t.guard.drop(t)
	t.guard.mu.Unlock()
	return t.Conn.Close()
}

// setSpare notes whether a connection may be closed for another.
func (t *conn) setSpare(is bool) {
	t.guard.mu.Lock()
	defer t.guard.mu.Unlock()
	t.unqueue()
	if is && !t.closed {
		t.spare = t.guard.spare.PushBack(t)
	}
}

// Keep says that a request is of somebody who may come in: until it is answered, its connection is not closed for
// another. It does nothing for a request that no Server of this package serves.
func Keep(r *http.Request) {
	if t, is := r.Context().Value(connKey{}).(*conn); is {
		t.setSpare(false)
	}
}

type connKey struct{}

// connOf returns the guard's connection that a server speaks to, by TLS or without.
func connOf(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return c.(*conn)
}

// watch has a server say which connections are idle, and whose requests they are.
func (g *guard) watch(s *http.Server) {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, connOf(c))
	}
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateIdle { // what was answered has been sent
			connOf(c).setSpare(true)
		}
	}
	next := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 {
			// A Content-Length may have stood beside it, which net/http takes out: what follows may be smuggled.
			w.Header().Set("Connection", "close")
		}
		if from := g.client(r); from.IsValid() {
			r.RemoteAddr = netip.AddrPortFrom(from, 0).String()
		}
		next.ServeHTTP(w, r)
	})
}

// client returns whom a proxy asks for: the last address of X-Forwarded-For that is no proxy's. It is the zero one
// where that is not known, and where the peer is no proxy, since anybody can send that header.
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

// Address returns the one of a request's RemoteAddr; the zero one for what is no address and port.
func Address(remoteAddr string) netip.Addr {
	at, _ := netip.ParseAddrPort(remoteAddr)
	return at.Addr().Unmap().WithZone("")
}

// Network returns what counts as one peer: an IPv4 address, or the network of 64 bits of which a machine has all IPv6
// addresses; the zero one for the zero address.
func Network(a netip.Addr) netip.Prefix {
	p, _ := a.Prefix(min(64, a.BitLen()))
	return p
}

package testkit

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// Network is a network in memory. Waiting on it blocks durably in a bubble of testing/synctest. Its connections are
// net.Pipe's: with bufconn's, a deadline may pass after it was withdrawn.
type Network struct {
	mu        sync.Mutex
	lastPort  int
	listeners map[string]*listener
}

// NewNetwork returns a network on which nobody listens.
func NewNetwork() *Network { return &Network{lastPort: 30_000, listeners: map[string]*listener{}} }

// Listen listens at an address, as [net.Listen] does.
func (n *Network) Listen(_, address string) (net.Listener, error) {
	to, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if to.Port == 0 {
		to.Port = n.port()
	}
	l := &listener{address: to, coming: make(chan net.Conn), closed: make(chan struct{})}
	l.end = sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.listeners, to.String())
		close(l.closed)
	})
	n.listeners[to.String()] = l
	return l, nil
}

// port returns a free port; n.mu is held.
func (n *Network) port() int {
	n.lastPort++
	return n.lastPort
}

// Dial connects to a listener.
func (n *Network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l, from := n.listeners[address], &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: n.port()}
	n.mu.Unlock()
	if l != nil {
		near, far := net.Pipe()
		select {
		case l.coming <- &conn{far, l.address, from}:
			return &conn{near, from, l.address}, nil
		case <-l.closed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
}

// Client returns a client of this network.
func (n *Network) Client() http.Client {
	return http.Client{Transport: &http.Transport{DialContext: n.Dial, DisableKeepAlives: true}}
}

// listener listens at an address.
type listener struct {
	address *net.TCPAddr
	coming  chan net.Conn
	closed  chan struct{}
	end     func()
}

func (l *listener) Addr() net.Addr { return l.address }

func (l *listener) Close() error {
	l.end()
	return nil
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.coming:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// conn is a connection that knows the addresses of its ends.
type conn struct {
	net.Conn
	local, remote net.Addr
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

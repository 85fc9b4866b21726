package bubble

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// Network is one in memory: whoever waits on it is blocked for the bubble, too.
type Network struct {
	mu        sync.Mutex
	lastPort  int
	listeners map[string]*listener
}

// Listen opens an address as [net.Listen] does.
func (n *Network) Listen(_, address string) (net.Listener, error) {
	to, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if to.Port == 0 {
		n.lastPort++
		to.Port = n.lastPort
	}
	l := &listener{network: n, address: to, coming: make(chan net.Conn), closed: make(chan struct{})}
	if n.listeners[to.String()] != nil {
		return nil, fmt.Errorf("listen on %s: %w", to, syscall.EADDRINUSE)
	}
	n.listeners[to.String()] = l
	return l, nil
}

// Dial connects to an address that somebody listens on.
func (n *Network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.lastPort++
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: n.lastPort}
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
	}
	near, far := net.Pipe()
	select {
	case l.coming <- &conn{far, l.address, from}:
		return &conn{near, from, l.address}, nil
	case <-l.closed:
		return nil, fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Client returns a client that asks by the network.
func (n *Network) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: n.Dial, DisableKeepAlives: true}}
}

// listener is an open address.
type listener struct {
	network *Network
	address *net.TCPAddr
	coming  chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func (l *listener) Addr() net.Addr { return l.address }

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.coming:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		defer l.network.mu.Unlock()
		delete(l.network.listeners, l.address.String())
		close(l.closed)
	})
	return nil
}

// conn is a connection with the addresses of its ends.
type conn struct {
	net.Conn
	local, remote net.Addr
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

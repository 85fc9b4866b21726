package gateway

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/test/bufconn"
)

// network is what a gateway's connections have in common: they can be frozen and cut.
type network struct {
	addr     string
	release  func()
	accepted atomic.Int64

	mu     sync.Mutex
	open   map[*conn]bool
	frozen chan struct{} // closed at the thaw; nil while nothing is frozen
	memory *bufconn.Listener
	listen func() (net.Listener, error)
}

func newNetwork(inMemory bool) (*network, error) {
	n := &network{open: map[*conn]bool{}, addr: "passthrough:///memory", release: func() {}}
	n.listen = func() (net.Listener, error) {
		memory := bufconn.Listen(1 << 16)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.memory = memory
		return &listener{Listener: memory, network: n}, nil
	}
	if inMemory {
		return n, nil
	}
	port, err := reservePort()
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	n.addr, n.release = port.addr, port.release
	n.listen = func() (net.Listener, error) {
		l, err := net.Listen("tcp", n.addr)
		return &listener{Listener: l, network: n}, err
	}
	return n, nil
}

// listener accepts a network's connections.
type listener struct {
	net.Listener
	network *network
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.network.wrap(c), nil
}

func (n *network) dial(ctx context.Context) (net.Conn, error) {
	n.mu.Lock()
	memory := n.memory
	n.mu.Unlock()
	return memory.DialContext(ctx)
}

// conn is a connection that stands still while its network is frozen. It is its own remote address, by which gRPC
// tells a call where it came from.
type conn struct {
	net.Conn
	network *network
	name    string
	closed  chan struct{}
	close   func()
}

func (n *network) wrap(accepted net.Conn) *conn {
	c := &conn{Conn: accepted, network: n, name: fmt.Sprintf("connection %d", n.accepted.Add(1)), closed: make(chan struct{})}
	c.close = sync.OnceFunc(func() {
		close(c.closed)
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.open, c)
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[c] = true
	return c
}

func (c *conn) RemoteAddr() net.Addr { return c }
func (c *conn) Network() string      { return "tcp" }
func (c *conn) String() string       { return c.name }

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.thawed()
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	c.thawed()
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	c.close()
	return c.Conn.Close()
}

// isClosed reports whether the connection was cut; none, as of a call that the test makes itself, never is.
func (c *conn) isClosed() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// thawed waits while the network is frozen.
func (c *conn) thawed() {
	c.network.mu.Lock()
	frozen := c.network.frozen
	c.network.mu.Unlock()
	if frozen == nil {
		return
	}
	select {
	case <-frozen:
	case <-c.closed:
	}
}

func (n *network) freeze() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.frozen = make(chan struct{})
}

func (n *network) thaw() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frozen != nil {
		close(n.frozen)
		n.frozen = nil
	}
}

func (n *network) connections() []*conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.open))
}

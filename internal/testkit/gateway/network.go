package gateway

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	"google.golang.org/grpc/test/bufconn"
)

// network is what a gateway's connections have in common: they have names, and can be cut.
type network struct {
	addr    string
	release func()
	listen  func() (net.Listener, error)

	mu       sync.Mutex
	accepted int // connections there ever were
	open     map[*conn]bool
	memory   *bufconn.Listener
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
	var err error
	if n.addr, n.release, err = reservePort(); err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
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
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n := l.network
	n.mu.Lock()
	defer n.mu.Unlock()
	n.accepted++
	c := &conn{accepted, n, fmt.Sprintf("connection %d", n.accepted)}
	n.open[c] = true
	return c, nil
}

func (n *network) dial(ctx context.Context) (net.Conn, error) {
	n.mu.Lock()
	memory := n.memory
	n.mu.Unlock()
	return memory.DialContext(ctx)
}

// conn is a connection that is its own remote address, by which gRPC tells a call where it came from.
type conn struct {
	net.Conn
	network *network
	name    string
}

func (c *conn) RemoteAddr() net.Addr { return c }
func (c *conn) Network() string      { return "tcp" }
func (c *conn) String() string       { return c.name }

func (c *conn) Close() error {
	c.network.mu.Lock()
	delete(c.network.open, c)
	c.network.mu.Unlock()
	return c.Conn.Close()
}

// isClosed reports whether the connection was cut; none, as of a call that the test makes itself, never is.
func (c *conn) isClosed() bool {
	if c == nil {
		return false
	}
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	return !c.network.open[c]
}

func (n *network) connections() []*conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.open))
}

package gatewaytest

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// network is what a gateway's connections have in common: they can be counted,
// frozen and cut.
type network struct {
	frozen   atomic.Pointer[chan struct{}] // closed at the thaw; nil while nothing is frozen
	accepted atomic.Int64

	cutOff func(callers ...string) // told of connections that the gateway cuts

	mu   sync.Mutex
	open map[*conn]struct{}
}

// listener accepts connections of a network.
type listener struct {
	net.Listener
	network *network
}

func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.network.wrap(accepted), nil
}

func (n *network) wrap(accepted net.Conn) *conn {
	c := &conn{Conn: accepted, network: n, closed: make(chan struct{})}
	name := fmt.Sprintf("%s#%d", accepted.RemoteAddr(), n.accepted.Add(1)) // ports are used again
	c.peer = &peerAddr{Addr: accepted.RemoteAddr(), name: name, conn: c}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[c] = struct{}{}
	return c
}

// conn is a connection that stands still while its network is frozen.
type conn struct {
	net.Conn
	network *network
	peer    *peerAddr
	closed  chan struct{}
	once    sync.Once
}

// peerAddr is what a call knows of its connection. gRPC hands it on as the
// peer's address, so a handler finds its connection without any look-up.
type peerAddr struct {
	net.Addr
	name string
	conn *conn
}

func (c *conn) RemoteAddr() net.Addr { return c.peer }

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.thawed()
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	c.thawed()
	return c.Conn.Write(b)
}

// thawed waits while the network is frozen.
func (c *conn) thawed() {
	for {
		ice := c.network.frozen.Load()
		if ice == nil {
			return
		}
		select {
		case <-*ice:
		case <-c.closed:
			return
		}
	}
}

func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.network.mu.Lock()
		defer c.network.mu.Unlock()
		delete(c.network.open, c)
	})
	return c.Conn.Close()
}

func (n *network) freeze() {
	ice := make(chan struct{})
	n.frozen.CompareAndSwap(nil, &ice)
}

func (n *network) thaw() {
	if ice := n.frozen.Swap(nil); ice != nil {
		close(*ice)
	}
}

// drop closes all connections, without a word to the peers.
func (n *network) drop() {
	n.mu.Lock()
	all := slices.Collect(maps.Keys(n.open))
	n.mu.Unlock()
	n.cut(all...)
}

// cut closes connections of the gateway's own accord.
func (n *network) cut(all ...*conn) {
	var callers []string
	for _, c := range all {
		callers = append(callers, c.peer.name)
		_ = c.Close()
	}
	n.cutOff(callers...)
}

func (n *network) connections() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.open)
}

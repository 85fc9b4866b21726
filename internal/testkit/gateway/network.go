package gateway

import (
	"context"
	"fmt"
	"net"
	"syscall"
)

// listen begins to take connections.
func (g *Gateway) listen() (net.Listener, error) {
	if !g.options.InMemory {
		l, err := net.Listen("tcp", g.addr)
		return listener{l, g}, err
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &memory{make(chan net.Conn), ctx, stop}
	g.change(func() { g.memory = m })
	return listener{m, g}, nil
}

// memory is a listener for [Gateway.Dial]. Its connections are net.Pipe's: a deadline of bufconn's may pass after it was
// taken back.
type memory struct {
	dialed chan net.Conn
	ctx    context.Context // ends with it
	stop   func()
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.dialed:
		return c, nil
	case <-m.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (m *memory) Addr() net.Addr { return conn{name: "memory"} }

func (m *memory) Close() error {
	m.stop()
	return nil
}

// Dial connects to an InMemory gateway, whatever the address.
func (g *Gateway) Dial(ctx context.Context, _ string) (net.Conn, error) {
	g.mu.Lock()
	m := g.memory
	g.mu.Unlock()
	client, server := net.Pipe()
	select {
	case m.dialed <- server:
		return client, nil
	case <-m.ctx.Done():
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cut closes a connection, or all of them where it has no name. What was acknowledged by it may not have arrived.
func (g *Gateway) cut(which string) {
	g.change(func() {
		for name, c := range g.connections {
			if c != nil && (name == which || which == "") {
				_ = c.Close()
				g.connections[name] = nil
			}
		}
		for _, j := range g.jobs {
			for _, a := range j.answers {
				a.Acked = a.Acked && g.arrives(a.from)
			}
		}
	})
}

// arrives reports whether what is answered by a connection may arrive; it does where the test makes the call itself.
func (g *Gateway) arrives(from string) bool { return from == "" || g.connections[from] != nil }

// listener gives its connections names.
type listener struct {
	net.Listener
	gateway *Gateway
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	name := ""
	l.gateway.change(func() {
		name = fmt.Sprintf("connection %d", len(l.gateway.connections)+1)
		l.gateway.connections[name] = c
	})
	return conn{c, name}, nil
}

// conn is a connection that is its own remote address, by which a call is told where it came from.
type conn struct {
	net.Conn
	name string
}

func (c conn) RemoteAddr() net.Addr { return c }
func (c conn) Network() string      { return "tcp" }
func (c conn) String() string       { return c.name }

package gateway

import (
	"context"
	"fmt"
	"net"
)

// inMemory is the address of a gateway that is InMemory.
const inMemory = "127.0.0.1:26500"

// listen begins to take connections.
func (g *Gateway) listen() (net.Listener, error) {
	listen := net.Listen
	if g.options.InMemory {
		listen = g.network.Listen
	}
	l, err := listen("tcp", g.addr)
	return listener{l, g}, err
}

// Dial connects to an InMemory gateway.
func (g *Gateway) Dial(ctx context.Context, address string) (net.Conn, error) {
	return g.network.Dial(ctx, "tcp", address)
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

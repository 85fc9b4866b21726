package gatewaytest

import "net"

// port is a TCP port of 127.0.0.1 that stays this process's own, so that a
// server can leave it and come back.
type port struct {
	addr    string
	release func()
}

// portAt takes a port of 127.0.0.1, or the address that was asked for.
func portAt(addr string) (*port, error) {
	if addr == "" || addr == "127.0.0.1:0" {
		return reserve()
	}
	return &port{addr: addr, release: func() {}}, nil
}

// listen also settles which port ":0" is.
func (p *port) listen() (net.Listener, error) {
	l, err := net.Listen("tcp", p.addr)
	if err == nil {
		p.addr = l.Addr().String()
	}
	return l, err
}

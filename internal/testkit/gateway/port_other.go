//go:build !linux

package gateway

import "net"

// port is a TCP port of 127.0.0.1.
type port struct {
	addr    string
	release func()
}

// reservePort returns a free port. Elsewhere than on Linux nothing keeps another process from taking it while no
// server listens.
func reservePort() (*port, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &port{l.Addr().String(), func() {}}, l.Close()
}

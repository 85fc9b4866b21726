//go:build !linux

package gatewaytest

import "net"

// reserve picks a free port. Elsewhere than on Linux nothing keeps another
// process from taking it while no server listens.
func reserve() (*port, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &port{addr: l.Addr().String(), release: func() {}}, l.Close()
}

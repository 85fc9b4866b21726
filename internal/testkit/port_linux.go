package testkit

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// ReservePort binds a port of 127.0.0.1 without listening, so that a server can leave it and come back. Meanwhile
// connections are refused, and the kernel gives the port to nobody else. A server may listen there, in this process
// or another, as both set SO_REUSEADDR.
func ReservePort() (port int, release func(), err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, os.NewSyscallError("socket", err)
	}
	release = func() { _ = syscall.Close(fd) }
	set := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	bound := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	name, err := syscall.Getsockname(fd)
	if err = errors.Join(set, bound, err); err != nil {
		release()
		return 0, nil, err
	}
	return name.(*syscall.SockaddrInet4).Port, release, nil
}

// Loopback returns host:port of a port of 127.0.0.1.
func Loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// Nowhere returns an address where nobody listens during the test, unless the test does.
func Nowhere(tb testing.TB) string {
	tb.Helper()
	port, release, err := ReservePort()
	Must(tb, err)
	tb.Cleanup(release)
	return Loopback(port)
}

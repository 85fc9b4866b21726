package gateway

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// reservePort binds a port of 127.0.0.1 without listening on it, so that a server can leave it and come back: connections
// are refused while no server listens, and the kernel gives the port to nobody else. A second socket may listen there, both
// having SO_REUSEADDR.
func reservePort() (addr string, release func(), err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, os.NewSyscallError("socket", err)
	}
	release = func() { _ = syscall.Close(fd) }
	set := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	bound := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	name, err := syscall.Getsockname(fd)
	if err = errors.Join(set, bound, err); err != nil {
		release()
		return "", nil, err
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port), release, nil
}

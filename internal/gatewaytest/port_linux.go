package gatewaytest

import (
	"fmt"
	"os"
	"syscall"
)

// reserve binds a port without listening on it: connections are refused while
// no server listens, and the kernel gives the port to nobody else meanwhile.
// (On Linux a second socket may bind and listen, both having SO_REUSEADDR.)
func reserve() (*port, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	p, err := bind(fd)
	if err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	return p, nil
}

func bind(fd int) (*port, error) {
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return nil, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, os.NewSyscallError("bind", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return nil, os.NewSyscallError("getsockname", err)
	}
	bound := name.(*syscall.SockaddrInet4)
	return &port{
		addr:    fmt.Sprintf("127.0.0.1:%d", bound.Port),
		release: func() { _ = syscall.Close(fd) },
	}, nil
}

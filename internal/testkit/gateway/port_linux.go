package gateway

import (
	"fmt"
	"os"
	"syscall"
)

// port is a TCP port of 127.0.0.1 that stays this process's own, so that a server can leave it and come back.
type port struct {
	addr    string
	release func()
}

// reservePort binds a port without listening on it: connections are refused while no server listens, and the kernel
// gives the port to nobody else. A second socket may listen there, both having SO_REUSEADDR.
func reservePort() (*port, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	release := func() { _ = syscall.Close(fd) }
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		release()
		return nil, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		release()
		return nil, os.NewSyscallError("bind", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		release()
		return nil, os.NewSyscallError("getsockname", err)
	}
	return &port{fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port), release}, nil
}

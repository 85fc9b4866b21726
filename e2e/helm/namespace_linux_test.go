package helm

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// network is a pod's: a name space that holds nothing but a loopback of its own, so that the ports which the chart names
// are free there, and nothing else can be reached.
type network struct {
	path  string // of the name space, for nsenter
	calls chan func()
}

// newNetwork needs root; its error is what stood in the way.
func newNetwork(t *testing.T) (*network, error) {
	t.Helper()
	n := &network{calls: make(chan func())}
	made := make(chan error)
	go n.live(made)
	if err := <-made; err != nil {
		return nil, err
	}
	t.Cleanup(func() { close(n.calls) })
	return n, nil
}

// live makes the name space and works in it, on one thread that ends with it: no other goroutine must ever run on that.
func (n *network) live(made chan<- error) {
	runtime.LockOSThread()
	err := syscall.Unshare(syscall.CLONE_NEWNET)
	if err == nil {
		n.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", unix.Getpid(), unix.Gettid())
		err = raiseLoopback()
	}
	made <- err
	if err != nil {
		return
	}
	for call := range n.calls {
		call()
	}
}

func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if _, _, failed := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(request))); failed != 0 {
		return fmt.Errorf("raise the loopback: %w", failed)
	}
	return nil
}

// do runs call inside.
func (n *network) do(call func()) {
	done := make(chan struct{})
	n.calls <- func() { defer close(done); call() }
	<-done
}

// listen inside.
func (n *network) listen(t *testing.T, addr string) (l net.Listener) {
	t.Helper()
	var err error
	n.do(func() { l, err = net.Listen("tcp4", addr) })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// client speaks to servers inside; one address needs no other goroutine to be dialled.
func (n *network) client() *http.Client {
	dial := func(ctx context.Context, _, addr string) (c net.Conn, err error) {
		n.do(func() { c, err = (&net.Dialer{FallbackDelay: -1}).DialContext(ctx, "tcp4", addr) })
		return c, err
	}
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

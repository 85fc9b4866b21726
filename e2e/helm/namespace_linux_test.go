package helm

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"retry-worker/internal/testkit"
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

// raiseLoopback asks the kernel, by netlink, to switch interface 1 on.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	header := unix.NlMsghdr{Len: unix.SizeofNlMsghdr + unix.SizeofIfInfomsg, Type: unix.RTM_NEWLINK, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK}
	var request bytes.Buffer
	for _, part := range []any{header, unix.IfInfomsg{Index: 1, Flags: unix.IFF_UP, Change: unix.IFF_UP}} {
		if err := binary.Write(&request, binary.NativeEndian, part); err != nil {
			return err
		}
	}
	if err := unix.Sendto(fd, request.Bytes(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 1024)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < unix.SizeofNlMsghdr+4 {
		return fmt.Errorf("raise the loopback: an answer of %d bytes (%w)", n, err)
	}
	if failed := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); failed != 0 {
		return fmt.Errorf("raise the loopback: %w", syscall.Errno(-failed))
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
	testkit.Must(t, err)
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

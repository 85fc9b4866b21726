package web_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/testkit"
	"retry-worker/internal/web"
)

// patience with what must happen; nothing takes it unless something is wrong.
const patience = 20 * time.Second

func listen(t *testing.T, h http.HandlerFunc, peers web.Peers) *web.Server {
	t.Helper()
	s, err := web.Listen(net.Listen, "127.0.0.1:0", "the console", "ADDR", h, nil, peers)
	testkit.Must(t, err)
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel() // what is under way is cut
		testkit.Must(t, s.Close(ended))
	})
	return s
}

// connect from an address of this machine, and send that; what the server does not take shows when it is read.
func connect(t *testing.T, s *web.Server, from, send string) net.Conn {
	t.Helper()
	d := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.Dial("tcp", s.Addr())
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, send)
	return conn
}

// Who sends a request's head byte by byte, or nothing, is cut off after 5 s; who sends a large one, at 16 KiB and a bit.
func TestSlowAndLargeHeads(t *testing.T) {
	s := listen(t, func(http.ResponseWriter, *http.Request) { t.Error("a request that is not whole is handled") }, web.Peers{})
	const from = "127.0.0.1"
	began := time.Now()
	slow := connect(t, s, from, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
	silent := connect(t, s, from, "")
	large := connect(t, s, from, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Large: "+strings.Repeat("x", 21<<10))
	if line, _ := bufio.NewReader(large).ReadString('\n'); line != "HTTP/1.1 431 Request Header Fields Too Large\r\n" {
		t.Errorf("the large one gets %q", line)
	}
	for what, c := range map[string]net.Conn{"the slow one": slow, "the silent one": silent} {
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s still has its connection after %v", what, time.Since(began))
		}
	}
}

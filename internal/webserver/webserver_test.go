package webserver_test

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

	"retry-worker/internal/webserver"
)

// patience with what must happen; nothing takes it unless something is wrong.
const patience = 20 * time.Second

func listen(t *testing.T, h http.HandlerFunc) *webserver.Server {
	t.Helper()
	return listenTo(t, h, webserver.Peers{})
}

func listenTo(t *testing.T, h http.HandlerFunc, peers webserver.Peers) *webserver.Server {
	t.Helper()
	s, err := webserver.Listen("127.0.0.1:0", "the console", "ADDR", h, nil, peers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel() // what is under way is cut
		if err := s.Close(ended); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connect(t *testing.T, s *webserver.Server, send string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", s.Addr(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, send); err != nil {
		t.Fatal(err)
	}
	return c
}

// Who sends a request's head byte by byte, or nothing, is cut off after 5 s; who sends a large one, at 16 KiB and a bit.
func TestSlowAndLargeHeads(t *testing.T) {
	s := listen(t, func(http.ResponseWriter, *http.Request) { t.Error("a request that is not whole is handled") })
	began := time.Now()
	slow := connect(t, s, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
	silent := connect(t, s, "")
	large := connect(t, s, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Large: "+strings.Repeat("x", 21<<10))
	_ = large.SetReadDeadline(time.Now().Add(patience))
	if line, _ := bufio.NewReader(large).ReadString('\n'); line != "HTTP/1.1 431 Request Header Fields Too Large\r\n" {
		t.Errorf("the large one gets %q", line)
	}
	for what, c := range map[string]net.Conn{"the slow one": slow, "the silent one": silent} {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s still has its connection after %v", what, time.Since(began))
		}
	}
}

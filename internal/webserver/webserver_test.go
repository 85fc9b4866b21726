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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"retry-worker/internal/webserver"
)

// patience with what must happen; nothing takes it unless something is wrong.
const patience = 20 * time.Second

func listen(t *testing.T, h http.HandlerFunc) *webserver.Server {
	t.Helper()
	s, err := webserver.Listen("127.0.0.1:0", "the console", "ADDR", h, nil)
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

const request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

// A thousand connections are served at once; one more waits until another ends, and is served then.
func TestConnectionsAreBounded(t *testing.T) {
	const most = 1000
	var inside, peak atomic.Int64
	var once sync.Once
	full, release := make(chan struct{}), make(chan struct{})
	s := listen(t, func(w http.ResponseWriter, _ *http.Request) {
		n := inside.Add(1)
		defer inside.Add(-1)
		if n >= most {
			once.Do(func() { close(full) })
		}
		if n > most {
			peak.Store(n)
		}
		<-release
		w.WriteHeader(http.StatusNoContent)
	})
	for range most {
		connect(t, s, request)
	}
	select {
	case <-full:
	case <-time.After(patience):
		t.Fatalf("%d of %d connections are served", inside.Load(), most)
	}
	late := connect(t, s, request)
	_ = late.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := late.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one more gets %v, expected to wait", err)
	}
	close(release)
	_ = late.SetReadDeadline(time.Now().Add(patience))
	if line, err := bufio.NewReader(late).ReadString('\n'); line != "HTTP/1.1 204 No Content\r\n" || peak.Load() != 0 {
		t.Errorf("then it is answered %q (%v); %d were served at once, expected no more than %d", line, err, max(most, peak.Load()), most)
	}
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

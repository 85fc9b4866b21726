package metrics_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/metrics"
	"retry-worker/internal/testkit"
)

func TestProbes(t *testing.T) {
	m, url := served(t)
	readiness := &m.Readiness
	expect := func(path string, wantStatus int, wantBody string) {
		t.Helper()
		if status, body := testkit.Get(t, url+path); status != wantStatus || body != wantBody {
			t.Errorf("%s: got %d %q, want %d %q", path, status, body, wantStatus, wantBody)
		}
	}
	expect("/livez", http.StatusOK, "ok\n")
	expect("/readyz", http.StatusServiceUnavailable, "not yet\n")
	readiness.NotReady("engine", "")
	expect("/readyz", http.StatusOK, "ok\n")
	readiness.NotReady("stop", "stopping")
	expect("/readyz", http.StatusServiceUnavailable, "stopping\n")
	readiness.NotReady("journal", "disk full")
	expect("/readyz", http.StatusServiceUnavailable, "disk full; stopping\n")
	readiness.NotReady("stop", "")
	expect("/readyz", http.StatusServiceUnavailable, "disk full\n")
	readiness.NotReady("journal", "read-only")
	expect("/readyz", http.StatusServiceUnavailable, "read-only\n")
	readiness.Note("catalogue", "catalogue rejected: a; b")
	expect("/readyz", http.StatusServiceUnavailable, "read-only\ncatalogue rejected: a; b\n")
	readiness.NotReady("journal", "")
	expect("/readyz", http.StatusOK, "ok\ncatalogue rejected: a; b\n") // it works on, by what it had
	readiness.Note("catalogue", "catalogue rejected: c")
	expect("/readyz", http.StatusOK, "ok\ncatalogue rejected: c\n")
	readiness.Note("catalogue", "")
	expect("/readyz", http.StatusOK, "ok\n")
	readiness.NotReady("journal", "read-only")
	expect("/livez", http.StatusOK, "ok\n")
	expect("/", http.StatusNotFound, "404 page not found\n")
	expect("/debug/pprof/", http.StatusNotFound, "404 page not found\n")
}

func TestProbesOnlyRead(t *testing.T) {
	_, url := served(t)
	for _, path := range []string{"/metrics", "/livez", "/readyz"} {
		response, err := http.Post(url+path, "text/plain", strings.NewReader("x"))
		testkit.Must(t, err)
		response.Body.Close()
		if response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: got %s, want 405", path, response.Status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestMetricsSayTheirFormat(t *testing.T) {
	_, url := served(t)
	response, err := http.Get(url + "/metrics")
	testkit.Must(t, err)
	response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if got := response.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=0.0.4") {
		t.Errorf("got %q", got)
	}
}

// A client that never ends its request must not hold up the stop, nor make it a failure.
func TestCloseIsBounded(t *testing.T) {
	s, err := metrics.New(metrics.Build{}).Listen(net.Listen, "127.0.0.1:0", false)
	testkit.Must(t, err)
	conn, err := net.Dial("tcp", s.Addr())
	testkit.Must(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET /metrics HTTP/1.1\r\nHost"))
	testkit.Must(t, err)
	testkit.Get(t, "http://"+s.Addr()+"/livez") // answered, so the connection before it has been accepted
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := s.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(began); took > 3*time.Second { // without a bound it is 5 s
		t.Errorf("Close took %v", took)
	}
	testkit.Must(t, conn.SetReadDeadline(time.Now().Add(3*time.Second)))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is still open after Close (%v)", err)
	}
	testkit.Must(t, s.Close(context.Background())) // the second changes nothing
}

// Profiles hold what is in memory: they are served only where somebody switched them on, and there only.
func TestProfilesOnlyWhereSwitchedOn(t *testing.T) {
	for _, on := range []bool{false, true} {
		url := listen(t, metrics.New(metrics.Build{}), on)
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/goroutine?debug=1", "/debug/pprof/cmdline", "/debug/pprof/symbol", "/debug/vars"} {
			want := http.StatusNotFound
			if on && path != "/debug/vars" {
				want = http.StatusOK
			}
			if status, _ := testkit.Get(t, url+path); status != want {
				t.Errorf("switched on %v: %s answers %d, expected %d", on, path, status, want)
			}
		}
	}
}

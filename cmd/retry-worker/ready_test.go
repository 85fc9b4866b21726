package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/metrics"
	"retry-worker/internal/testkit"
)

// probes are a real server's, on a free port of host.
func probes(t *testing.T, host string) (readiness *metrics.Readiness, addr string) {
	t.Helper()
	m := metrics.New(build())
	readiness = &m.Readiness
	readiness.NotReady("engine", "the engine has not been seen yet")
	s, err := m.Listen(net.Listen, net.JoinHostPort(host, "0"), false)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Close(context.Background())) })
	return readiness, s.Addr()
}

// What listens on every interface is asked on this machine: the image's health check.
func TestReady(t *testing.T) {
	readiness, addr := probes(t, "0.0.0.0")
	_, port, err := net.SplitHostPort(addr)
	testkit.Must(t, err)
	says := func(ready bool, detail string) {
		t.Helper()
		for _, host := range []string{"0.0.0.0", "", "[::]", "127.0.0.1"} {
			testkit.Environment(t, map[string]string{"RETRY_WORKER_OPS_ADDR": host + ":" + port})
			text, object := retryWorker("ready"), retryWorker("ready", "-o", "json")
			want := result{fmt.Sprintf("detail  %s\nready   %t\n", detail, ready), "", exitDone}
			if !ready {
				want.stderr, want.code = "retry-worker: not ready: "+detail+"\n", exitFailed
			}
			if o := object.object(t); text != want || o["ready"] != ready || o["detail"] != detail || object.code != want.code || object.stderr != want.stderr {
				t.Errorf("by %s: %+v and %+v, want %+v", host, text, object, want)
			}
		}
	}
	says(false, "the engine has not been seen yet")
	readiness.NotReady("engine", "")
	says(true, "ok")
	readiness.NotReady("stop", "stopping")
	says(false, "stopping")
}

// A proxy is for the world outside. Loopback addresses Go leaves out by itself: another one of this
// machine shows whether we do.
func TestReadyUsesNoProxy(t *testing.T) {
	readiness, addr := probes(t, ownAddress(t))
	readiness.NotReady("engine", "")
	proxy := "http://" + testkit.Nowhere(t)
	testkit.Environment(t, map[string]string{
		"RETRY_WORKER_OPS_ADDR": addr, "HTTP_PROXY": proxy, "http_proxy": proxy, "NO_PROXY": "", "no_proxy": "",
	})
	// A process of its own, because Go reads the proxy's name once.
	if out, err := exec.Command(harness.Binary(t), "ready").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// ownAddress of this machine that is not loopback.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	testkit.Must(t, err)
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	t.Skip("NOT RUN: `retry-worker ready` past a proxy; it needs a network interface beside loopback")
	return ""
}

// Something else may listen there.
func TestReadyIsNotFooledByAnotherServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("220 mail.example ESMTP\r\n"))
			conn.Close()
		}
	}()
	testkit.Environment(t, map[string]string{"RETRY_WORKER_OPS_ADDR": l.Addr().String()})
	r := retryWorker("ready")
	if r.code != exitFailed || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("got %+v, want exit 1 and one line", r)
	}
}

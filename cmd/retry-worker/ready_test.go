package main

import (
	"context"
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

func TestReady(t *testing.T) {
	readiness, addr := probes(t, "127.0.0.1")
	testkit.Environment(t, map[string]string{"RETRY_WORKER_OPS_ADDR": addr})
	r := retryWorker("ready", "-o", "json")
	if o := r.object(t); o["ready"] != false || o["detail"] != "the engine has not been seen yet" || r.code != exitFailed {
		t.Errorf("not ready: got %v, exit %d", o, r.code)
	}
	r.says(t, "not ready: the engine has not been seen yet")

	readiness.Ready("engine")
	if r := retryWorker("ready"); r != (result{"detail  ok\nready   true\n", "", exitDone}) {
		t.Errorf("ready: got %+v", r)
	}
	r = retryWorker("ready", "-o", "json")
	if o := r.object(t); o["ready"] != true || r.code != exitDone || r.stderr != "" {
		t.Errorf("ready: got %v, exit %d, %q", o, r.code, r.stderr)
	}

	readiness.NotReady("stop", "stopping")
	retryWorker("ready").says(t, "not ready: stopping")
}

// What listens on every interface is asked on this machine: the image's health check.
func TestReadyOfAWorkerThatListensEverywhere(t *testing.T) {
	readiness, addr := probes(t, "0.0.0.0")
	readiness.Ready("engine")
	_, port, err := net.SplitHostPort(addr)
	testkit.Must(t, err)
	for _, host := range []string{"0.0.0.0", "", "[::]"} {
		testkit.Environment(t, map[string]string{"RETRY_WORKER_OPS_ADDR": host + ":" + port})
		retryWorker("ready").done(t)
	}
}

// A proxy is for the world outside. Loopback addresses Go leaves out by itself: another one of this
// machine shows whether we do.
func TestReadyUsesNoProxy(t *testing.T) {
	readiness, addr := probes(t, ownAddress(t))
	readiness.Ready("engine")
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

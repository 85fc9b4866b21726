package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"retry-worker/internal/app"
	"retry-worker/internal/clock"
	"retry-worker/internal/config"
	"retry-worker/internal/metrics"
	"retry-worker/internal/notify"
	"retry-worker/internal/testkit"
	"retry-worker/internal/zeebe"
)

var (
	// console is where sparse writes, in the other format.
	console = &sink{}
	sparse  = app.NewLogger(console, zapcore.WarnLevel, "console")
	// logged is where log writes; a test begins with it empty.
	logged = &sink{}
	log    = app.NewLogger(logged, zapcore.InfoLevel, "json")
)

// sink keeps what was logged. Safe for concurrent use.
type sink struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *sink) empty() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Reset()
}

// lines returns the log lines so far; each must be a JSON object.
func (s *sink) lines(t *testing.T) (all []map[string]any) {
	t.Helper()
	for text := range strings.Lines(s.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("the log line %q is no JSON object: %v", text, err)
		}
		all = append(all, line)
	}
	return all
}

// with returns the lines whose field has a value.
func (s *sink) with(t *testing.T, field string, value any) (found []map[string]any) {
	t.Helper()
	for _, line := range s.lines(t) {
		if line[field] == value {
			found = append(found, line)
		}
	}
	return found
}

// settings returns settings for a gateway in plaintext, with all bounds small.
func settings(t *testing.T, address string) config.Settings {
	t.Helper()
	return config.Settings{
		OpsAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", Retention: 24 * time.Hour, DatabaseURL: "sqlite:" + filepath.Join(t.TempDir(), "journal.db"), MaxJobsActive: 10, JobTimeout: 5 * time.Second, Concurrency: 4,
		WorkerName: "worker under test", ShutdownTimeout: 20 * time.Second,
		Engine: zeebe.Options{Address: address, Plaintext: true, KeepAlive: 45 * time.Second},
		Notify: notify.Settings{Interval: 15 * time.Minute, Zone: time.UTC},
	}
}

var buildInfo = metrics.Build{Version: "v0-test", Commit: "none", GoVersion: runtime.Version()}

// service is a running app.
type service struct {
	*app.App
	stop, kill context.CancelFunc
	done       chan error // Run's result
}

// serve starts an app, and stops it when the test ends.
func serve(t *testing.T, s config.Settings) *service {
	t.Helper()
	logged.empty()
	return serveLogging(t, s, log)
}

// serveLogging is serve with a log of its own, for parallel tests.
func serveLogging(t *testing.T, s config.Settings, log *zap.Logger) *service {
	t.Helper()
	a, err := app.New(app.Options{Settings: s, Build: buildInfo, Clock: clock.Machine{}, Log: log})
	testkit.Must(t, err)
	stop, stopNow := context.WithCancel(context.Background())
	kill, killNow := context.WithCancel(context.Background())
	r := &service{App: a, stop: stopNow, kill: killNow, done: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.done <- a.Run(stop, kill)
	}()
	t.Cleanup(func() {
		stopNow()
		killNow()
		<-ended
	})
	return r
}

// returned fails the test unless Run returns within atMost and leaves no job behind.
func (r *service) returned(t *testing.T, atMost time.Duration) {
	t.Helper()
	select {
	case err := <-r.done:
		testkit.Must(t, err)
	case <-time.After(atMost):
		t.Fatalf("Run has not returned after %v; goroutines:\n%s", atMost, stacks())
	}
}

func (r *service) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	return testkit.Get(t, "http://"+r.OpsAddr()+path)
}

func (r *service) ready(t *testing.T) bool {
	t.Helper()
	status, _ := r.get(t, "/readyz")
	return status == http.StatusOK
}

// metric reports whether the exposition holds the line.
func (r *service) metric(t *testing.T, line string) bool {
	t.Helper()
	_, text := r.get(t, "/metrics")
	return strings.Contains(text, "\n"+line+"\n")
}

// leavesNothing fails the test if more goroutines run at its end than now. Call it first: what is registered later is
// cleaned up before it looks.
func leavesNothing(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; <-tick.C {
			if time.Now().After(deadline) {
				t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks())
			}
		}
	})
}

func stacks() string {
	var b strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return err.Error()
	}
	return b.String()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/api"
	"retry-worker/internal/app"
	"retry-worker/internal/config"
	"retry-worker/internal/metrics"
)

const (
	// portTries is how many ports are tried where the usual one is taken.
	portTries = 100
	// opsAbove is how far the port of metrics and probes is above the console's.
	opsAbove = 1000
	askTime  = 5 * time.Second
)

// worker is the service as `retry-worker serve` runs it, in this process: only so its clock can be moved.
type worker struct {
	app  *app.App
	log  *os.File
	stop func() // returns when it has stopped
}

// startWorker starts the worker, whose end before its time is a failure.
func (s *session) startWorker(gateway string, fail context.CancelCauseFunc) (*worker, error) {
	log, err := os.Create(filepath.Join(s.folder, "worker.log"))
	if err != nil {
		return nil, fmt.Errorf("make a log: %w", err)
	}
	w := &worker{log: log}
	if w.app, err = s.newApp(gateway, log); err != nil {
		return nil, fmt.Errorf("start the worker: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	w.stop = func() {
		cancel()
		<-ended
	}
	go func() {
		defer close(ended)
		err := w.app.Run(ctx, s.hard)
		fail(fmt.Errorf("the worker ended too early (%w); see %s, and run it again", err, log.Name()))
	}()
	s.screen.row("Worker", "up, at %s; its log: %s", w.console(), log.Name())
	return w, nil
}

// newApp listens at the usual ports, or at the next that are free.
func (s *session) newApp(gateway string, log io.Writer) (a *app.App, err error) {
	for port := s.port; port < s.port+portTries; port++ {
		var settings config.Settings
		if settings, err = s.settings(gateway, port); err != nil {
			return nil, err
		}
		lines := app.NewLogger(log, settings.LogLevel, settings.LogFormat).WithOptions(zap.WithClock(s.clock))
		a, err = app.New(settings, metrics.Build{Version: "make run"}, s.clock, lines)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return a, err
		}
		s.screen.row("Port", "%d or %d is taken", port, port+opsAbove)
	}
	return nil, err
}

// settings of the worker. Whatever this process's environment says for another engine or worker is left out: a demo must
// not touch somebody's database.
func (s *session) settings(gateway string, port int) (config.Settings, error) {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "ZEEBE_") || strings.HasPrefix(name, "RETRY_WORKER_") || strings.HasPrefix(name, "OTEL_") {
			os.Unsetenv(name)
		}
	}
	for name, value := range map[string]string{
		"ZEEBE_ADDRESS": gateway, "ZEEBE_INSECURE_CONNECTION": "true", "RETRY_WORKER_SHUTDOWN_TIMEOUT": "10s",
		"RETRY_WORKER_HTTP_ADDR": fmt.Sprintf("127.0.0.1:%d", port), "RETRY_WORKER_OPS_ADDR": fmt.Sprintf("127.0.0.1:%d", port+opsAbove),
		"RETRY_WORKER_DATABASE_URL": s.database(),
	} {
		if err := os.Setenv(name, value); err != nil {
			return config.Settings{}, err
		}
	}
	return config.Load()
}

// console is where people and programs reach the worker.
func (w *worker) console() string { return "http://" + w.app.HTTPAddr() }

// client asks the worker's API, through no proxy.
func (w *worker) client() *api.Client {
	return &api.Client{Base: w.console(), Client: http.Client{Timeout: askTime, Transport: &http.Transport{}}}
}

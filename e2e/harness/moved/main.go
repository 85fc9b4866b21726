// Command moved is `retry-worker serve` with a clock that tests can move, as they cannot wait for hours. Nothing else
// differs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"go.uber.org/zap"

	"retry-worker/e2e/harness"
	"retry-worker/internal/app"
	"retry-worker/internal/config"
	"retry-worker/internal/metrics"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	settings, err := config.Load()
	if err != nil {
		return err
	}
	log := app.NewLogger(os.Stdout, settings.LogLevel, settings.LogFormat)
	zap.RedirectStdLog(log)
	c, err := harness.OpenSharedClock(os.Getenv("SHARED_CLOCK"))
	if err != nil {
		return err
	}
	log = log.WithOptions(zap.WithClock(c))
	build := metrics.Build{Version: "test", Commit: "unknown", GoVersion: runtime.Version()}
	a, err := app.New(app.Options{Settings: settings, Build: build, Clock: c, Log: log})
	if err != nil {
		return err
	}
	stop, end := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer end()
	log.Info("serving", zap.String("ops", a.OpsAddr()), zap.String("api", a.HTTPAddr()))
	return a.Run(stop, context.Background())
}

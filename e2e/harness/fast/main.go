// Command fast is `retry-worker serve` with a clock that goes faster than the machine's, or that tests move: they cannot wait
// as long as a hospital does. Nothing else differs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"go.uber.org/zap"

	"retry-worker/e2e/harness"
	"retry-worker/internal/app"
	"retry-worker/internal/clock"
	"retry-worker/internal/config"
	"retry-worker/internal/metrics"
	"retry-worker/internal/testkit"
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
	app.RedirectLogs(log)
	var c clock.Clock
	if file := os.Getenv("SHARED_CLOCK"); file != "" { // see harness.SharedClock
		shared, err := harness.OpenSharedClock(file)
		if err != nil {
			return err
		}
		c, log = shared, log.WithOptions(zap.WithClock(shared))
	} else if c, err = fastClock(); err != nil {
		return err
	}
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

// fastClock is the one that the environment asks for; see harness.Clock.
func fastClock() (c testkit.FastClock, err error) {
	var origin int64
	if _, err = fmt.Sscan(os.Getenv("FAST_CLOCK"), &origin, &c.Times); err != nil {
		err = fmt.Errorf("FAST_CLOCK: %w", err)
	}
	c.Origin = time.Unix(0, origin)
	return c, err
}

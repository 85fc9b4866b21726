// Command fast is `retry-worker serve` with a clock that goes faster than the machine's, or that tests move: they cannot wait
// as long as a hospital does. Nothing else differs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
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

// Shared names, in the environment, the file of a clock that tests move; see harness.SharedClock.
const Shared = "SHARED_CLOCK"

// Environment of a clock that goes faster: the instant at which it was right, in nanoseconds since 1970, and how many times as fast it goes.
const (
	Origin = "FAST_CLOCK_ORIGIN"
	Times  = "FAST_CLOCK_TIMES"
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
	var c clock.Clock
	if file := os.Getenv(Shared); file != "" {
		shared, err := harness.OpenSharedClock(file)
		if err != nil {
			return err
		}
		c, log = shared, log.WithOptions(zap.WithClock(shared))
	} else if c, err = fastClock(); err != nil {
		return err
	}
	a, err := app.New(settings, metrics.Build{Version: "test", Commit: "unknown", GoVersion: runtime.Version()}, c, log)
	if err != nil {
		return err
	}
	stop, end := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer end()
	log.Info("serving", zap.String("ops", a.OpsAddr()), zap.String("api", a.HTTPAddr()))
	return a.Run(stop, context.Background())
}

// fastClock is the one that the environment asks for.
func fastClock() (testkit.FastClock, error) {
	origin, err := strconv.ParseInt(os.Getenv(Origin), 10, 64)
	if err != nil {
		return testkit.FastClock{}, fmt.Errorf("%s: %w", Origin, err)
	}
	times, err := strconv.ParseFloat(os.Getenv(Times), 64)
	if err != nil {
		return testkit.FastClock{}, fmt.Errorf("%s: %w", Times, err)
	}
	return testkit.FastClock{Origin: time.Unix(0, origin), Times: times}, nil
}

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"retry-worker/internal/app"
	"retry-worker/internal/config"
)

func (c *cli) serveCommand() *cobra.Command {
	var settings strings.Builder
	if err := config.Usage(&settings); err != nil {
		settings.WriteString(err.Error())
	}
	return &cobra.Command{
		Use:   "serve",
		Short: "Take jobs from the engine and answer them (the default command)",
		Long: "Takes jobs from the engine and answers them until SIGTERM or SIGINT; then it finishes what it has\n" +
			"begun and hands back the rest. A second signal ends it at once.\n\nSettings (environment; default; meaning):\n" +
			strings.TrimRight(settings.String(), "\n"),
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return c.serve() },
	}
}

// A line of the log waits for others up to logDelay, or until there are logBytes of them: one write for many lines is a
// tenth of the worker's CPU time under load.
const (
	logDelay = 100 * time.Millisecond
	logBytes = 64 << 10
)

func (c *cli) serve() error {
	settings, err := config.Load()
	if err != nil {
		return &usageError{err}
	}
	lines := &zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(c.out), FlushInterval: logDelay, Size: logBytes}
	defer func() { _ = lines.Stop() }() // standard output cannot always be synced
	log := app.NewLogger(lines, settings.LogLevel, settings.LogFormat)
	a, err := app.New(settings, build(), log)
	if problems, ok := errors.AsType[config.Problems](err); ok {
		return &usageError{problems}
	}
	if err != nil {
		return err
	}
	stop, kill := signals(log)
	log.Info("serving", zap.String("version", build().Version), zap.String("engine", settings.Engine.Address),
		zap.String("ops", a.OpsAddr()), zap.String("api", a.HTTPAddr()), zap.String("worker", settings.WorkerName))
	return a.Run(stop, kill)
}

// signals: the first asks for a stop, the second ends everything.
func signals(log *zap.Logger) (stop, kill context.Context) {
	stop, stopNow := context.WithCancel(context.Background())
	kill, killNow := context.WithCancel(context.Background())
	got := make(chan os.Signal, 2)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		log.Info("signal received", zap.Stringer("signal", <-got))
		stopNow()
		log.Warn("second signal received, not waiting any longer", zap.Stringer("signal", <-got))
		killNow()
	}()
	return stop, kill
}

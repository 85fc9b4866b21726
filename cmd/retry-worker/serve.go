package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"go.uber.org/zap"

	"retry-worker/internal/app"
	"retry-worker/internal/clock"
	"retry-worker/internal/config"
)

// helpWidth is the width of help texts.
const helpWidth = 100

// settingsHelp lists the settings by group: each variable with its default, and below it the meaning.
func settingsHelp() string {
	variables := config.Variables()
	var b strings.Builder
	for i, v := range variables {
		if i == 0 || variables[i-1].Group != v.Group {
			b.WriteString("\n" + v.Group + ":\n")
		}
		if v.Default != "" {
			v.Default = " (" + v.Default + ")"
		}
		b.WriteString("  " + strings.Join(append([]string{v.Name}, v.Also...), ", ") + v.Default + "\n" +
			wrapped(v.Meaning, "      "))
	}
	return strings.TrimRight(b.String(), "\n")
}

// wrapped wraps a text at helpWidth, with each line indented.
func wrapped(text, indent string) string {
	var b strings.Builder
	line := indent
	for word := range strings.FieldsSeq(text) {
		if len([]rune(line+word)) > helpWidth {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		}
		line += word + " "
	}
	return b.String() + strings.TrimRight(line, " ") + "\n"
}

func (c *cli) serve() error {
	settings, err := config.Load()
	if err != nil {
		return &usageError{err}
	}
	signal.Ignore(syscall.SIGPIPE) // keep working if the log's reader goes away
	log, end := app.StartLog(c.out.w, settings.LogLevel, settings.LogFormat)
	defer end()
	zap.RedirectStdLog(log)
	a, err := app.New(app.Options{Settings: settings, Build: build(), Clock: clock.Machine{}, Log: log})
	if problems, ok := errors.AsType[config.Problems](err); ok {
		return &usageError{problems}
	}
	if err != nil {
		return err
	}
	stop, kill := signals(log)
	log.Info("serving", zap.String("version", build().Version), zap.Stringer("engine", settings.Engine),
		zap.String("ops", a.OpsAddr()), zap.String("api", a.HTTPAddr()), zap.String("worker", settings.WorkerName))
	return a.Run(stop, kill)
}

// signals returns contexts that end at the first signal (stop) and at the second (kill).
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

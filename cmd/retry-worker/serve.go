package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"

	"retry-worker/bpmn"
	"retry-worker/internal/app"
	"retry-worker/internal/clock"
	"retry-worker/internal/config"
	"retry-worker/internal/zeebe"
)

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

// wrapped wraps a text at 100 characters, with each line indented.
func wrapped(text, indent string) string {
	var b strings.Builder
	line := indent
	for word := range strings.FieldsSeq(text) {
		if len([]rune(line+word)) > 100 {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		}
		line += word + " "
	}
	return b.String() + strings.TrimRight(line, " ") + "\n"
}

func (c *cli) serve(context.Context, []string) error {
	settings, err := config.Load()
	if err != nil {
		return err
	}
	c.begun = true
	signal.Ignore(syscall.SIGPIPE) // keep working if the log's reader goes away
	log, end := app.StartLog(c.out.w, settings.LogLevel, settings.LogFormat)
	defer end()
	zap.RedirectStdLog(log)
	a, err := app.New(app.Options{Settings: settings, Build: build(), Clock: clock.Machine{}, Log: log})
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

// finding is one step of what `check -o json` prints.
type finding struct {
	Step   string `json:"step"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func (c *cli) check(ctx context.Context, _ []string) error {
	settings, err := config.Load()
	steps := []app.CheckStep{{Name: "settings", Needed: true, Do: func(context.Context) (string, error) {
		return "the environment is understood", err
	}}}
	if err == nil {
		settings.Engine.Version = version
		client, noClient := zeebe.Dial(settings.Engine, zap.NewNop())
		if noClient == nil {
			defer client.Close()
		}
		steps = append(steps, app.CheckSteps(&settings, client, noClient, version)...)
	}
	c.begun = true
	ok, findings := true, []finding{}
	for _, s := range steps {
		f, err := c.inspect(ctx, &s)
		if f != nil {
			findings = append(findings, *f)
		}
		if ok = ok && err == nil; err != nil && s.Needed {
			break
		}
	}
	if c.json() {
		if err := c.print(map[string]any{"ok": ok, "steps": findings}); err != nil {
			return err
		}
	}
	if !ok {
		return errors.New("the check found something to fix (see above)")
	}
	return nil
}

// inspect carries out a step and prints the result.
func (c *cli) inspect(ctx context.Context, s *app.CheckStep) (*finding, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	detail, err := s.Do(ctx)
	mark := "ok  "
	switch {
	case err != nil:
		mark, detail = "FAIL", strings.ReplaceAll(err.Error(), "\n", "; ")
	case detail == "":
		return nil, nil
	}
	if !c.json() {
		fmt.Fprintf(c.out, "%s  %-24s %s\n", mark, s.Name, detail)
	}
	return &finding{s.Name, err == nil, detail}, err
}

func (c *cli) deploy(ctx context.Context, _ []string) error {
	settings, err := config.Load(config.OfEngine...)
	if err != nil {
		return err
	}
	c.begun = true
	settings.Engine.Version = version
	client, err := zeebe.Dial(settings.Engine, zap.NewNop())
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var all []zeebe.Deployment
	tenants := settings.TenantIDs
	if len(tenants) == 0 {
		tenants = []string{""} // the engine's default
	}
	for _, tenant := range tenants {
		for _, m := range bpmn.Models() {
			done, err := client.Deploy(ctx, m.Name, m.Content, tenant)
			if err != nil {
				return err
			}
			all = append(all, done...)
		}
	}
	return c.print(all)
}

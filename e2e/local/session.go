package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/zeebe"
)

const (
	// workerGrace is a little more than the time the worker gives itself.
	workerGrace = 12 * time.Second
	// toolGrace bounds the end of `deploy` and `demo`.
	toolGrace = 5 * time.Second
	// closeTime bounds the whole end; its parts have their own bounds below it.
	closeTime = 45 * time.Second
)

// session is one run: what it started, in its order.
type session struct {
	options
	screen *screen
	hard   context.Context // its end ends everything at once

	folder   string // logs and the worker's files
	broker   *zeebe.Broker
	httpAddr string
	opsAddr  string
	fail     context.CancelCauseFunc // called when something that must run has ended

	cleanups []cleanup
}

type cleanup struct {
	name string // as the viewer reads it; empty: not worth a word
	run  func(ctx context.Context) error
}

// run shows the whole, and returns when ctx ends, or after the demo where once is set. Its error is
// errAsked, or one line that says what failed, why and what to do. Call close afterwards.
func (s *session) run(ctx context.Context) error {
	ctx, s.fail = context.WithCancelCause(ctx)
	s.screen.say("The worker on a real Zeebe, on this machine. Ctrl-C stops all of it.\n")
	for _, step := range []func(context.Context) error{s.prepare, s.startZeebe, s.deploy, s.startWorker, s.demo} {
		err := step(ctx)
		if ctx.Err() != nil { // the cause says more than what came of it
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	if s.once {
		return nil
	}
	s.whereToLook()
	<-ctx.Done()
	return context.Cause(ctx)
}

func (s *session) onClose(name string, run func(ctx context.Context) error) {
	s.cleanups = append(s.cleanups, cleanup{name, run})
}

// close ends what was started, in reverse order, within closeTime. After a failure the logs stay.
func (s *session) close(failed bool) {
	ctx, cancel := context.WithTimeout(s.hard, closeTime)
	defer cancel()
	var names []string
	for _, c := range slices.Backward(s.cleanups) {
		if c.name != "" {
			names = append(names, c.name)
		}
	}
	s.screen.say("")
	if len(names) > 0 {
		s.screen.say("Stopping %s. Ctrl-C again ends it at once.", strings.Join(names, " and "))
	}
	for _, c := range slices.Backward(s.cleanups) {
		if err := c.run(ctx); err != nil {
			s.screen.say("%v", err)
		}
	}
	s.cleanups = nil
	s.removeFolder(failed)
}

func (s *session) removeFolder(failed bool) {
	if s.folder == "" {
		return
	}
	if failed {
		s.screen.say("Stopped. The logs are in %s.", s.folder)
		return
	}
	if err := os.RemoveAll(s.folder); err != nil {
		s.screen.say("%v", err)
		return
	}
	s.screen.say("Stopped. Nothing is left but what was fetched for the next time.")
}

// prepare looks for what the run needs before it starts anything.
func (s *session) prepare(context.Context) (err error) {
	if info, err := os.Stat(s.binary); err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("the worker is not built: there is no %s; run `make build`, or `make run`, which does both", s.binary)
	}
	if s.folder, err = os.MkdirTemp("", "retry-worker-run-"); err != nil {
		return fmt.Errorf("make a folder for the logs: %w", err)
	}
	return nil
}

// startZeebe finds Java, fetches Zeebe where it is not there, and starts it.
func (s *session) startZeebe(ctx context.Context) error {
	java, err := zeebe.ProvideJava(ctx, s.screen.progress)
	if err != nil {
		return err
	}
	s.screen.row("Java", "%s", java)
	home, err := zeebe.Fetch(ctx, s.zeebe, s.screen.progress)
	if err != nil {
		return err
	}
	s.screen.row("Zeebe", "%s, in %s", s.zeebe, home)
	log, err := s.log("zeebe.log")
	if err != nil {
		return err
	}
	begun := time.Now()
	if s.broker, err = zeebe.Start(ctx, zeebe.Options{Version: s.zeebe, Output: log}); err != nil {
		return fmt.Errorf("%w; a machine with 1 GB of memory and 2 GB of disk to spare should do; all it said is in %s", err, log.Name())
	}
	s.onClose("Zeebe", s.broker.Stop)
	s.screen.row("", "up in %.1f s; gateway at %s, without TLS", time.Since(begun).Seconds(), s.broker.GatewayAddress())
	s.watch("Zeebe", s.broker, log.Name())
	return nil
}

// running is a program that must not end by itself.
type running interface {
	Done() <-chan struct{}
	LastLine() string
}

// watch ends the session when a program that must run has ended.
func (s *session) watch(name string, p running, log string) {
	done := p.Done()
	go func() {
		<-done
		s.fail(early(name, p, log))
	}()
}

func early(name string, p running, log string) error {
	last := p.LastLine()
	if last == "" {
		last = "nothing"
	}
	return fmt.Errorf("%s ended too early; it said last: %s; see %s, and run it again", name, last, log)
}

// log makes a file in the session's folder, closed with it.
func (s *session) log(name string) (*os.File, error) {
	f, err := os.Create(filepath.Join(s.folder, name))
	if err != nil {
		return nil, fmt.Errorf("make a log: %w", err)
	}
	s.onClose("", func(context.Context) error { return f.Close() })
	return f, nil
}

// finish waits for a program that ends by itself; when ctx ends it is ended.
func (s *session) finish(ctx context.Context, p *harness.Process) error {
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		return errors.Join(ctx.Err(), p.Stop(s.hard, toolGrace))
	}
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/demo"
)

const (
	// readyTime bounds the worker's start, which takes well below a second.
	readyTime  = 30 * time.Second
	readyEvery = 20 * time.Millisecond
	// portTries is how many ports are tried where the usual one is taken.
	portTries = 100
	loopback  = "127.0.0.1"
	// startTries is how often the worker is started when somebody takes its port.
	startTries = 10
	httpPort   = 8095
	opsPort    = 9095
)

// address is the usual port on 127.0.0.1, or the next that is free.
func (s *session) address(what string, usual int) (string, error) {
	for port := usual; port < usual+portTries; port++ {
		address := fmt.Sprintf("%s:%d", loopback, port)
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return "", fmt.Errorf("find a port for %s: %w", what, err)
		}
		if port != usual {
			s.screen.row("Port", "%d is taken; %s: %d", usual, what, port)
		}
		return address, nil
	}
	return "", fmt.Errorf("the ports %d to %d are all taken; free one for %s", usual, usual+portTries-1, what)
}

// command is the worker's program with the session's settings. Whatever the caller's environment says
// for another engine or worker is left out: a demo must not touch somebody's database.
func (s *session) command(args ...string) harness.Command {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "ZEEBE_") && !strings.HasPrefix(pair, "RETRY_WORKER_") {
			env = append(env, pair)
		}
	}
	env = append(env,
		"ZEEBE_ADDRESS="+s.broker.GatewayAddress(), "ZEEBE_INSECURE_CONNECTION=true",
		"RETRY_WORKER_HTTP_ADDR="+s.httpAddr, "RETRY_WORKER_OPS_ADDR="+s.opsAddr,
		"RETRY_WORKER_DATABASE_URL="+s.database(), "RETRY_WORKER_SHUTDOWN_TIMEOUT=10s")
	return harness.Command{Path: s.binary, Args: args, Env: env, Dir: s.folder}
}

// database is the run's own journal; it goes with the run.
func (s *session) database() string { return "sqlite:" + filepath.Join(s.folder, "retry-worker.db") }

// deploy gives Zeebe the bundled models.
func (s *session) deploy(ctx context.Context) error {
	p, err := harness.Start(s.command("deploy"))
	if err != nil {
		return err
	}
	if err := s.finish(ctx, p); err != nil {
		return fmt.Errorf("`retry-worker deploy` failed (%w): %s", err, p.LastLine())
	}
	for _, line := range p.Lines() {
		s.screen.row("Model", "%s", line)
	}
	return nil
}

// startWorker starts the worker and waits until it is ready. Where somebody takes one of its ports
// meanwhile, it is started again with others.
func (s *session) startWorker(ctx context.Context) error {
	log, err := s.log(filepath.Base(s.workerLog()))
	if err != nil {
		return err
	}
	begun := time.Now()
	var p *harness.Process
	for range startTries {
		if p, err = s.tryWorker(ctx, log); err == nil || !strings.Contains(err.Error(), "already in use") {
			break
		}
	}
	if err != nil {
		return err
	}
	s.onClose("the worker", func(ctx context.Context) error { return p.Stop(ctx, workerGrace) })
	s.watch("the worker", p, log.Name())
	s.screen.row("Worker", "up in %.1f s; its log: %s", time.Since(begun).Seconds(), log.Name())
	return nil
}

// tryWorker leaves nothing running when it fails.
func (s *session) tryWorker(ctx context.Context, log io.Writer) (p *harness.Process, err error) {
	if s.httpAddr, err = s.address("API", httpPort); err != nil {
		return nil, err
	}
	if s.opsAddr, err = s.address("metrics and probes", opsPort); err != nil {
		return nil, err
	}
	command := s.command("serve")
	command.Output = log
	if p, err = harness.Start(command); err != nil {
		return nil, err
	}
	if err := s.ready(ctx, p); err != nil {
		return nil, errors.Join(err, p.Stop(s.hard, workerGrace))
	}
	return p, nil
}

func (s *session) workerLog() string { return filepath.Join(s.folder, "worker.log") }

// ready waits until the worker says that it is.
func (s *session) ready(ctx context.Context, p *harness.Process) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	ticker := time.NewTicker(readyEvery)
	defer ticker.Stop()
	for said := errors.New("it says nothing"); ; {
		select {
		case <-p.Done():
			return early("the worker", p, s.workerLog())
		case <-ctx.Done():
			return fmt.Errorf("the worker is not ready after %v (%w); see %s", readyTime, said, s.workerLog())
		case <-ticker.C:
		}
		if said = s.probe(ctx, p); said == nil {
			return nil
		}
	}
}

// probeClient goes through no proxy, and keeps no connection.
var probeClient = &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// probe tells whether the worker is ready. Only its log says that the port is its own: another program
// may answer there.
func (s *session) probe(ctx context.Context, p *harness.Process) error {
	if !slices.ContainsFunc(p.Lines(), func(l string) bool { return strings.Contains(l, `"`+s.opsAddr+`"`) }) {
		return errors.New("it does not serve at " + s.opsAddr)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.opsAddr+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := probeClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New("/readyz answers " + response.Status)
	}
	return nil
}

// demo lets the worker's own demo tell what is decided. It stays, unless the run ends with it: then it returns when
// something is left to the viewer.
func (s *session) demo(ctx context.Context) error {
	command := s.command("demo", "--api-url", s.console(), "--clock-url", s.broker.ActuatorURL(), "--worker-log", s.workerLog())
	told := harness.NewTail(s.screen)
	command.Screen = told
	if !s.once {
		command.Args = append(command.Args, "--stay")
	}
	p, err := harness.Start(command)
	if err != nil {
		return err
	}
	if s.once {
		err = s.finish(ctx, p)
	} else {
		err = s.stays(ctx, p, told)
	}
	if err != nil {
		return fmt.Errorf("`retry-worker demo` failed (%w): %s; the worker's log is %s", err, p.LastLine(), s.workerLog())
	}
	return nil
}

// stays waits until the demo has nothing more to do but to wait for the viewer. From then on it must run until the end.
func (s *session) stays(ctx context.Context, p *harness.Process, told *harness.Tail) error {
	ticker := time.NewTicker(readyEvery)
	defer ticker.Stop()
	for !slices.ContainsFunc(told.Lines(), func(l string) bool { return strings.Contains(l, demo.Staying) }) {
		select {
		case <-p.Done():
			return cmp.Or(p.Err(), errors.New("it ended and was to stay"))
		case <-ctx.Done():
			return errors.Join(ctx.Err(), p.Stop(s.hard, toolGrace))
		case <-ticker.C:
		}
	}
	s.onClose("", func(ctx context.Context) error { return p.Stop(ctx, toolGrace) })
	s.watch("the demo", p, s.workerLog())
	return nil
}

// console is where people and programs reach the worker.
func (s *session) console() string { return "http://" + s.httpAddr }

func (s *session) whereToLook() {
	s.screen.say("\nZeebe, the worker and the demo go on:\n")
	s.screen.row("Console", "%s/dead-letters: read why one is there, retry it with a reason, and see here how its process goes on", s.console())
	s.screen.row("Metrics", "http://%s/metrics", s.opsAddr)
	s.screen.row("Ready", "http://%s/readyz", s.opsAddr)
	s.screen.row("Log", "%s", s.workerLog())
	s.screen.row("History", "RETRY_WORKER_DATABASE_URL=%s %s history CLM-…, with a claim's number from above", s.database(), s.binary)
	s.screen.row("", "the same for MSG-… --policy whatsapp-message, JOB-… --policy failed-job, QUEUE-… --policy job-queue")
	s.screen.row("API", "%s/api/v1/subjects/tiss-submission/CLM-…", s.console())
	s.screen.row("Check", "ZEEBE_ADDRESS=%s ZEEBE_INSECURE_CONNECTION=true %s check", s.broker.GatewayAddress(), s.binary)
	s.screen.row("Stop", "Ctrl-C; it removes the logs, the journal and Zeebe's data")
}

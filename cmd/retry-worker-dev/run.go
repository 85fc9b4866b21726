package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"retry-worker/bpmn"
	"retry-worker/internal/app"
	"retry-worker/internal/config"
	"retry-worker/internal/demo"
	"retry-worker/internal/engine/server"
	"retry-worker/internal/metrics"
	"retry-worker/internal/zeebe"
)

const (
	consolePort = 8095
	opsAbove    = 1000 // the console's port
	portTries   = 100  // where the usual one is taken
)

// session is one run of engine, worker, console and samples.
type session struct {
	out    io.Writer
	folder string // of the journal and the worker's log
	keep   bool   // it, for the next start
	clock  clock
	doors  doors
	log    demo.Log
	worker *app.App
}

// runAll runs engine, worker, console and samples in this process until ctx ends. What is not to be kept is gone then.
func (o *options) runAll(ctx context.Context, out io.Writer) (err error) {
	s := &session{out: out, folder: o.engine.Data, keep: o.engine.Data != "",
		doors: doors{"127.0.0.1:26500", "127.0.0.1:8080", "127.0.0.1:9600"}}
	left := "Nothing is kept."
	if s.keep {
		left = s.folder + " keeps engine and journal for the next start with it."
	} else {
		var remove func()
		if s.folder, remove, err = temporary(); err != nil {
			return fmt.Errorf("make a temporary folder: %w", err)
		}
		defer remove()
	}
	if err := s.run(ctx, o.engine); !errors.Is(err, context.Canceled) {
		return err
	}
	fmt.Fprintln(out, "Stopped.", left)
	return nil
}

// temporary makes a folder that remove removes. So does whatever ends this process, a kill too: a shell waits for its end.
func temporary() (folder string, remove func(), err error) {
	if folder, err = os.MkdirTemp("", "retry-worker-dev-"); err != nil {
		return "", nil, err
	}
	shell := exec.Command("sh", "-c", `read -r _; rm -rf "$0"`, folder)
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C does not reach it
	end, err := shell.StdinPipe()
	if err == nil {
		err = shell.Start()
	}
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(folder))
	}
	return folder, func() {
		_ = end.Close()
		_ = shell.Wait()
	}, nil
}

func (s *session) run(ctx context.Context, o server.Options) (err error) {
	engine, err := server.Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	s.clock = clock{engine, s.saveAhead}
	resumed, err := s.resume()
	if err != nil {
		return err
	}
	if err := s.doors.open(engine, portTries); err != nil {
		return err
	}
	if err := s.openWorker(); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	client, err := zeebe.Dial(zeebe.Options{Address: s.doors.grpc, Plaintext: true, PlainErrors: true}, zap.NewNop())
	if err != nil {
		return err
	}
	defer client.Close()
	for _, m := range bpmn.Models() {
		if _, err := client.Deploy(context.WithoutCancel(ctx), m.Name, m.Content, ""); err != nil {
			return err
		}
	}
	s.introduce()
	defer context.AfterFunc(ctx, func() { fmt.Fprintln(s.out, "\nStopping. Ctrl-C again ends it at once.") })()
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return s.worker.Run(ctx, context.Background()) })
	both.Go(func() error {
		return demo.Run(ctx, demo.Options{
			Engine: client, Out: s.out, Ask: newClient(s.console(), "").Ask, Clock: s.clock, Log: &s.log, Resumed: resumed,
			Invitation: s.whereToLook(),
		})
	})
	return both.Wait()
}

// resume sets the clock to where an earlier start in the same folder has moved it, and reports whether there was one.
func (s *session) resume() (resumed bool, err error) {
	content, err := os.ReadFile(s.path("clock"))
	if errors.Is(err, os.ErrNotExist) {
		return false, s.saveAhead(0)
	}
	ahead, e := time.ParseDuration(string(content))
	if err = errors.Join(err, e); err != nil {
		return false, fmt.Errorf("%s: %w, expected how far the clock is ahead, such as 3h0m0s", s.path("clock"), err)
	}
	s.clock.AddTime(ahead)
	return true, nil
}

func (s *session) path(name string) string { return filepath.Join(s.folder, name) }

// saveAhead notes how far the engine's clock is ahead of the machine's.
func (s *session) saveAhead(d time.Duration) error {
	part := s.path("clock.part") // renamed when it is whole: the program may be killed while it writes
	if err := os.WriteFile(part, []byte(d.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(part, s.path("clock"))
}

// openWorker opens the service as `retry-worker serve` does; only its clock is the engine's. What the environment says for
// another engine or worker is left out: samples must not touch somebody's database.
func (s *session) openWorker() error {
	os.Clearenv()
	settings, err := config.Load()
	if err != nil {
		return err
	}
	settings.Engine.Address, settings.Engine.Plaintext = s.doors.grpc, true
	settings.DatabaseURL = "sqlite:" + s.path("retry-worker.db")
	settings.ShutdownTimeout = 10 * time.Second
	file, err := os.OpenFile(s.path("worker.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	log := app.NewLogger(io.MultiWriter(file, &s.log), settings.LogLevel, settings.LogFormat).WithOptions(zap.WithClock(s.clock))
	zap.RedirectStdLog(log)
	return nextFree(consolePort, portTries, func(port int) (err error) {
		settings.HTTPAddr, settings.OpsAddr = local(port), local(port+opsAbove)
		s.worker, err = app.New(app.Options{Settings: settings, Build: metrics.Build{Version: "dev"}, Clock: s.clock, Log: log})
		return err
	})
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func (s *session) console() string { return "http://" + s.worker.HTTPAddr() }

// introduce begins with the console, and says what all this is.
func (s *session) introduce() {
	fmt.Fprintf(s.out, "The console is at %s/dead-letters; Ctrl-C ends all of this.\n%s", s.console(), box)
	fmt.Fprintf(s.out, "  Engine   gRPC %s, REST http://%s/v2, clock and events http://%s\n", s.doors.grpc, s.doors.rest, s.doors.control)
	fmt.Fprintf(s.out, "  Worker   metrics http://%s/metrics, log %s\n", s.worker.OpsAddr(), s.path("worker.log"))
}

// whereToLook ends with the console: it is what the viewer is to see last.
func (s *session) whereToLook() string {
	return fmt.Sprintf(`  Clients  ZEEBE_ADDRESS=%s ZEEBE_INSECURE_CONNECTION=true, for your own
  Journal  RETRY_WORKER_DATABASE_URL=sqlite:%s, for "retry-worker history CLM-…", "audit verify" and "kpi"
  API      %s/api/v1/subjects/tiss-submission/CLM-…, with a claim's number from above
  Console  %[3]s/dead-letters: read why one is there, retry it with a reason, and see here how its process goes on`,
		s.doors.grpc, s.path("retry-worker.db"), s.console())
}

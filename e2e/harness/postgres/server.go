package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"retry-worker/e2e/harness"
)

const (
	// startTime bounds initdb and a start together; an idle machine takes about 1 s.
	startTime = 2 * time.Minute
	// stopTime is what a fast shutdown may take before the server is killed; usually it is below 1 s.
	stopTime = 30 * time.Second
	// startTries is how often a start is tried with other ports, when somebody took one meanwhile.
	startTries = 3
	// superuser is the one, made by initdb.
	superuser = "postgres"
)

// Options of a server. The zero value is a good one.
type Options struct {
	// Dir has the server's data, made if need be, or found with the data of an earlier server; empty: a
	// temporary folder that Remove removes. Where this process is root, the folder must be one that
	// nobody can enter.
	Dir string
	// Port on 127.0.0.1; 0: a free one, which Restart keeps.
	Port int
	// Password of the user postgres, by SCRAM; empty: everybody on this machine is let in. It counts
	// when the data are made.
	Password string
	// Settings are put over the server's own and Start's, "max_connections": "300" say. Start sets
	// fsync=on and full_page_writes=on.
	Settings map[string]string
	// Output takes the server's log; nil drops it.
	Output io.Writer
}

// Server is a PostgreSQL that listens on 127.0.0.1 only. Its methods may be called by several
// goroutines; those that start and end it run one after the other.
type Server struct {
	options Options
	bin     string
	dir     *dataDir
	port    int

	change  sync.Mutex // held while it is started, ended, paused or resumed
	mu      sync.Mutex
	process *harness.Process
	removed bool
}

// Start runs a server and returns when it takes connections, its recovery after a crash included; with
// new data this takes about 1 s. No server outlives this process on Linux, unless it is paused: then
// the next Start ends it. ctx bounds the start only. The error is one line that ends with what the
// server said last; nothing is left then but the data in Options.Dir.
func Start(ctx context.Context, i Install, o Options) (*Server, error) {
	dir, err := openDataDir(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, dir: dir}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if s.bin, err = dir.enterable(i); err == nil {
		err = s.initialize(ctx)
	}
	if err == nil {
		err = s.listen(ctx)
	}
	if err != nil {
		_ = dir.close() // the error that matters is the first
		return nil, fmt.Errorf("start PostgreSQL %s: %w", i.Version, err)
	}
	return s, nil
}

// listen runs the server on its port; where that may be any, on another when it was taken meanwhile.
func (s *Server) listen(ctx context.Context) error {
	for try := 1; ; try++ {
		s.port = s.options.Port
		if s.port == 0 {
			ports, err := harness.FreePorts(1)
			if err != nil {
				return err
			}
			s.port = ports[0]
		}
		err := s.run(ctx)
		if s.options.Port != 0 || try == startTries || !errors.Is(err, errPortTaken) {
			return err
		}
	}
}

// URL is the address of a database, for the superuser: "postgres://postgres@127.0.0.1:15432/name?sslmode=disable".
func (s *Server) URL(database string) string {
	who := url.User(superuser)
	if s.options.Password != "" {
		who = url.UserPassword(superuser, s.options.Password)
	}
	u := url.URL{Scheme: "postgres", User: who, Host: s.Address(), Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// Address is where the server listens: host:port.
func (s *Server) Address() string { return harness.Address(s.port) }

// PID is the postmaster's process id; it changes with Restart.
func (s *Server) PID() int { return s.current().PID() }

// Done is closed when the postmaster has ended; Restart makes a new one.
func (s *Server) Done() <-chan struct{} { return s.current().Done() }

// Log is the last lines of the server's log since it was last started, oldest first.
func (s *Server) Log() []string { return s.current().Lines() }

func (s *Server) current() *harness.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Stop ends the server in order: transactions are rolled back, connections closed, all is written (a
// fast shutdown). It is killed, and that is the error, where it does not end in 30 s or ctx ends. The
// data stay for Restart, and those in Options.Dir for another Start. A paused server is stopped too; one
// that has ended already is no error.
func (s *Server) Stop(ctx context.Context) error {
	s.change.Lock()
	defer s.change.Unlock()
	return errors.Join(s.stop(ctx), s.dir.release())
}

func (s *Server) stop(ctx context.Context) error {
	if !s.dir.held() {
		return nil
	}
	s.dir.signalAll(s.PID(), syscall.SIGCONT)
	err := s.current().Stop(ctx, stopTime)
	s.dir.killAll(s.PID())
	return err
}

// Kill ends all of the server's processes at once, as a power cut would (but what was written and not
// synced stays in the system's cache). It returns when they are dead. The data stay for Restart, and
// those in Options.Dir for another Start.
func (s *Server) Kill() {
	s.change.Lock()
	defer s.change.Unlock()
	if !s.dir.held() {
		return
	}
	s.kill(s.current())
	_ = s.dir.release() // closing a lock does not fail
}

func (s *Server) kill(p *harness.Process) {
	_ = p.Signal(syscall.SIGSTOP) // it begins no new ones
	s.dir.killAll(p.PID())
	p.Kill()
	s.dir.killAll(p.PID()) // one begun before the signal came
}

// Restart starts the server again with the same data and port, after Stop, after Kill or without: then
// it is stopped first. It returns when connections are taken. An error after Remove.
func (s *Server) Restart(ctx context.Context) error {
	s.change.Lock()
	defer s.change.Unlock()
	if s.removed {
		return errors.New("restart PostgreSQL: its data were removed")
	}
	if err := s.stop(ctx); err != nil {
		return fmt.Errorf("restart PostgreSQL: %w", err)
	}
	if err := s.dir.acquire(); err != nil {
		return fmt.Errorf("restart PostgreSQL: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("restart PostgreSQL: %w", err)
	}
	return nil
}

// Pause stops all of the server's processes in their tracks; connections stay open and nobody answers.
func (s *Server) Pause() error {
	s.change.Lock()
	defer s.change.Unlock()
	if err := s.current().Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return s.dir.pauseAll(s.PID())
}

// Resume lets a paused server go on.
func (s *Server) Resume() error {
	s.change.Lock()
	defer s.change.Unlock()
	if err := s.current().Signal(syscall.SIGCONT); err != nil {
		return err
	}
	s.dir.signalAll(s.PID(), syscall.SIGCONT)
	return nil
}

// Remove kills the server where it runs and removes its data, those in Options.Dir too. Calling it
// again does nothing.
func (s *Server) Remove() error {
	s.change.Lock()
	defer s.change.Unlock()
	if s.removed {
		return nil
	}
	err := s.dir.acquire()
	if errors.Is(err, fs.ErrNotExist) { // a later server on it was removed
		s.removed = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove PostgreSQL's data: %w", err)
	}
	s.removed = true
	s.kill(s.current())
	return s.dir.remove()
}

// run starts the server's process and waits until it takes connections; else nothing is left of it.
func (s *Server) run(ctx context.Context) error {
	p, err := harness.Start(harness.Command{
		Path: filepath.Join(s.bin, "postgres"), Args: s.arguments(), Env: environment(os.Environ()), Dir: s.dir.path,
		User: harness.Nobody(), StopSignal: syscall.SIGINT, Output: s.options.Output,
	})
	if err != nil {
		return err
	}
	if err := s.waitReady(ctx, p); err != nil {
		s.kill(p)
		return said(err, p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = p
	return nil
}

// said adds what a program said last.
func said(err error, p *harness.Process) error {
	for _, line := range p.Lines() {
		if strings.Contains(line, "FATAL:") || strings.Contains(line, "PANIC:") {
			return fmt.Errorf("%w; it said: %s", err, strings.TrimSpace(line))
		}
	}
	if line := p.LastLine(); line != "" {
		return fmt.Errorf("%w; it said last: %s", err, line)
	}
	return fmt.Errorf("%w; it said nothing", err)
}

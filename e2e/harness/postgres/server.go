// Package postgres runs a real PostgreSQL on this machine, for tests and benchmarks.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
	"retry-worker/internal/testkit"
)

const (
	// startTime bounds initdb and a start together, which take about 1 s on an idle machine.
	startTime = 2 * time.Minute
	// stopTime is how long a fast shutdown may take before the server is killed; usually it is below 1 s.
	stopTime = 30 * time.Second
	// superuser is made by initdb.
	superuser = "postgres"
)

// program is a server of the oldest version that the journal supports, or newer.
var program = &fetch.Program{
	Name: "PostgreSQL", Oldest: "15", Args: []string{"--version"}, Version: regexp.MustCompile(`\(PostgreSQL\) (\S+)`),
	Places:   []string{"/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres", "/opt/homebrew/opt/postgresql@*/bin/postgres"},
	Packages: []string{"postgresql"}, Unless: []string{fetch.Services},
}

// Options are a server's. The zero value is useful.
type Options struct {
	// Password is that of the user postgres, by SCRAM; empty: everybody on this machine may connect.
	Password string
}

// Server is a PostgreSQL that listens on 127.0.0.1 only. Its methods may be called by several goroutines, except those
// that start and end it.
type Server struct {
	options Options
	bin     string
	folder  *harness.Folder
	port    int
	process *harness.Process
}

// Start starts a server, as the user nobody if this process is root, and returns when it takes connections. No server
// outlives this process, unless it is paused. ctx bounds the start only. The error is one line that ends with what
// the server said last; nothing is left then.
func Start(ctx context.Context, o Options) (*Server, error) {
	i, err := program.Provide()
	if err != nil {
		return nil, err
	}
	folder, err := harness.NewFolder("postgres")
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, bin: filepath.Dir(i.Path), folder: folder}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	ports, err := harness.Ports(1)
	if err == nil {
		s.port = ports[0]
		err = s.initialize(ctx)
	}
	if err == nil {
		err = s.run(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL %s: %w", i.Version, err), folder.Remove())
	}
	return s, nil
}

// initialize creates the data.
func (s *Server) initialize(ctx context.Context) error {
	password := s.folder.Join("password")
	args := []string{"-D", s.DataDir(), "-U", superuser, "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions", "--auth=trust"}
	if s.options.Password != "" {
		args = append(args[:len(args)-1], "--auth=scram-sha-256", "--pwfile="+password)
	}
	err := errors.Join(os.WriteFile(password, []byte(s.options.Password+"\n"), 0o600), harness.GiveToNobody(password),
		os.Mkdir(s.DataDir(), 0o700), harness.GiveToNobody(s.DataDir()))
	if err != nil {
		return err
	}
	if _, err := harness.Run(ctx, s.command("initdb", args)); err != nil {
		return fmt.Errorf("make its data: %w", err)
	}
	return nil
}

func (s *Server) command(name string, args []string) harness.Command {
	var env []string // libpq's inherited settings are for other servers; messages must be in English
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); !strings.HasPrefix(name, "PG") && !strings.HasPrefix(name, "LC_") && !strings.HasPrefix(name, "LANG") {
			env = append(env, pair)
		}
	}
	return harness.Command{
		Path: filepath.Join(s.bin, name), Args: args, Env: append(env, "LC_ALL=C"), Dir: s.folder.Path, User: harness.Nobody(),
		StopSignal: syscall.SIGINT, // a fast shutdown
	}
}

// run starts the server's process and waits until it takes connections; if it fails, no process is left.
func (s *Server) run(ctx context.Context) error {
	p, err := harness.StartServer(ctx, startTime, s.command("postgres", []string{
		"-D", s.DataDir(), "-c", "port=" + strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "fsync=on", "-c", "full_page_writes=on", "-c", "max_connections=200", "-c", "logging_collector=off", "-c", "log_destination=stderr",
		"-c", "dynamic_shared_memory_type=mmap", // in the data's folder, and gone with it when the server was killed
	}), s.ready)
	if err != nil {
		harness.KillIn(s.folder.Path, 0)
		return err
	}
	s.process = p
	return nil
}

// ready reports whether the server's lock file says that it is ready. The file of a killed server names another
// process.
func (s *Server) ready(p *harness.Process) bool {
	lines := s.lockFile()
	return len(lines) > 7 && lines[0] == strconv.Itoa(p.PID()) && strings.TrimSpace(lines[7]) == "ready"
}

// lockFile returns the lines of the server's lock file: its process id is the first, the key and id of its shared
// memory the seventh, its state the eighth. There is no file unless the server runs or was killed.
func (s *Server) lockFile() []string {
	content, err := os.ReadFile(filepath.Join(s.DataDir(), "postmaster.pid"))
	if err != nil {
		return nil
	}
	return strings.Split(string(content), "\n")
}

// DataDir returns the folder of its data.
func (s *Server) DataDir() string { return s.folder.Join("data") }

// URL returns the address of a database for the superuser:
// "postgres://postgres@127.0.0.1:15432/name?sslmode=disable".
func (s *Server) URL(database string) string {
	who := url.User(superuser)
	if s.options.Password != "" {
		who = url.UserPassword(superuser, s.options.Password)
	}
	u := url.URL{Scheme: "postgres", User: who, Host: testkit.Loopback(s.port), Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// PID returns the postmaster's process id, which changes with Restart.
func (s *Server) PID() int { return s.process.PID() }

// Stop ends the server in order (a fast shutdown): it rolls transactions back, closes connections and writes
// everything. If it does not end in 30 s or before ctx, it is killed, which is the error. The data stay for Restart.
// A paused server is stopped too.
func (s *Server) Stop(ctx context.Context) error {
	harness.ResumeIn(s.folder.Path)
	err := s.process.Stop(ctx, stopTime)
	harness.KillIn(s.folder.Path, 0)
	return err
}

// Kill ends all of the server's processes at once and returns when they are dead. That is like a power cut, except
// that unsynced writes stay in the system's cache. The data stay for Restart.
func (s *Server) Kill() {
	_ = s.process.Pause() // it starts no
	harness.KillIn(s.folder.Path, s.process.PID())
	s.process.Kill()
	harness.KillIn(s.folder.Path, 0) // one may have started before the pause
}

// Restart starts the server again with the same data and port. If it runs, it is stopped first. Restart returns when
// the server takes connections.
func (s *Server) Restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := errors.Join(s.Stop(ctx), s.run(ctx)); err != nil {
		return fmt.Errorf("restart PostgreSQL: %w", err)
	}
	return nil
}

// Pause freezes all of the server's processes: connections stay open and nobody answers.
func (s *Server) Pause() error {
	if err := s.process.Pause(); err != nil {
		return err
	}
	return harness.PauseIn(s.folder.Path)
}

// Resume ends Pause.
func (s *Server) Resume() error {
	harness.ResumeIn(s.folder.Path)
	return s.process.Resume()
}

// Remove kills the server if it runs, and removes its data.
func (s *Server) Remove() error {
	s.Kill()
	if lines := s.lockFile(); len(lines) > 6 { // a killed server's shared memory outlives it
		if memory := strings.Fields(lines[6]); len(memory) == 2 {
			_ = exec.Command("ipcrm", "-m", memory[1]).Run()
		}
	}
	return s.folder.Remove()
}

var databases atomic.Int64

// CreateDatabase makes an empty database, in some tens of milliseconds, and returns its URL.
func (s *Server) CreateDatabase(ctx context.Context) (url string, err error) {
	name, err := s.newDatabase(ctx)
	return s.URL(name), err
}

func (s *Server) newDatabase(ctx context.Context) (name string, err error) {
	name = "test_" + strconv.FormatInt(databases.Add(1), 10)
	if err := s.execute(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return "", fmt.Errorf("create the database %s: %w", name, err)
	}
	return name, nil
}

// execute runs a statement in the maintenance database, on a new connection.
func (s *Server) execute(ctx context.Context, statement string) error {
	c, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	_, err = c.Exec(ctx, statement)
	return err
}

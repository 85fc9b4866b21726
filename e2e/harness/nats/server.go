// Package nats runs a real NATS server with JetStream for tests, in a process of its own that can be stopped, paused
// and killed.
//
// The process is the test binary itself, which has the server linked in.
package nats

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"retry-worker/e2e/harness"
)

const (
	// play holds the settings of a process that is to be a server.
	play = "RETRY_WORKER_TEST_NATS"
	// startTime bounds a start, stopTime a stop.
	startTime = 30 * time.Second
	stopTime  = 20 * time.Second
)

// Settings of a server. Its zero value has no users and no limits.
type Settings struct {
	// Dir holds its data; required.
	Dir string
	// Port to listen on at 127.0.0.1; 0 takes a free one, and keeps it over restarts.
	Port int
	// User and Password; empty: anybody may connect.
	User, Password string
	// MaxStore bounds all that it keeps, in bytes; 0: no bound.
	MaxStore int64
	// MaxPayload of one message, in bytes; 0: the server's own, 1 MB.
	MaxPayload int32
	// NoJetStream leaves JetStream out.
	NoJetStream bool
}

// Server is a running server. Its methods are not for concurrent use.
type Server struct {
	settings Settings
	process  *harness.Process
}

// In a process that Start made, this package is a server, and the program's main never runs.
func init() {
	asked := os.Getenv(play)
	if asked == "" {
		return
	}
	var s Settings
	if err := json.Unmarshal([]byte(asked), &s); err != nil {
		fmt.Fprintln(os.Stderr, "Error: read the settings:", err)
		os.Exit(1)
	}
	if err := serve(&s); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(s *Settings) error {
	port := s.Port
	if port == 0 {
		port = server.RANDOM_PORT
	}
	n, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, NoLog: true, JetStream: !s.NoJetStream, StoreDir: s.Dir,
		Username: s.User, Password: s.Password, MaxPayload: s.MaxPayload, JetStreamMaxStore: s.MaxStore, JetStreamMaxMemory: 16 << 20,
	})
	if err != nil {
		return fmt.Errorf("configure the server: %w", err)
	}
	n.Start()
	if !n.ReadyForConnections(startTime) {
		return errors.New("the server is not ready")
	}
	u, err := url.Parse(n.ClientURL())
	if err != nil {
		return fmt.Errorf("find the server's port: %w", err)
	}
	fmt.Println(u.Port())
	n.WaitForShutdown() // which SIGTERM brings about
	return nil
}

// Start a server and wait until clients can connect.
func Start(ctx context.Context, s Settings) (*Server, error) {
	n := &Server{settings: s}
	return n, n.Restart(ctx)
}

// Restart a server that was stopped or killed: the same data and port.
func (n *Server) Restart(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	settings, err := json.Marshal(n.settings)
	if err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	ready := &firstLine{line: make(chan string, 1)}
	n.process, err = harness.Start(harness.Command{Path: program, Env: append(os.Environ(), play+"="+string(settings)), Screen: ready})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	select {
	case line := <-ready.line:
		n.settings.Port, err = strconv.Atoi(line)
		return err
	case <-n.process.Done():
		return fmt.Errorf("the NATS server ended: %q", n.process.Lines())
	case <-ctx.Done():
		n.process.Kill()
		return fmt.Errorf("the NATS server did not start: %w", ctx.Err())
	}
}

// URL to connect with, user and password included.
func (n *Server) URL() string {
	u := url.URL{Scheme: "nats", Host: "127.0.0.1:" + strconv.Itoa(n.settings.Port)}
	if n.settings.User != "" {
		u.User = url.UserPassword(n.settings.User, n.settings.Password)
	}
	return u.String()
}

// Stop it as an operator would.
func (n *Server) Stop(ctx context.Context) error { return n.process.Stop(ctx, stopTime) }

// Kill it at once.
func (n *Server) Kill() { n.process.Kill() }

// Pause makes it stand still; its connections stay.
func (n *Server) Pause() error { return n.process.Signal(syscall.SIGSTOP) }

// Resume after Pause.
func (n *Server) Resume() error { return n.process.Signal(syscall.SIGCONT) }

// firstLine gives the first line written to it.
type firstLine struct {
	mu   sync.Mutex
	text []byte
	line chan string
}

func (f *firstLine) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := bytes.IndexByte(f.text, '\n')
	f.text = append(f.text, b...)
	if end := bytes.IndexByte(f.text, '\n'); before < 0 && end >= 0 {
		f.line <- string(f.text[:end])
	}
	return len(b), nil
}

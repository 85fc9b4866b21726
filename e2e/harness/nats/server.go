// Package nats runs a real NATS server with JetStream for tests, in a process that can be stopped, paused and killed.
//
// The process is the test binary, which has the server linked in.
package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
)

const (
	// play is the variable with the settings of a process that is to be a server.
	play = "RETRY_WORKER_TEST_NATS"
	// startTime bounds a start.
	startTime = 30 * time.Second
)

// Settings are a server's. The zero value has no users and no limits.
type Settings struct {
	// Dir holds its data; required.
	Dir string
	// Port is chosen by Start, on 127.0.0.1; restarts keep it.
	Port int
	// User and Password; empty: anybody may connect.
	User, Password string
	// MaxPayload bounds a message, in bytes; 0: the server's default, 1 MB.
	MaxPayload int32
	// NoJetStream turns JetStream off.
	NoJetStream bool
}

// Server is a running server. Its methods are not safe for concurrent use.
type Server struct {
	*harness.Process
	settings Settings
}

// In a process that Start made, init runs the server, and main never runs.
func init() {
	asked := os.Getenv(play)
	if asked == "" {
		return
	}
	var s Settings
	err := json.Unmarshal([]byte(asked), &s)
	if err == nil {
		err = serve(&s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(s *Settings) error {
	n, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: s.Port, NoLog: true, JetStream: !s.NoJetStream, StoreDir: s.Dir,
		Username: s.User, Password: s.Password, MaxPayload: s.MaxPayload, JetStreamMaxMemory: 16 << 20,
	})
	if err != nil {
		return fmt.Errorf("configure the server: %w", err)
	}
	n.Start()
	if !n.ReadyForConnections(startTime) {
		return errors.New("the server is not ready")
	}
	fmt.Println("ready")
	n.WaitForShutdown() // which SIGTERM causes
	return nil
}

// Start starts a server and waits until clients can connect.
func Start(ctx context.Context, s Settings) (*Server, error) {
	ports, err := harness.Ports(1)
	if err != nil {
		return nil, err
	}
	n := &Server{settings: s}
	n.settings.Port = ports[0]
	return n, n.Restart(ctx)
}

// New starts a server for a test, with its data in a new folder, and kills it when the test ends.
func New(t testing.TB, s Settings) *Server {
	t.Helper()
	s.Dir = t.TempDir()
	n, err := Start(context.Background(), s)
	testkit.Must(t, err)
	t.Cleanup(n.Kill)
	return n
}

// JetStream returns a connection to the server that lasts until the test ends.
func (n *Server) JetStream(t testing.TB) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(n.URL())
	testkit.Must(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	testkit.Must(t, err)
	return js
}

// Restart starts a server that was stopped or killed, with the same data and port.
func (n *Server) Restart(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	settings, err := json.Marshal(n.settings)
	if err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	command := harness.Command{Path: program, Env: append(os.Environ(), play+"="+string(settings))}
	n.Process, err = harness.StartServer(ctx, startTime, command, func(p *harness.Process) bool { return slices.Contains(p.Lines(), "ready") })
	if err != nil {
		return fmt.Errorf("start NATS: %w", err)
	}
	return nil
}

// URL returns the address to connect to, with user and password.
func (n *Server) URL() string {
	u := url.URL{Scheme: "nats", Host: "127.0.0.1:" + strconv.Itoa(n.settings.Port)}
	if n.settings.User != "" {
		u.User = url.UserPassword(n.settings.User, n.settings.Password)
	}
	return u.String()
}

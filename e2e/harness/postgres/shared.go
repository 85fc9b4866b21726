package postgres

import (
	"context"
	"sync"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// New starts a server for one test, which the test may end or pause. If there is no PostgreSQL, the test ends as
// [harness.Require] says.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := start(t, o)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Remove()) })
	return s
}

func start(t testing.TB, o Options) (*Server, error) {
	t.Helper()
	program.Require(t)
	return Start(wait.Context(t), o)
}

// shared is the server that all tests of this process share.
var shared struct {
	mu     sync.Mutex
	server *Server
	err    error
}

// Database returns the URL of a new, empty database on that server. When the test ends, the database is dropped with
// all connections to it. [harness.Main] stops the server.
func Database(t testing.TB) (url string) {
	t.Helper()
	s := sharedServer(t)
	name, err := s.newDatabase(wait.Context(t))
	testkit.Must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		testkit.Must(t, s.execute(ctx, "DROP DATABASE "+name+" WITH (FORCE)"))
	})
	return s.URL(name)
}

func sharedServer(t testing.TB) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil && shared.err == nil {
		if shared.server, shared.err = start(t, Options{}); shared.err == nil {
			harness.AtEnd(shared.server.Remove)
		}
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

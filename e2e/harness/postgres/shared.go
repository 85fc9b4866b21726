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
	program.Require(t)
	s, err := Start(wait.Context(t), o)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Remove()) })
	return s
}

// shared is the server that all tests of this process share.
var shared = sync.OnceValues(func() (*Server, error) {
	s, err := Start(context.Background(), Options{})
	if err == nil {
		harness.AtEnd(s.Remove)
	}
	return s, err
})

// Database returns the URL of a new, empty database on that server. When the test ends, the database is dropped with
// all connections to it. [harness.Main] stops the server.
func Database(t testing.TB) (url string) {
	t.Helper()
	program.Require(t)
	s, err := shared()
	testkit.Must(t, err)
	name, err := s.newDatabase(wait.Context(t))
	testkit.Must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		testkit.Must(t, s.execute(ctx, "DROP DATABASE "+name+" WITH (FORCE)"))
	})
	return s.URL(name)
}

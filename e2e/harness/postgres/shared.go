package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"retry-worker/e2e/harness"
)

// Bounds of what the shared server does.
const (
	closeTime    = time.Minute
	databaseTime = time.Minute
)

var shared struct {
	mu     sync.Mutex
	tried  bool
	server *Server
	err    error
}

// Shared is the server of this test process, started at first use and stopped by [harness.Main]. A test that ends or pauses the
// server starts one of its own instead. Where there is none to be had, the test ends as [harness.Require] says.
func Shared(t testing.TB) *Server {
	t.Helper()
	i := Require(t)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.tried {
		shared.tried = true
		if shared.server, shared.err = startShared(i); shared.err == nil {
			harness.AtEnd(closeShared)
		}
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

func startShared(i Install) (*Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	return Start(ctx, i, Options{})
}

// Database is the URL of a new, empty database on the shared server, dropped when the test ends with
// all connections to it.
func Database(t testing.TB) (url string) {
	t.Helper()
	s := Shared(t)
	ctx, cancel := context.WithTimeout(context.Background(), databaseTime)
	defer cancel()
	name := newName()
	url, err := s.CreateDatabase(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), databaseTime)
		defer cancel()
		if err := s.DropDatabase(ctx, name); err != nil {
			t.Error(err)
		}
	})
	return url
}

// Require returns what Provide does, which it asks once a test process; see [harness.Require].
func Require(t testing.TB) Install {
	t.Helper()
	harness.SkipIfShort(t)
	i, err := provided()
	harness.Require(t, "PostgreSQL", err, "apt-get install -y postgresql")
	return i
}

var provided = sync.OnceValues(func() (Install, error) {
	ctx, cancel := context.WithTimeout(context.Background(), harness.FetchTime)
	defer cancel()
	return Provide(ctx, nil)
})

func closeShared() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return errors.Join(shared.server.Stop(ctx), shared.server.Remove())
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"retry-worker/e2e/engine/fetch"
)

// Bounds of what the shared server does.
const (
	provideTime  = 10 * time.Minute // fetching, the first time
	closeTime    = time.Minute
	databaseTime = time.Minute
)

var shared struct {
	mu     sync.Mutex
	tried  bool
	server *Server
	err    error
}

// Shared is the server of this test process, started at first use; TestMain calls CloseShared after
// m.Run. A test that ends or pauses the server starts one of its own instead. Where PostgreSQL must be installed first, the test prints "NOT RUN: …" and is skipped, or fails where CI=true;
// it is skipped with -short.
func Shared(t testing.TB) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: needs a real PostgreSQL")
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.tried {
		shared.tried = true
		shared.server, shared.err = startShared()
	}
	if shared.err != nil {
		GiveUp(t, shared.err)
	}
	return shared.server
}

func startShared() (*Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), provideTime)
	defer cancel()
	i, err := Provide(ctx, nil)
	if err != nil {
		return nil, err
	}
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

// GiveUp ends a test for an error of Provide or Start: where a person must install something it is
// skipped and says so in the line that `make test` shows at its end; else, and where CI=true, it fails.
func GiveUp(t testing.TB, err error) {
	t.Helper()
	missing, ok := errors.AsType[fetch.Missing](err)
	if !ok {
		t.Fatal(err)
	}
	fmt.Printf("NOT RUN: the tests on a real PostgreSQL (%v) — install with: apt-get install -y postgresql\n", missing)
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}

// CloseShared stops the shared server, where there is one, and removes its data. TestMain calls it once,
// after the tests.
func CloseShared() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := errors.Join(shared.server.Stop(ctx), shared.server.Remove())
	shared.server, shared.err = nil, errors.New("the shared PostgreSQL was closed")
	return err
}

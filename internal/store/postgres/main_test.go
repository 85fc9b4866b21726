package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// enough bounds whatever must happen soon, even on a busy machine.
const enough = time.Minute

func TestMain(m *testing.M) { harness.Main(m) }

// open opens the journal in a database until the test ends.
func open(t testing.TB, url string) *DB {
	t.Helper()
	db, err := Open(wait.Context(t), url)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// connect returns a connection of the test's own.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(wait.Context(t), url)
	testkit.Must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), enough)
		defer cancel()
		_ = c.Close(ctx) // it may be closed already
	})
	return c
}

func do(t testing.TB, c *pgx.Conn, statement string, arguments ...any) {
	t.Helper()
	if _, err := c.Exec(wait.Context(t), statement, arguments...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// one returns the single value of a query.
func one[T any](t testing.TB, c *pgx.Conn, query string, arguments ...any) (value T) {
	t.Helper()
	if err := c.QueryRow(wait.Context(t), query, arguments...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

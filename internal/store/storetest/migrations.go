package storetest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// Database is a place for a store, empty at first.
type Database struct {
	// Open brings the schema up to date and opens the store; OpenReader opens what is there.
	Open       func(ctx context.Context) (Store, error)
	OpenReader func(ctx context.Context) (Reader, error)
	// First makes the tables by the first migration alone.
	First func(ctx context.Context) error
	// Exec runs a statement that both stores understand, while nothing is open. Bytes is how it names some bytes, given
	// in hexadecimal.
	Exec  func(ctx context.Context, statement string) error
	Bytes func(hex string) string
	// Exclusive tells that one process at a time may open it for writing: others are refused, in one line.
	Exclusive bool
}

// RunMigrations holds what create makes to the promises of the schema's versions, and of several openers.
func RunMigrations(t *testing.T, create func(t *testing.T) Database) {
	t.Run("a binary works on the next version's schema", func(t *testing.T) { testNextVersion(t, create(t)) })
	t.Run("a journal of the first version", func(t *testing.T) { testFirstVersion(t, create(t)) })
	t.Run("a worker of the first version goes on", func(t *testing.T) { testFirstGoesOn(t, create(t)) })
	t.Run("a worker of the first version settles dead letters", func(t *testing.T) { testFirstSettles(t, create(t)) })
	t.Run("a worker of the version before and bulk runs", func(t *testing.T) { testBulkBefore(t, create(t)) })
	t.Run("a binary that is too old is refused", func(t *testing.T) { testTooOld(t, create(t)) })
	t.Run("many open a new database at once", func(t *testing.T) { testOpeners(t, create(t)) })
	t.Run("a reader makes nothing", func(t *testing.T) { testReaderFirst(t, create(t)) })
	t.Run("openers add up together", func(t *testing.T) { testOpenersAdd(t, create(t)) })
}

// next is what a newer binary may have done to the schema: it expands.
var next = []string{
	"ALTER TABLE attempts ADD COLUMN colour text NOT NULL DEFAULT 'blue'",
	"ALTER TABLE episodes ADD COLUMN colour text",
	"ALTER TABLE ledger_head ADD COLUMN colour text NOT NULL DEFAULT ''",
	"CREATE TABLE colours (name text PRIMARY KEY)",
	"INSERT INTO schema_migrations (version_id, is_applied) VALUES (999, true)",
}

// upgrade applies a version that this binary does not know.
func upgrade(t *testing.T, d Database, minCompatible string) {
	t.Helper()
	for _, q := range append(next, "UPDATE schema_compatibility SET min_compatible = "+minCompatible) {
		if err := d.Exec(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

func (d *Database) open(t *testing.T) Store {
	t.Helper()
	s, err := d.Open(t.Context())
	testkit.Must(t, err)
	return s
}

func closed(t *testing.T, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("closing failed: %v", err)
	}
}

func testNextVersion(t *testing.T, d Database) {
	s := d.open(t)
	id := identity()
	failure(t, s, subject("CLM-20-1"), id)
	before := story(t, s, subject("CLM-20-1"))
	closed(t, s)
	upgrade(t, d, "1")

	s = d.open(t)
	wantSame(t, "the story under the next version", story(t, s, subject("CLM-20-1")), before)
	if _, h := recall(t, s, journal.Lookup{Subject: subject("CLM-20-1"), Identity: id}); h[0].Same == nil {
		t.Error("the attempt is not recalled under the next version")
	}
	failure(t, s, subject("CLM-20-1"), identity())
	failure(t, s, subject("CLM-20-2"), identity())
	closed(t, s)
	r, err := d.OpenReader(t.Context())
	testkit.Must(t, err)
	defer closed(t, r)
	if n := len(story(t, r, subject("CLM-20-1")).Attempts); n != 2 {
		t.Errorf("a reader sees %d attempts under the next version, want 2", n)
	}
}

func testTooOld(t *testing.T, d Database) {
	closed(t, d.open(t))
	upgrade(t, d, "999")
	_, err := d.Open(t.Context())
	if err == nil {
		t.Fatal("a schema that needs version 999 was opened for writing")
	}
	for _, want := range []string{"999", "newer"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error %q does not say %q", err, want)
		}
	}
	wantOneLine(t, err)
}

func wantOneLine(t testing.TB, err error) {
	t.Helper()
	if strings.ContainsAny(err.Error(), "\r\n") {
		t.Errorf("the error is more than one line: %q", err)
	}
}

func testOpeners(t *testing.T, d Database) {
	var mu sync.Mutex
	var group sync.WaitGroup
	var open []Store
	for range 6 {
		group.Go(func() {
			s, err := d.Open(t.Context())
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				open = append(open, s)
			case !d.Exclusive:
				t.Errorf("one of several that open a new database failed: %v", err)
			default:
				wantOneLine(t, err)
			}
		})
	}
	group.Wait()
	if len(open) == 0 || d.Exclusive && len(open) != 1 {
		t.Fatalf("%d of 6 opened a new database", len(open))
	}
	for _, s := range open {
		failure(t, s, subject("CLM-21-1"), identity())
	}
	if n := len(story(t, open[0], subject("CLM-21-1")).Attempts); n != len(open) {
		t.Errorf("%d attempts are there, want %d", n, len(open))
	}
	for _, s := range open {
		closed(t, s)
	}
}

func testReaderFirst(t *testing.T, d Database) {
	if r, err := d.OpenReader(t.Context()); err == nil {
		closed(t, r)
		t.Fatal("a reader opened a database that holds no journal")
	} else {
		wantOneLine(t, err)
	}
	s := d.open(t)
	failure(t, s, subject("CLM-22-1"), identity())
	r, err := d.OpenReader(t.Context())
	if err != nil {
		t.Fatalf("a reader was refused beside a writer: %v", err)
	}
	defer closed(t, r)
	failure(t, s, subject("CLM-22-1"), identity())
	if n := len(story(t, r, subject("CLM-22-1")).Attempts); n != 2 {
		t.Errorf("a reader sees %d attempts, want 2", n)
	}
	closed(t, s)
	if n := len(story(t, r, subject("CLM-22-1")).Attempts); n != 2 {
		t.Errorf("a reader sees %d attempts once the writer is gone, want 2", n)
	}
	s = d.open(t)
	defer closed(t, s)
	failure(t, s, subject("CLM-22-1"), identity())
	if n := len(story(t, r, subject("CLM-22-1")).Attempts); n != 3 {
		t.Errorf("a reader sees %d attempts once there is a writer again, want 3", n)
	}
}

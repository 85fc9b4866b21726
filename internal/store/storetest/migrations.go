package storetest

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"

	"retry-worker/internal/journal"
	"retry-worker/internal/store/sqlstore"
	"retry-worker/internal/testkit"
)

// Database is an empty place for a store.
type Database struct {
	// Open brings the schema up to date and opens the store; OpenReader opens what is there.
	Open       func(ctx context.Context) (Store, error)
	OpenReader func(ctx context.Context) (Reader, error)
	// Exec runs a statement that both stores understand, as another program would; Pool is such a program's.
	Exec func(ctx context.Context, statement string) error
	Pool func(t *testing.T) *sql.DB
	// Dialect is the store's. Body appends to a column of JSON. Unreadable are bodies that make a record unreadable.
	Dialect    *sqlstore.Dialect
	Body       string
	Unreadable []string
	// Exclusive reports whether only one process may open it for writing; others are refused, in one line.
	Exclusive bool
}

// exec runs statements.
func (d *Database) exec(t *testing.T, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if err := d.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// opened returns the store, which is closed when the test ends.
func (d *Database) opened(t *testing.T) rebuildable {
	t.Helper()
	s := d.open(t)
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	return s.(rebuildable)
}

func (d *Database) open(t *testing.T) Store {
	t.Helper()
	s, err := d.Open(t.Context())
	testkit.Must(t, err)
	return s
}

// testTooOld opens a journal that a newer binary has used.
func testTooOld(t *testing.T, d *Database) {
	testkit.Must(t, d.open(t).Close())
	d.exec(t, "UPDATE journal_schema SET version = 999")
	_, err := d.Open(t.Context())
	_, err2 := d.OpenReader(t.Context())
	for _, err := range []error{err, err2} {
		if err == nil {
			t.Fatal("it was opened")
		}
		for _, want := range []string{"999", "newer"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error %q does not say %q", err, want)
			}
		}
		wantOneLine(t, err)
	}
}

func wantOneLine(t testing.TB, err error) {
	t.Helper()
	if strings.ContainsAny(err.Error(), "\r\n") {
		t.Errorf("the error is more than one line: %q", err)
	}
}

func testOpeners(t *testing.T, d *Database) {
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
		if s.IdentityKey() != open[0].IdentityKey() || s.IdentityKey() == (journal.IdentityKey{}) {
			t.Error("two have other keys of identities, or none")
		}
		failure(t, s, subject("CLM-21-1"), identity())
	}
	if n := len(story(t, open[0], subject("CLM-21-1")).Attempts); n != len(open) {
		t.Errorf("%d attempts are there, want %d", n, len(open))
	}
	key := open[0].IdentityKey()
	for _, s := range open {
		testkit.Must(t, s.Close())
	}
	again := d.open(t)
	defer again.Close()
	if again.IdentityKey() != key {
		t.Error("the key of identities is another once the journal is opened anew")
	}
}

func testReaderFirst(t *testing.T, d *Database) {
	if r, err := d.OpenReader(t.Context()); err == nil {
		testkit.Must(t, r.Close())
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
	t.Cleanup(func() { testkit.Must(t, r.Close()) })
	failure(t, s, subject("CLM-22-1"), identity())
	if n := len(story(t, r, subject("CLM-22-1")).Attempts); n != 2 {
		t.Errorf("a reader sees %d attempts, want 2", n)
	}
	testkit.Must(t, s.Close())
	if n := len(story(t, r, subject("CLM-22-1")).Attempts); n != 2 {
		t.Errorf("a reader sees %d attempts once the writer is gone, want 2", n)
	}
	s = d.open(t)
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	failure(t, s, subject("CLM-22-1"), identity())
	if n := len(story(t, r, subject("CLM-22-1")).Attempts); n != 3 {
		t.Errorf("a reader sees %d attempts once there is a writer again, want 3", n)
	}
}

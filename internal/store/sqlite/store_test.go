package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/store/storetest"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Database {
		path := filepath.Join(t.TempDir(), "journal.db")
		return storetest.Database{
			Open:       func(ctx context.Context) (storetest.Store, error) { return Open(ctx, path) },
			OpenReader: func(ctx context.Context) (storetest.Reader, error) { return OpenReader(ctx, path) },
			Exec:       func(ctx context.Context, statement string) error { return execute(ctx, path, statement) },
			Pool: func(t *testing.T) *sql.DB {
				pool, err := (&file{path}).pool(forWriting, 1)
				testkit.Must(t, err)
				t.Cleanup(func() { _ = pool.Close() })
				return pool
			},
			Dialect: &dialect, Body: "%s || ' '", Unreadable: []string{"{", "7", `{"n":"x"}`}, Exclusive: true,
		}
	})
}

// TestUpgrade writes the journal of 1.0.0 anew where it updates, which it never does once that is released.
func TestUpgrade(t *testing.T) {
	poolOf := func(path string) *sql.DB {
		pool, err := (&file{path}).pool(forWriting, 1)
		testkit.Must(t, err)
		t.Cleanup(func() { _ = pool.Close() })
		return pool
	}
	if golden.Updating() {
		path := filepath.Join(t.TempDir(), "journal.db")
		storetest.Fill(t, opened(t, path))
		storetest.Release(t, poolOf(path))
	}
	path := filepath.Join(t.TempDir(), "journal.db")
	testkit.Must(t, execute(t.Context(), path, fmt.Sprintf("PRAGMA application_id = %d", applicationID)))
	storetest.RunUpgrade(t, &dialect, poolOf(path),
		func(ctx context.Context) (storetest.Store, error) { return Open(ctx, path) })
}

// execute runs a statement on the database while nobody has it open.
func execute(ctx context.Context, path, statement string) error {
	pool, err := (&file{path}).pool(forWriting, 1)
	if err != nil {
		return err
	}
	_, err = pool.ExecContext(ctx, statement)
	return errors.Join(err, pool.Close())
}

// opened is the database at path, until the test ends.
func opened(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(t.Context(), path)
	testkit.Must(t, err)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("closing failed: %v", err)
		}
	})
	return db
}

// fail records a failure each of that many claims, from the next one on, as the journal does.
func fail(ctx context.Context, db *DB, claims int, next *int) error {
	lookups := make([]journal.Lookup, claims)
	for i := range lookups {
		*next++
		id := journal.Identity{byte(*next), byte(*next >> 8), byte(*next >> 16)}
		// The subjects come round.
		subject := journal.Subject{Tenant: "<default>", Policy: "tiss-submission", ID: fmt.Sprintf("CLM-%d", (*next-1)%2000)}
		lookups[i] = journal.Lookup{Subject: subject, Identity: id}
	}
	_, err := storetest.Record(ctx, db, lookups...)
	return err
}

func TestErasedFromTheFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	db := opened(t, path)
	storetest.RunErased(t, db, func() (content string) {
		for _, statement := range []string{"VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
			testkit.Must(t, execute(t.Context(), path, statement))
		}
		for _, file := range folder(t, path) {
			content += file
		}
		return content
	})
}

// TestLeasesGoByThisProcess: they go by its clock, that of a bubble too, and whoever held one before has ended.
func TestLeasesGoByThisProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "journal.db")
		take := func(db *DB, holder string, span time.Duration, want bool) {
			t.Helper()
			if held, err := db.Lease(t.Context(), "gates", holder, span); held != want || err != nil {
				t.Errorf("%s asks for the lease: %t (%v), want %t", holder, held, err, want)
			}
		}
		db := opened(t, path)
		take(db, "a", 15*time.Second, true)
		time.Sleep(14 * time.Second)
		take(db, "b", 15*time.Second, false)
		time.Sleep(time.Second)
		take(db, "b", 15*time.Second, true)
		testkit.Must(t, db.Close())
		db = opened(t, path)
		take(db, "c", 15*time.Second, true)
	})
}

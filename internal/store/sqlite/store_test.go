package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"retry-worker/internal/journal"
	"retry-worker/internal/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store { return opened(t, filepath.Join(t.TempDir(), "journal.db")) })
}

func TestMigrations(t *testing.T) {
	storetest.RunMigrations(t, func(t *testing.T) storetest.Database {
		path := filepath.Join(t.TempDir(), "journal.db")
		return storetest.Database{
			Open: func(ctx context.Context) (storetest.Store, error) {
				db, err := Open(ctx, path)
				if err != nil {
					return nil, err
				}
				return db, nil
			},
			OpenReader: func(ctx context.Context) (storetest.Reader, error) {
				r, err := OpenReader(ctx, path)
				if err != nil {
					return nil, err
				}
				return r, nil
			},
			Exec:      func(ctx context.Context, statement string) error { return execute(ctx, path, statement) },
			Exclusive: true,
		}
	})
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
	if err != nil {
		t.Fatal(err)
	}
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
		lookups[i] = journal.Lookup{Subject: claim(*next - 1), Identity: id}
	}
	_, err := storetest.Record(ctx, db, lookups...)
	return err
}

// claim returns the subject with that number; they come round.
func claim(n int) journal.Subject {
	return journal.Subject{Tenant: "<default>", Policy: "tiss-submission", ID: fmt.Sprintf("CLM-%d", n%2000)}
}

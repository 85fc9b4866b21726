package sqlite

import (
	"context"
	"path/filepath"
	"testing"

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
	c, err := connect(ctx, (&file{path}).dsn(forWriting))
	if err != nil {
		return err
	}
	defer c.close()
	return c.exec(statement)
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

package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	realserver "retry-worker/e2e/harness/postgres"
	"retry-worker/internal/store/storetest"
	"retry-worker/internal/testkit"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Database {
		address := realserver.Database(t)
		return storetest.Database{
			Open:       func(ctx context.Context) (storetest.Store, error) { return Open(ctx, address) },
			OpenReader: func(ctx context.Context) (storetest.Reader, error) { return OpenReader(ctx, address) },
			Exec: func(ctx context.Context, statement string) error {
				c, err := pgx.Connect(ctx, address)
				if err != nil {
					return err
				}
				defer c.Close(ctx)
				_, err = c.Exec(ctx, statement)
				return err
			},
			Pool:    func(t *testing.T) *sql.DB { return poolOf(t, address) },
			Dialect: &dialect, Body: "(%s::text || ' ')::json", Unreadable: []string{"7", `{"n":"x"}`},
		}
	})
}

func TestUpgrade(t *testing.T) {
	address := realserver.Database(t)
	storetest.RunUpgrade(t, &dialect, poolOf(t, address),
		func(ctx context.Context) (storetest.Store, error) { return Open(ctx, address) })
}

func poolOf(t *testing.T, address string) *sql.DB {
	t.Helper()
	c, err := pgx.ParseConfig(address)
	testkit.Must(t, err)
	pool := stdlib.OpenDB(*c)
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// TestErasedFromTheFiles reads those of the tables; the server's write-ahead log is its own.
func TestErasedFromTheFiles(t *testing.T) {
	s, address := ownServer(t)
	c := connect(t, address)
	storetest.RunErased(t, open(t, address), func() (content string) {
		do(t, c, "VACUUM (FULL, ANALYZE)")
		do(t, c, "CHECKPOINT")
		files := filepath.Join(s.DataDir(), "base", fmt.Sprint(one[int64](t, c, "SELECT oid::bigint FROM pg_database WHERE datname = current_database()")), "*")
		names, err := filepath.Glob(files)
		testkit.Must(t, err)
		for _, name := range names {
			content += testkit.Read(t, name)
		}
		return content
	})
}

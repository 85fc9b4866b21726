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
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/store/storetest"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
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

// TestASearchReadsNoWholeTable: the beginning of an id is looked up in the index of 20,000 subjects.
func TestASearchReadsNoWholeTable(t *testing.T) {
	address := realserver.Database(t)
	c, db := connect(t, address), open(t, address)
	do(t, c, "INSERT INTO subjects SELECT n, 'default', 'tiss', 'CLM-' || n, 0, '', '', '{}' FROM generate_series(1, 20000) n")
	do(t, c, `INSERT INTO dead_letters SELECT n, 'id-' || n, n, 'open', 'tiss', 'ti', 'TIMEOUT', '', 0, 0, 0, 0, '', 0, '{}'
		FROM generate_series(1, 20000) n`)
	do(t, c, "ANALYZE")
	_, _, err := db.DeadLetterPage(t.Context(), journal.DeadLetterFilter{Query: "clm-1999", Sort: deadletter.ByAge}, "", 9)
	testkit.Must(t, err)
	testkit.Must(t, db.Close())
	wait.Until(t, "the store's connections have told what they read", func() bool {
		return one[int64](t, c, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()") == 1
	})
	if n := one[int64](t, c, "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'subjects'"); n != 0 {
		t.Errorf("%d subjects were read one by one", n)
	}
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

package sqlite

import (
	"bufio"
	"context"
	"database/sql/driver"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	sqlitedriver "modernc.org/sqlite"

	"retry-worker/internal/audit"
	"retry-worker/internal/store/sqlstore"
	"retry-worker/internal/store/storetest"
	"retry-worker/internal/testkit"
)

// written are the tables that a rebuild writes.
var written = []string{"records", "ledger", "ledger_head", "subjects", "dead_letters", "answered", "sums",
	"fingerprints", "bulk_runs", "bulk_items"}

// TestKilledWhileRebuilding kills a rebuild after each of its statements; the journal is as before each time. Then a rebuild
// succeeds.
func TestKilledWhileRebuilding(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	db := opened(t, path)
	storetest.Fill(t, db)
	testkit.Must(t, db.Close())
	for _, table := range []string{"sums", "dead_letters", "bulk_items"} {
		testkit.Must(t, execute(t.Context(), path, "DELETE FROM "+table))
	}
	content := func() string {
		db := opened(t, path)
		defer db.Close()
		return contentOf(t, db)
	}
	before, statements := content(), 0
	for said := ""; said == ""; statements++ {
		c := start(t, "rebuild", path, nil)
		_, err := fmt.Fprintln(c.in, statements+1)
		testkit.Must(t, err)
		said = c.line()
		_ = c.Wait()
		if now := content(); (now == before) != (said == "") {
			t.Fatalf("killed behind %d statements (it said %q) the journal is\n%s\nand was\n%s", statements+1, said, now, before)
		}
	}
	if statements < len(written) {
		t.Errorf("it was killed behind %d statements only", statements)
	}
	storetest.Verify(t, opened(t, path))
}

// contentOf is what the tables hold.
func contentOf(t *testing.T, db *DB) string {
	t.Helper()
	var b strings.Builder
	testkit.Must(t, db.Snapshot(t.Context(), func(tx sqlstore.Querier) error {
		for _, table := range written {
			these := "*"
			if table == "ledger_head" { // which Open writes a probe into
				these = "link, record, subject, hash, at"
			}
			rows, err := tx.QueryContext(t.Context(), "SELECT "+these+" FROM "+table+" ORDER BY 1, 2")
			if err != nil {
				return err
			}
			columns, err := rows.Columns()
			if err != nil {
				return err
			}
			for rows.Next() {
				row, to := make([]any, len(columns)), make([]any, len(columns))
				for i := range row {
					to[i] = &row[i]
				}
				if err := rows.Scan(to...); err != nil {
					return err
				}
				fmt.Fprintln(&b, table, row)
			}
			if err := rows.Close(); err != nil {
				return err
			}
		}
		return nil
	}))
	return b.String()
}

// rebuildAndDie rebuilds, and kills itself behind as many statements as it is told.
func rebuildAndDie(ctx context.Context, path string) error {
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	left, err := strconv.Atoi(in.Text())
	if err != nil {
		return err
	}
	last := driver.Value("")
	wrote := func(_ *sqlitedriver.FunctionContext, what []driver.Value) (driver.Value, error) {
		if what[0] != last { // the first row of a statement
			last, left = what[0], left-1
		}
		if left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil, nil
	}
	if err := sqlitedriver.RegisterScalarFunction("wrote", 1, wrote); err != nil {
		return err
	}
	db, err := Open(ctx, path)
	if err != nil {
		return err
	}
	for _, table := range written {
		for _, verb := range []string{"INSERT", "UPDATE", "DELETE"} {
			trigger := "CREATE TEMP TRIGGER %[1]s_%[2]s AFTER %[2]s ON main.%[1]s BEGIN SELECT wrote('%[1]s %[2]s'); END"
			if _, err := db.writer.ExecContext(ctx, fmt.Sprintf(trigger, table, verb)); err != nil {
				return err
			}
		}
	}
	if err := audit.Rebuild(ctx, db, time.Unix(2e9, 0), false, nil, nil); err != nil {
		return err
	}
	fmt.Println("rebuilt")
	return db.Close()
}

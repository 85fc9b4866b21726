package sqlite

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/store/sqlstore"
	"retry-worker/internal/store/storetest"
	"retry-worker/internal/testkit"
)

// TestKilledWhilePurging: what was said to be purged is, nothing is half purged, and the next goes on.
func TestKilledWhilePurging(t *testing.T) {
	path := filled(t, false)
	const records, ahead = 1000, 4
	gone := int64(0)
	for kill := range 4 {
		c := start(t, "purge", path, nil)
		_, err := io.WriteString(c.in, strings.Repeat("\n", 3+kill+ahead))
		testkit.Must(t, err)
		for range 3 + kill {
			if said := c.line(); said != "7" {
				t.Fatalf("the child says %q, want 7", said)
			}
			gone += 7
		}
		c.kill()
		db := opened(t, path)
		left := count(t, db, "SELECT count(*) FROM records WHERE kind = 'attempt'")
		if left > records-gone || (records-left)%7 != 0 {
			t.Fatalf("%d records are left, of %d that were said to be gone", left, gone)
		}
		gone = records - left
		for _, query := range []string{
			"SELECT count(*) FROM subjects WHERE key NOT IN (SELECT subject FROM records)",
			"SELECT count(*) FROM records WHERE subject <> 0 AND subject NOT IN (SELECT key FROM subjects)",
		} {
			if n := count(t, db, query); n != 0 {
				t.Fatalf("%d rows are half purged: %s", n, query)
			}
		}
		all, err := db.Records(t.Context(), journal.RecordFilter{}, 0, 10)
		if err != nil || len(all) != 10 || all[0].Attempt == nil || all[0].Attempt.Record != gone+1 {
			t.Fatalf("the first of %d records that are left is not %d (%v)", len(all), gone+1, err)
		}
		testkit.Must(t, db.Close())
	}
	db := opened(t, path)
	if n, err := db.Purge(t.Context(), records, records, testkit.PurgeAt(time.Now())); err != nil || int64(n) != records-gone {
		t.Errorf("%d records were purged at last (%v), want %d", n, err, records-gone)
	}
	if head := headOf(t, db); head.Record < records {
		t.Errorf("the ledger ends at record %d, want %d at least", head.Record, records)
	}
}

func count(t *testing.T, db *DB, query string) (n int64) {
	t.Helper()
	err := db.Snapshot(t.Context(), func(tx sqlstore.Querier) error { return tx.QueryRowContext(t.Context(), query).Scan(&n) })
	testkit.Must(t, err)
	return n
}

// TestErasedFromTheFile: not a byte of a subject's name is left in the file once its free pages are cleared.
func TestErasedFromTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	db := opened(t, path)
	f := testkit.New(t, testkit.Over(db))
	id := f.DieWaiting("tiss-submission", "CLM-GONE-1", "DUPLICATE_CLAIM", 0)
	run := f.StartBulk(deadletter.BulkCommand{Action: journal.BulkDiscard, Filter: journal.DeadLetterFilter{Query: "CLM-GONE-1"},
		Reason: "x", By: "ana"})
	f.DecideBulk(run, 1)
	f.Deliver(true)
	f.FinishBulk(run)
	e := journal.Erasure{Subject: testkit.Subject("tiss-submission", "CLM-GONE-1"), Reason: "x", By: "ana"}
	_, err := f.Journal.Erase(t.Context(), db, e)
	testkit.Must(t, err)
	storetest.Verify(t, db)
	testkit.Must(t, execute(t.Context(), path, "VACUUM"))
	testkit.Must(t, db.Close())
	content := testkit.Read(t, path)
	for _, text := range []string{"CLM-GONE-1", id} {
		if strings.Contains(content, text) {
			t.Errorf("%s is still there", text)
		}
	}
}

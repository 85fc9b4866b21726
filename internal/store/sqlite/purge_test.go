package sqlite

import (
	"io"
	"path/filepath"
	"slices"
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
	const before, ahead = 1000, 4
	db := opened(t, path)
	entries := slices.Repeat([]journal.Entry{{Kind: journal.RejectionEntry, Body: `{"n":1}`}}, 1000)
	testkit.Must(t, db.Transact(t.Context(), nil, func(head journal.Head, _ []journal.History) *journal.Changes {
		c, err := journal.Append(head, time.Now(), nil, nil, entries...)
		testkit.Must(t, err)
		return c
	}))
	testkit.Must(t, db.Close())
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
		purged := int64(1000) - count(t, db, "SELECT count(*) FROM records WHERE kind = 'rejection'")
		if purged < gone || purged%7 != 0 {
			t.Fatalf("%d records are gone, of which %d were said to be", purged, gone)
		}
		gone = purged
		storetest.Verify(t, db)
		testkit.Must(t, db.Close())
	}
	db = opened(t, path)
	if n, _, err := testkit.PurgeAt(t.Context(), db, time.Now(), before, 2000, 2000); err != nil || int64(n) != 1000-gone {
		t.Errorf("%d records were purged at last (%v), want %d", n, err, 1000-gone)
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

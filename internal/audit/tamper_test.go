package audit_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/store/sqlite"
)

// onDisk is a SQLite file with the ledger of filled: 12 records in as many links; and, with a purge, 13 of which
// the first 8 are gone. Records 1 and 2 are of a worker of the first version.
func onDisk(t *testing.T, purge bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("write", func(t *testing.T) { // the journal ends with it
		w := write(t, db)
		for i := range 8 {
			w.first = i < 2
			w.fails(fmt.Sprintf("CLM-1-%d", i+1), "TIMEOUT", -1)
		}
		w.pass(48 * time.Hour)
		w.rejects()
		w.succeeds("CLM-1-1")
		w.fails("CLM-1-2", "DUPLICATE_CLAIM", 1)
		w.fails("CLM-2-1", "what is this", 0)
		if !purge {
			return
		}
		if n, err := w.Purge(t.Context(), db, begin.Add(time.Hour)); err != nil || n != 8 {
			t.Fatalf("%d purged, %v", n, err)
		}
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// tampered is a copy of the file in which somebody ran these statements.
func tampered(t *testing.T, path string, statements ...string) journal.Archive {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "journal.db")
	if err := os.WriteFile(copied, b, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", copied)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := sqlite.OpenReader(t.Context(), copied)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestVerifyAFile(t *testing.T) {
	report, err := verify(t, tampered(t, onDisk(t, false)), audit.Mark{})
	if err != nil || report.Records != 12 || report.Links != 12 || report.Purged != 0 {
		t.Errorf("got %+v, %v", report, err)
	}
	report, err = verify(t, tampered(t, onDisk(t, true)), audit.Mark{})
	if err != nil || report.Records != 5 || report.Links != 13 || report.Purged != 8 {
		t.Errorf("after a purge: got %+v, %v", report, err)
	}
}

const swapRecords = "UPDATE attempts SET record = CASE record WHEN 3 THEN -6 ELSE -3 END WHERE record IN (3, 6)"

func TestVerifyFindsWhatWasDoneToAFile(t *testing.T) {
	path := onDisk(t, false)
	for _, tt := range []struct {
		name       string
		statements []string
		record     int64
		link       int64
		says       string
	}{
		{"an error edited", []string{"UPDATE attempts SET error = 'nothing' WHERE record = 5"}, 5, none, "was changed"},
		{"an attempt made a success", []string{"UPDATE entries SET body = replace(body, 'success', 'failure') WHERE record = 10"}, 10, none, "was changed"},
		{"a jitter edited by a hair", []string{"UPDATE attempts SET jitter_ratio = jitter_ratio + 1e-15 WHERE record = 8"}, 8, none, "was changed"},
		{"a catalogue edited", []string{"UPDATE attempts SET catalogue = '3f9a1c77d0e3' WHERE record = 5"}, 5, none, "was changed"},
		{"a matched text edited", []string{"UPDATE attempts SET matched_text = 'Timeout' WHERE record = 5"}, 5, none, "was changed"},
		{"a catalogue emptied", []string{"UPDATE attempts SET catalogue = '' WHERE record = 5"}, 5, none, "was changed"},
		{"a matched text emptied", []string{"UPDATE attempts SET matched_text = '' WHERE record = 5"}, 5, none, "was changed"},
		{"both emptied", []string{"UPDATE attempts SET catalogue = '', matched_text = '' WHERE record = 5"}, 5, none, "was changed"},
		{"both emptied everywhere", []string{"UPDATE attempts SET catalogue = '', matched_text = ''"}, 3, none, "was changed"},
		{"both swapped", []string{"UPDATE attempts SET catalogue = matched_text, matched_text = catalogue WHERE record = 5"}, 5, none, "was changed"},
		{"a text moved from the one to the other", []string{"UPDATE attempts SET catalogue = catalogue || matched_text, matched_text = '' WHERE record = 5"}, 5, none, "was changed"},
		{"an old record given a catalogue", []string{"UPDATE attempts SET catalogue = '3f9a1c77d0e2' WHERE record = 2"}, 2, none, "was changed"},
		{"an old record given a text", []string{"UPDATE attempts SET matched_text = 'TIMEOUT' WHERE record = 1"}, 1, none, "was changed"},
		{"a claim named otherwise", []string{"UPDATE subjects SET id = 'CLM-9-9' WHERE id = 'CLM-1-4'"}, 4, none, "was changed"},
		{"an attempt given to another claim", []string{"UPDATE attempts SET subject = 2 WHERE record = 7"}, 7, none, "was changed"},
		{"an attempt deleted", []string{"DELETE FROM attempts WHERE record = 6"}, 6, none, "is missing"},
		{"an entry deleted", []string{"DELETE FROM entries WHERE record = 9"}, 9, none, "is missing"},
		{"a claim deleted", []string{"DELETE FROM subjects WHERE id = 'CLM-1-3'"}, 3, none, "is missing"},
		{"everything deleted", []string{"DELETE FROM attempts", "DELETE FROM entries"}, 1, none, "is missing"},
		{"two swapped", []string{swapRecords, "UPDATE attempts SET record = -record WHERE record < 0"}, 3, none, "was changed"},
		{"an entry put in at an attempt's number", []string{"INSERT INTO entries SELECT 4, kind, at, tenant, policy, id, body FROM entries WHERE record = 10"}, 4, none, "was changed"},
		{"an entry put in behind the last", []string{"INSERT INTO entries SELECT 13, kind, at, tenant, policy, id, body FROM entries WHERE record = 10"}, 13, none, "was put in"},
		{"an entry put in before the first", []string{"INSERT INTO entries SELECT -7, kind, at, tenant, policy, id, body FROM entries WHERE record = 10"}, -7, none, "was put in"},
		{"an entry put in as number 0", []string{"INSERT INTO entries SELECT 0, kind, at, tenant, policy, id, body FROM entries WHERE record = 10"}, 0, none, "was put in"},
		{"a record that cannot be read", []string{"UPDATE attempts SET identity = x'0102' WHERE record = 11"}, 11, none, "cannot be read"},
		{"a link's digest edited", []string{"UPDATE ledger SET digests = zeroblob(32) WHERE number = 5"}, 0, 5, "was changed"},
		{"a link's hash edited", []string{"UPDATE ledger SET hash = zeroblob(32) WHERE number = 5"}, 0, 5, "was changed"},
		{"a link's time edited", []string{"UPDATE ledger SET at = at + 1 WHERE number = 2"}, 0, 2, "was changed"},
		{"a link that cannot be read", []string{"UPDATE ledger SET hash = x'01' WHERE number = 7"}, 0, 7, "cannot be read"},
		{"a link deleted", []string{"DELETE FROM ledger WHERE number = 4"}, 0, 4, "is missing"},
		{"the last links cut off", []string{"DELETE FROM ledger WHERE number > 9"}, 0, 10, "the head says that there are 12"},
		{"the head's hash edited", []string{"UPDATE ledger_head SET hash = zeroblob(32)"}, 0, 12, "is not what the head says"},
		{"records said to be purged", []string{"DELETE FROM attempts WHERE record < 4", "UPDATE ledger_head SET purged = 3"}, 1, none, "is missing"},
		{"records said to be purged that are there", []string{"UPDATE ledger_head SET purged = 3"}, 1, none, "was put in: the first record there can be is 4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := verify(t, tampered(t, path, tt.statements...), audit.Mark{})
			wantBroken(t, err, tt.record, tt.link, tt.says)
		})
	}
}

// A tail that was cut off with its records and the head moved back shows only against a head that was kept.
func TestVerifyFindsACutTailOfAFile(t *testing.T) {
	path := onDisk(t, false)
	whole := tampered(t, path)
	head, err := whole.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cut := tampered(t, path, "DELETE FROM attempts WHERE record > 9", "DELETE FROM entries WHERE record > 9",
		"UPDATE ledger_head SET link = 9, record = 9, hash = (SELECT hash FROM ledger WHERE number = 9)", "DELETE FROM ledger WHERE number > 9")
	if report, err := verify(t, cut, audit.Mark{}); err != nil || report.Records != 9 {
		t.Errorf("without a head: got %+v, %v", report, err)
	}
	_, err = verify(t, cut, audit.Mark{Link: head.Link, Hash: head.Hash})
	wantBroken(t, err, 0, 10, "its tail was cut off")
}

func TestVerifyFindsWhatWasDoneToAPurgedFile(t *testing.T) {
	path := onDisk(t, true)
	for _, tt := range []struct {
		name       string
		statements []string
		record     int64
		says       string
	}{
		{"one more deleted", []string{"DELETE FROM entries WHERE record = 9"}, 9, "what was purged ends at record 8"},
		{"one more deleted, and the cursor moved", []string{"DELETE FROM entries WHERE record = 9", "UPDATE ledger_head SET purged = 9"}, 9, "what was purged ends at record 8"},
		{"one put in where others were purged", []string{"INSERT INTO entries SELECT 3, kind, at, tenant, policy, id, body FROM entries WHERE record = 10"}, 3, "was put in"},
		{"the purge's entry edited", []string{`UPDATE entries SET body = '{"through":11}' WHERE kind = 'purge'`}, 13, "was changed"},
		{"the purge's entry deleted", []string{"DELETE FROM entries WHERE kind = 'purge'"}, 1, "is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := verify(t, tampered(t, path, tt.statements...), audit.Mark{})
			wantBroken(t, err, tt.record, none, tt.says)
		})
	}
}

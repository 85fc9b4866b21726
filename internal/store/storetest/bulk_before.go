package storetest

import (
	"strings"
	"testing"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// columnsBefore are those of dead letters that the version before bulk runs knows.
const columnsBefore = "id, subject, state, episode, record, outcome, reason, team, retry_count, max_retries, process_instance_key, created_at," +
	" changed_at, policy, fingerprint, delivery, answer, review_job_key, review_seen, review_discard, review_force, review_fresh, review_reason," +
	" reviewed_by, reviewed_at, review_next"

// before changes a dead letter as that version does, with the statement it uses: it saves all columns that it knows.
func before(t *testing.T, d Database, id string, set map[string]string) {
	t.Helper()
	names := strings.Split(strings.ReplaceAll(columnsBefore, " ", ""), ",")
	values, sets := make([]string, len(names)), []string{}
	for i, name := range names {
		if values[i] = name; set[name] != "" {
			values[i] = set[name]
		}
		if name != "id" && name != "policy" && name != "fingerprint" {
			sets = append(sets, name+" = excluded."+name)
		}
	}
	execute(t, d, "INSERT INTO dead_letters ("+columnsBefore+") SELECT "+strings.Join(values, ", ")+" FROM dead_letters WHERE id = '"+id+
		"' ON CONFLICT (id) DO UPDATE SET "+strings.Join(sets, ", "))
}

func execute(t *testing.T, d Database, statement string) {
	t.Helper()
	if err := d.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// testBulkBefore has a worker of the version before go on with dead letters that a bulk run decided on: their outcomes are
// verified all the same, and what it decides by itself is not the run's.
func testBulkBefore(t *testing.T, d Database) {
	s := d.open(t)
	var letters []string
	ids := []string{"CLM-1-1", "CLM-2-1", "CLM-3-1", "CLM-4-1", "CLM-5-1", "CLM-6-1"}
	t.Run("it is decided", func(t *testing.T) { // the journal ends with it
		w := newBulkWorld(t, s)
		for i, id := range ids {
			letters = append(letters, w.die(id, int64(i+1)))
			w.wait(id, letters[i])
		}
		w.begin("run-1", journal.BulkRetry)
		for i := range ids[:5] {
			testkit.Must(t, w.decide("run-1", ids[i], letters[i], false))
		}
		w.want("once they are decided", "run-1", journal.BulkDecided, journal.BulkDecided, journal.BulkDecided, journal.BulkDecided, journal.BulkDecided, journal.BulkPlanned)
	})
	closed(t, s)
	execute(t, d, "UPDATE ledger_head SET at = 1772453400999")
	before(t, d, letters[0], map[string]string{"state": "'recovered'"})
	execute(t, d, "UPDATE episodes SET dead_letter = 'another' WHERE dead_letter = '"+letters[1]+"'") // it saves episodes first
	before(t, d, letters[1], map[string]string{"state": "'superseded'"})
	execute(t, d, "UPDATE episodes SET dead_letter = '' WHERE dead_letter = '"+letters[2]+"'")
	before(t, d, letters[2], map[string]string{"state": "'superseded'"})
	before(t, d, letters[3], map[string]string{"state": "'open'", "delivery": "'nobody'"})
	before(t, d, letters[3], map[string]string{"state": "'reprocessing'", "delivery": "'taken'", "reviewed_at": "1772453400999"}) // decided anew
	before(t, d, letters[4], map[string]string{"delivery": "'taken'"})
	before(t, d, letters[5], map[string]string{"state": "'discarded'", "delivery": "'nobody'", "reviewed_at": "1772453400999"})

	s = d.open(t)
	t.Run("it is verified", func(t *testing.T) {
		w := newBulkWorld(t, s)
		w.want("that it changed", "run-1", journal.BulkRecovered, journal.BulkDeadAgain, journal.BulkSuperseded, journal.BulkNobody, journal.BulkTaken, journal.BulkPlanned)
		items, err := s.BulkItems(t.Context(), "run-1", journal.BulkRecovered, 0, 9)
		if err != nil || len(items) != 1 || items[0].ChangedAt.UnixMilli() != 1772453400999 {
			t.Errorf("what recovered is %+v (%v)", items, err)
		}
		for i, want := range []string{"run-1", "run-1", "run-1", "", "run-1", ""} {
			if item, _, err := s.DeadLetter(t.Context(), letters[i]); err != nil || item.Run != want {
				t.Errorf("dead letter %d is of the run %q (%v), want %q", i, item.Run, err, want)
			}
		}
	})
	closed(t, s)
	execute(t, d, "DELETE FROM dead_letters WHERE id = '"+letters[5]+"'")
	s = d.open(t)
	defer closed(t, s)
	r, _, err := s.BulkRun(t.Context(), "run-1")
	if err != nil || r.Total != 6 || r.Counts[journal.BulkPlanned] != 0 || r.Counts[journal.BulkRefused] != 1 {
		t.Errorf("once it has purged one that was planned, the run is %+v (%v)", r, err)
	}
}

package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/store/sqlstore"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// testEdits edits a database in single places: every column of every table, deletions and insertions. The audit must
// find and name each edit that has an effect.
func testEdits(t *testing.T, d *Database) {
	Fill(t, d.opened(t))
	pool := d.Pool(t)
	testkit.Must(t, inTx(t, pool, func(tx *sql.Tx) error { return d.verify(t.Context(), tx) }))
	for _, made := range regexp.MustCompile(`CREATE TABLE (\w+)`).FindAllStringSubmatch(d.Dialect.Schema(), -1) {
		if i := slices.IndexFunc(tables, func(e editedTable) bool { return e.name == made[1] }); i < 0 && made[1] != "journal_schema" {
			t.Errorf("nobody edits the table %s", made[1])
		}
	}
	for _, edit := range edits(t, pool, d.Body) {
		t.Run(edit.name, func(t *testing.T) {
			var found error
			testkit.Must(t, inTx(t, pool, func(tx *sql.Tx) error {
				r, err := tx.ExecContext(t.Context(), edit.statement)
				if err != nil {
					return fmt.Errorf("%s: %w", edit.statement, err)
				}
				if n, err := r.RowsAffected(); err != nil || n == 0 {
					return fmt.Errorf("%s: it changed nothing (%w)", edit.statement, err)
				}
				found = d.verify(t.Context(), tx)
				return nil
			}))
			broken, is := errors.AsType[*journal.Broken](found)
			switch {
			case edit.idle && found != nil:
				t.Errorf("it is without effect, and yet: %v", found)
			case !edit.idle && !is:
				t.Errorf("it is not found (%v)", found)
			case is:
				wantOneLine(t, broken)
			}
		})
	}
}

// verify verifies the journal that a transaction sees.
func (d *Database) verify(ctx context.Context, tx *sql.Tx) error {
	seen := func(_ context.Context, do func(sqlstore.Querier) error) error { return do(tx) }
	_, err := audit.Verify(ctx, &sqlstore.Reader{Dialect: d.Dialect, Snapshot: seen}, journal.Head{}, nil)
	return err
}

// rebuildable is a store whose projections can be rebuilt.
type rebuildable interface {
	Store
	audit.Rebuilder
}

// testRebuild rebuilds damaged projections, and then the audit holds. It refuses a broken record unless told
// otherwise.
func testRebuild(t *testing.T, d *Database) {
	s, exec := d.opened(t), func(statement string) { d.exec(t, statement) }
	Fill(t, s)
	exec("UPDATE sums SET n = 7")
	ctx, cancel := context.WithCancel(t.Context())
	cut := func(*journal.Happening) []journal.Message { cancel(); return nil }
	WantKind(t, audit.Rebuild(ctx, s, at(9), false, cut, nil), journal.Unavailable)
	if _, err := audit.Verify(t.Context(), s, journal.Head{}, nil); err == nil {
		t.Error("a rebuild that was cut off before its last step mended the sums")
	}
	exec("UPDATE dead_letters SET chance = 900")
	before, _, err := s.DeadLettersOpen(t.Context(), journal.DeadLetterFilter{}, 0, 9)
	testkit.Must(t, err)
	for i, damage := range slices.Concat(golden.Cases(t, "../storetest/testdata/damages.txt")...) {
		exec(damage)
		testkit.Must(t, audit.Rebuild(t.Context(), s, at(9), false, nil, nil))
		Verify(t, s)
		if after, _, err := s.DeadLettersOpen(t.Context(), journal.DeadLetterFilter{}, 0, 9); i == 0 {
			testkit.Must(t, err)
			wantSame(t, "what is open, with its chances,", after, before)
		}
	}
	head, _ := recall(t, s)
	exec("UPDATE records SET at = at + 1 WHERE record = 5")
	var broken *journal.Broken
	if err := audit.Rebuild(t.Context(), s, at(9), false, nil, nil); !errors.As(err, &broken) && (err == nil || !strings.Contains(err.Error(), "record 5")) {
		t.Errorf("a journal that does not hold is rebuilt: %v", err)
	}
	if now, _ := recall(t, s); now != head {
		t.Errorf("the head is %+v after a rebuild that was refused, want %+v", now, head)
	}
	testkit.Must(t, audit.Rebuild(t.Context(), s, at(9), true, nil, nil))
	head, err = s.Head(t.Context())
	testkit.Must(t, err)
	last, err := s.Records(t.Context(), journal.RecordFilter{}, head.Record-1, 1)
	testkit.Must(t, err)
	if e := last[0]; e.Kind != journal.RebuildEntry || !strings.Contains(e.Body, "true") {
		t.Errorf("the last record is %+v, want that of an unverified rebuild", e)
	}
}

// testRebuildOfNothing rebuilds an empty journal.
func testRebuildOfNothing(t *testing.T, s Store) {
	if r, is := s.(audit.Rebuilder); is { // the oracle is not one
		testkit.Must(t, audit.Rebuild(t.Context(), r, at(9), false, nil, nil))
		Verify(t, s)
	}
}

// testForged edits answers in the outbox before they are sent: none of them is sent, the audit names them, and after
// a rebuild each process gets the decision that was made.
func testForged(t *testing.T, d *Database) {
	s := d.opened(t)
	w := newBulkWorld(t, s)
	decide := func(n int64) string {
		id := fmt.Sprintf("CLM-%d-1", n)
		letter := w.die(id, n)
		w.Await(letter)
		testkit.Must(t, w.decide("", id, letter, n%2 == 0))
		return letter
	}
	sent := decide(9)
	taken := pending(t, s, journal.ReviewQueue, 9)[0]
	a, err := journal.ReadAnswer(&taken)
	testkit.Must(t, err)
	testkit.Must(t, w.j.Delivered(t.Context(), a, true))
	want := map[string]string{}
	for n := range int64(4) {
		want[decide(n)] = map[bool]string{true: "discard", false: "reprocess"}[n%2 == 0]
	}
	var letters []string
	for _, m := range pending(t, s, journal.ReviewQueue, 9) {
		a, err := journal.ReadAnswer(&m)
		testkit.Must(t, err)
		letters = append(letters, a.DeadLetter)
	}
	said := func() map[string]string {
		all := map[string]string{}
		for _, m := range pending(t, s, journal.ReviewQueue, 99) {
			if a, err := journal.ReadAnswer(&m); m.Held() == nil && err == nil {
				all[a.DeadLetter] = a.Decision
			}
		}
		return all
	}
	wantSame(t, "what is said", said(), want)
	later := w.die("CLM-10-1", 10)
	_, err = w.DeadLetters.Note(t.Context(), deadletter.Command{ID: later, Reason: "paga em mãos", By: "ana"}, journal.DiscardLater)
	testkit.Must(t, err)
	where := func(letter string) string { return " WHERE queue = 'reviews' AND id LIKE '" + letter + "%'" }
	for what, edits := range map[string][]string{
		"an answer turned round": {"UPDATE outbox SET body = replace(body, 'discard', 'reprocess')" + where(letters[0])},
		"a name":                 {"UPDATE outbox SET body = replace(body, 'ana', 'eva')" + where(letters[1])},
		"another's answer": {"UPDATE outbox SET body = (SELECT body FROM outbox" + where(letters[2]) + ")" + where(letters[1]),
			"UPDATE outbox SET key = (SELECT key FROM outbox" + where(letters[2]) + ")" + where(letters[1])},
		"an answer gone":              {"DELETE FROM outbox" + where(letters[3])},
		"an answer put in":            {"INSERT INTO outbox SELECT 90, id, queue, key, subject, type, body, at FROM outbox" + where(letters[0])},
		"an answer put in far behind": {"INSERT INTO outbox SELECT 9000000000000, id, queue, key, subject, type, body, at FROM outbox" + where(letters[0])},
		"an answer put in again": {fmt.Sprintf("INSERT INTO outbox VALUES (%d, '%s', 'reviews', '%s', %d, '%s', '%s', %d)", taken.Sequence, taken.ID, taken.Key, taken.Subject,
			taken.Type, taken.Body, taken.At.UnixMilli())},
		"all at once": {"UPDATE outbox SET body = replace(body, 'e', 'a')"},
		"none left":   {"DELETE FROM outbox"},
	} {
		before := said()
		d.exec(t, edits...)
		for letter, decision := range said() {
			if before[letter] != decision && letter != sent { // its process got that one
				t.Errorf("%s: the process of %s would be told %q, decided was %q", what, letter, decision, before[letter])
			}
		}
		_, err := audit.Verify(t.Context(), s, journal.Head{}, nil)
		if broken, is := errors.AsType[*journal.Broken](err); !is || broken.What != "message" {
			t.Errorf("%s: verify says %v, want what is wrong with the message", what, err)
		}
		testkit.Must(t, audit.Rebuild(t.Context(), s, at(9), false, nil, nil))
		Verify(t, s)
		wantSame(t, "what is said once it is rebuilt after "+what, said(), want)
		if waits := pending(t, s, journal.LaterQueue, 9); len(waits) != 1 || waits[0].Key != later || waits[0].Held() != nil {
			t.Errorf("rebuilt after %s, what can be undone is %+v", what, waits)
		}
	}
	w.Advance(journal.UndoFor)
	testkit.Must(t, w.DeadLetters.DecideDue(t.Context(), s))
	if d := w.Item(later); d.State != journal.DeadLetterDiscarded {
		t.Errorf("what was to be discarded is %s", d.State)
	}
	w.Deliver(true)
	if left := said(); len(left) != 0 {
		t.Errorf("%v waits once all were told", left)
	}
	Verify(t, s)
}

// inTx runs do in a transaction, and rolls it back.
func inTx(t *testing.T, pool *sql.DB, do func(tx *sql.Tx) error) error {
	t.Helper()
	tx, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		return err
	}
	return errors.Join(do(tx), tx.Rollback())
}

// Fill gives every table of the journal rows, with a purge before.
func Fill(t *testing.T, s Store) {
	t.Helper()
	w := newBulkWorld(t, s)
	w.die("CLM-OLD-1", 1)
	w.Succeed(decision.DefaultPolicy, "CLM-OLD-1")
	w.die("CLM-OLD-1", 2) // record 3
	_, _, err := testkit.PurgeAt(t.Context(), s, at(9), 0, 2, 9)
	testkit.Must(t, err)
	w.Await(w.die("CLM-WAIT-1", 8))
	gone := w.die("CLM-GONE-1", 9) // record 7
	w.step(journal.BulkStart, journal.BulkRun{ID: "run-0", Through: 9, BulkCommand: journal.BulkCommand{Action: journal.BulkDiscard,
		Reason: "x", PerMinute: 1, Filter: journal.DeadLetterFilter{Query: "CLM-GONE-1"}}})
	testkit.Must(t, w.decide("run-0", "CLM-GONE-1", gone, true))
	w.step(journal.BulkCancel, journal.BulkRun{ID: "run-0"})
	for i := range int64(3) {
		w.Await(w.die(fmt.Sprintf("CLM-%d-1", i), i+2))
	}
	w.begin("run-1")
	items, err := s.BulkItems(t.Context(), "run-1", "", 0, 9)
	testkit.Must(t, err)
	for _, i := range items[:2] {
		testkit.Must(t, w.decide("run-1", i.Subject.ID, i.DeadLetter, true))
	}
	w.Deliver(true)
	_, err = w.DeadLetters.Decide(t.Context(), deadletter.Command{Action: journal.BulkRetry, ID: items[2].DeadLetter, Reason: "x", By: "ana", RetryOptions: journal.RetryOptions{Deadline: at(9_999_999)}})
	testkit.Must(t, err)
	_, err = w.erase("CLM-GONE-1")
	testkit.Must(t, err)
	failure(t, s, subject("CLM-NEXT-1"), identity())
	must(t, s, nil, func(x *transaction) { x.Link.Answered = []journal.Run{{First: 3, Last: 3}, {First: 5, Last: 5}} })
	_, err = s.MoveWatermark(t.Context(), deadletter.Watermark{Team: "ti"}, deadletter.Watermark{Team: "ti", At: at(1)}, notice("a", "ti"))
	testkit.Must(t, err)
	wantLease(t, s, "relay", "a", time.Hour, true)
	testkit.Must(t, s.AddAdmissions(t.Context(), []journal.Admission{{Destination: "tiss", Minute: 1, Count: 1}}))
	for i := range 2 { // the first expires before the second ends
		testkit.Must(t, s.EndSession(t.Context(), [32]byte{byte(i)}, at(int64(i)*1000+100), at(int64(i)*1000)))
	}
}

// edit is a change of a database; idle means that it has no effect.
type edit struct {
	name, statement string
	idle            bool
}

type editedTable struct{ name, key, idle string }

// The tables that are edited, their keys, and the columns that no record vouches for; all columns of tables that are
// no part of the audit.
var tables = []editedTable{
	{"records", "record", ""},
	{"ledger", "number", ""},
	{"ledger_head", "one", "subject probed_at"},
	{"identity_key", "key", ""},
	{"subjects", "key", ""},
	{"dead_letters", "record", "chance"},
	{"answered", "first", ""},
	{"sums", "slot, name, policy, cause, destination, bucket", ""},
	{"fingerprints", "id", "began prior told news"},
	{"bulk_runs", "id", ""},
	{"bulk_items", "run, number", ""},
	{"outbox", "sequence", ""},
	{"leases", "name", "all"},
	{"admissions", "minute, destination", "all"},
	{"notice_marks", "team, channel, kind", "all"},
}

// columnsOf returns a table's columns, with the expression that each is set to.
func columnsOf(t *testing.T, pool *sql.DB, table, body string) (columns [][2]string) {
	t.Helper()
	rows, err := pool.QueryContext(t.Context(), "SELECT * FROM "+table)
	testkit.Must(t, err)
	defer rows.Close()
	types, err := rows.ColumnTypes()
	testkit.Must(t, err)
	for _, c := range types {
		name, kind, to := c.Name(), c.DatabaseTypeName(), "%s || 'x'"
		switch {
		case name == "one": // a constraint protects it
			continue
		case name == "body" && table != "outbox":
			to = body
		case strings.Contains(kind, "INT"):
			to = "%s + 1000000"
		case kind == "BLOB", kind == "BYTEA":
			to = "(SELECT digests FROM ledger WHERE number = 2)"
		}
		columns = append(columns, [2]string{name, strings.ReplaceAll(to, "%s", name)})
	}
	testkit.Must(t, rows.Err())
	return columns
}

// edits returns all edits.
func edits(t *testing.T, pool *sql.DB, body string) (all []edit) {
	t.Helper()
	for _, table := range tables {
		columns := columnsOf(t, pool, table.name, body)
		for _, end := range []string{"", " DESC"} {
			some := ""
			if table.name == "sums" { // a sum of 0 has no effect
				some = " WHERE n <> 0"
			}
			row := fmt.Sprintf(" WHERE (%s) = (SELECT %s FROM %s%s ORDER BY %s LIMIT 1)", table.key, table.key, table.name, some, strings.ReplaceAll(table.key, ", ", end+", ")+end)
			for _, c := range columns {
				idle := table.idle == "all" || slices.Contains(strings.Fields(table.idle), c[0])
				all = append(all, edit{table.name + "." + c[0] + end, "UPDATE " + table.name + " SET " + c[0] + " = " + c[1] + row, idle})
			}
			if table.idle != "all" {
				all = append(all, edit{"a row of " + table.name + " deleted" + end, "DELETE FROM " + table.name + row, false})
			}
		}
	}
	for _, e := range golden.Cases(t, "../storetest/testdata/edits.txt") {
		all = append(all, edit{e[0], e[1], false})
	}
	return all
}

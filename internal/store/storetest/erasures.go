package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/seeded"
)

// RunErasures makes dead letters, decides them alone and in bulk, erases and purges claims, in any order. After each
// step the audit holds, no name of an erased claim is left, and a purge took exactly what is old and over. open
// returns a new store for each order.
func RunErasures(t *testing.T, open func() Store) {
	seeded.Check(t, func(r *rapid.T) {
		w, run, erased := newBulkWorld(t, open()), "", map[string]bool{}
		for n := range int64(rapid.IntRange(60, 120).Draw(r, "steps")) {
			id := fmt.Sprintf("CLM-%d-1", rapid.IntRange(0, 2).Draw(r, "claim"))
			run = w.anyStep(r, n+1, id, run, erased)
			w.wantNowhere("after that", slices.Collect(maps.Keys(erased))...)
			if t.Failed() {
				r.FailNow()
			}
		}
	})
}

// RunErased erases a claim that was discarded in bulk: neither its name nor its dead letter's id is in the store's
// files. read returns their content, after free space was overwritten.
func RunErased(t *testing.T, s Store, read func() string) {
	const gone = "CLM-GONE-1"
	w := newBulkWorld(t, s)
	letter := w.die(gone, 1)
	w.begin("run-1")
	testkit.Must(t, w.decide("run-1", gone, letter, true))
	w.step(journal.BulkFinish, journal.BulkRun{ID: "run-1"})
	content := read()
	for _, text := range []string{gone, letter} {
		if !strings.Contains(content, text) {
			t.Errorf("%s was never there", text)
		}
	}
	_, err := w.erase(gone)
	testkit.Must(t, err)
	Verify(t, s)
	content = read()
	for _, text := range []string{gone, letter} {
		if at := strings.Index(content, text); at >= 0 {
			t.Errorf("%s is still there: %q", text, content[max(at-80, 0):min(at+80, len(content))])
		}
	}
}

// anyStep does something to a claim or to the current run, whose id it returns; n is the step's number.
func (w *bulkWorld) anyStep(r *rapid.T, n int64, id, run string, erased map[string]bool) string {
	ctx, letter := w.t.Context(), ""
	if st := story(w.t, w.s, subject(id)); len(st.Episodes) > 0 {
		letter = st.Episodes[len(st.Episodes)-1].DeadLetter
	}
	switch step := rapid.IntRange(0, 14).Draw(r, "step"); {
	case step == 0:
		w.die(id, n)
		delete(erased, id)
	case step == 1 && letter != "":
		w.Await(letter)
	case step <= 4 && letter != "": // or it is refused: it is decided, or nobody waits
		_ = w.decide("", id, letter, step > 2)
	case step == 5 && run == "":
		w.begin(fmt.Sprint("run-", n))
		return fmt.Sprint("run-", n)
	case step == 6 && letter != "" && run != "":
		_ = w.decide(run, id, letter, true)
	case step == 7 && run != "":
		w.step(journal.BulkCancel, journal.BulkRun{ID: run})
		return ""
	case step <= 9:
		w.Deliver(rapid.Bool().Draw(r, "taken"))
	case step <= 11:
		_, err := w.j.Conclude(ctx, &journal.Outcome{Subject: subject(id), Success: true})
		testkit.Must(w.t, err)
	case step == 12:
		w.purge(rapid.Int64Range(0, 2*n).Draw(r, "through"))
	default: // or it is refused: something is left to do
		if _, err := w.erase(id); err == nil {
			erased[id] = true
		}
	}
	return run
}

// purge purges through a record, and checks what is left. Of a claim, the ended episodes go whose records are all old
// and after which a later one begins; the last episode goes too, if it has ended and nothing newer is known of the
// claim. A claim keeps everything while an answer about it waits, or a run with it goes on. The sums stay, but for
// what expires.
func (w *bulkWorld) purge(through int64) {
	w.t.Helper()
	before, sums, busy := map[string]journal.Story{}, w.sums(), map[string]bool{}
	runs, err := w.s.ActiveBulkRuns(w.t.Context())
	testkit.Must(w.t, err)
	for _, run := range runs {
		items, err := w.s.BulkItems(w.t.Context(), run.ID, "", 0, 99)
		testkit.Must(w.t, err)
		for _, i := range items {
			busy[i.Subject.ID] = true
		}
	}
	for _, a := range w.Answers() {
		busy[a.Subject.ID] = true
	}
	for n := range 3 {
		id := fmt.Sprintf("CLM-%d-1", n)
		before[id] = story(w.t, w.s, subject(id))
	}
	_, _, err = testkit.PurgeAt(w.t.Context(), w.s, w.Now(), 0, through, 99)
	testkit.Must(w.t, err)
	expired := false
	for id, st := range before {
		var want, got []int64 // records
		whole := slices.Concat(recordsOf(st.Attempts, func(a journal.Attempt) int64 { return a.Record }),
			recordsOf(st.Entries, func(e journal.Entry) int64 { return e.Record }))
		slices.Sort(whole)
		from := int64(0) // records before it are gone
		begins, last := map[int64]bool{}, int64(0)
		for _, a := range st.Attempts {
			begins[a.Record], last = a.Episode != last, a.Episode
		}
		for _, e := range st.Entries {
			begins[e.Record] = strings.Contains(e.Body, `"outcome":"expired"`)
		}
		for _, record := range whole {
			if begins[record] && !busy[id] {
				from = record
			}
			if record > through {
				break
			}
		}
		n := len(whole)
		old := n > 0 && whole[n-1] <= through && !busy[id]
		open := old && st.Episodes[len(st.Episodes)-1].State.Open()
		if old && !open {
			from = whole[n-1] + 1
		}
		for _, record := range whole {
			if record >= from {
				want = append(want, record)
			}
		}
		after := story(w.t, w.s, subject(id))
		got = slices.Concat(recordsOf(after.Attempts, func(a journal.Attempt) int64 { return a.Record }),
			recordsOf(after.Entries, func(e journal.Entry) int64 { return e.Record }))
		slices.Sort(got)
		if open && len(want) == n { // its last state
			got, expired = got[:max(len(got)-1, 0)], true
		}
		wantSame(w.t, fmt.Sprintf("what is left of %s once records up to %d are purged", id, through), got, want)
	}
	if !expired {
		wantSame(w.t, "the sums", w.sums(), sums)
	}
}

func recordsOf[T any](all []T, record func(T) int64) (numbers []int64) {
	for _, one := range all {
		numbers = append(numbers, record(one))
	}
	return numbers
}

// erase erases a claim.
func (w *bulkWorld) erase(id string) (journal.Erased, error) {
	w.t.Helper()
	e := journal.Erasure{Subject: subject(id), Reason: "pedido do titular de " + id, By: "ana"}
	return w.j.Erase(w.t.Context(), w.s, e)
}

// wantRefused expects that a claim is not erased, and nothing changes.
func (w *bulkWorld) wantRefused(id string, want journal.Code, says string) {
	w.t.Helper()
	before, err := w.s.Head(w.t.Context())
	testkit.Must(w.t, err)
	_, err = w.erase(id)
	if after, _ := w.s.Head(w.t.Context()); journal.CodeOf(err) != want || !strings.Contains(err.Error(), says) || after != before {
		w.t.Errorf("erasing %s: %v, want %q", id, err, says)
	}
}

// wantNowhere expects that the audit holds, and that none of the texts is anywhere.
func (w *bulkWorld) wantNowhere(when string, texts ...string) {
	w.t.Helper()
	Verify(w.t, w.s)
	for _, text := range texts {
		if where := everywhere(w.t, w.s, text); where != "" {
			w.t.Errorf("%s %s is still in %s", when, text, where)
		}
	}
}

// everywhere looks for a text in everything that the store keeps, and returns where it is.
func everywhere(t *testing.T, s Store, text string) (where string) {
	t.Helper()
	err := s.Moment(t.Context(), func(m journal.Moment) error {
		records, err := m.Entries(0, 1000)
		testkit.Must(t, err)
		for _, r := range records {
			if strings.Contains(r.Body+r.Subject.ID, text) {
				where += fmt.Sprintf(" record %d (%s)", r.Record, r.Kind)
			}
		}
		page, err := m.Subjects(-1, 1000)
		testkit.Must(t, err)
		rows := slices.Concat(page.Subjects, page.Letters)
		for _, table := range []*journal.Table{journal.RunsTable, journal.ItemsTable, journal.FingerprintsTable} {
			more, err := m.Rows(table)
			testkit.Must(t, err)
			rows = append(rows, more...)
		}
		for _, r := range rows {
			if strings.Contains(fmt.Sprint(r...), text) {
				where += fmt.Sprint(" ", r)
			}
		}
		messages, err := m.Messages(0, 1000)
		testkit.Must(t, err)
		for i := range messages {
			if strings.Contains(messages[i].Body, text+`"`) {
				where += " the queue " + messages[i].Queue
			}
		}
		return nil
	})
	testkit.Must(t, err)
	return where
}

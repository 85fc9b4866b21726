package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// testErase erases subjects: what is refused changes nothing, and what is done leaves sums and digests, and no name.
func testErase(t *testing.T, s Store) {
	w := newBulkWorld(t, s)
	const gone, other, old = "CLM-GONE-1", "CLM-OTHER-1", "CLM-OLD-1"
	erase := func(id string) (journal.Erased, error) {
		return w.j.Erase(t.Context(), s, journal.Erasure{Subject: subject(id), Reason: "pedido do titular de " + id, By: "ana"})
	}
	refused := func(id string, want error, says string) {
		t.Helper()
		before, err := s.Head(t.Context())
		testkit.Must(t, err)
		_, err = erase(id)
		if after, _ := s.Head(t.Context()); !errors.Is(err, want) || !strings.Contains(err.Error(), says) || after != before {
			t.Errorf("erasing %s: %v, want %q", id, err, says)
		}
	}
	w.die(old, 1)
	letter := w.die(gone, 2)
	w.die(other, 3)
	purge(t, s, 1, 9, 1) // its record carries the others
	refused("CLM-UNKNOWN-1", journal.ErrSubjectUnknown, "subject_not_found")
	refused(gone, journal.ErrSubjectBusy, "discard that first")
	w.wait(gone, letter)
	w.begin("run-1", journal.BulkDiscard)
	testkit.Must(t, w.decide("run-1", gone, letter, true))
	refused(gone, journal.ErrSubjectBusy, "on its way")
	w.deliver(true)
	refused(gone, journal.ErrSubjectBusy, "run-1")
	w.step(journal.BulkCancel, journal.BulkRun{ID: "run-1"})
	purge(t, s, 2, 9, 1) // its first record: the purge's record carries it

	figures, err := s.Figures(t.Context(), 0)
	testkit.Must(t, err)
	causes, err := s.Fingerprints(t.Context(), "", 9)
	testkit.Must(t, err)
	counts, err := s.DeadLetterCounts(t.Context())
	testkit.Must(t, err)
	must(t, s, nil, func(x *transaction) {
		for i, body := range []string{`{}`, `{"items":[{"id":"` + gone + `"}]}`, `{"id":"` + gone + `0"}`} {
			key := [...]string{journal.DefaultTenant + "/tiss-submission/" + gone, "//", "//"}[i]
			x.Outbox = append(x.Outbox, journal.Message{ID: body, Queue: "events", Key: key, Body: body})
		}
	})
	done, err := erase(gone)
	if left := pending(t, s, "events", 0, 9); len(left) != 1 || left[0].Body != `{"id":"`+gone+`0"}` {
		t.Errorf("%+v waits to be told", left)
	}
	if err != nil || done.Records != 3 || done.Pseudonym.ID == gone {
		t.Fatalf("erased %+v (%v)", done, err)
	}
	same := func(when string) {
		t.Helper()
		Verify(t, s)
		for name, id := range map[string]string{"its name": gone, "its dead letter": letter} {
			if where := everywhere(t, s, id); where != "" {
				t.Errorf("%s %s is still in %s", when, name, where)
			}
		}
	}
	same("once it is erased")
	for what, pair := range map[string][2]any{
		"the figures": {figures, value(s.Figures(t.Context(), 0))}, "the causes": {causes, value(s.Fingerprints(t.Context(), "", 9))},
		"the counts": {counts, value(s.DeadLetterCounts(t.Context()))},
	} {
		wantSame(t, what, pair[1], pair[0])
	}
	if st := story(t, s, done.Pseudonym); len(st.Attempts) != 0 || len(st.Entries) != 1 || len(st.DeadLetters) != 0 { // purged
		t.Errorf("under its pseudonym there is %+v", st)
	}
	refused(gone, journal.ErrSubjectUnknown, "subject_not_found")
	refused(done.Pseudonym.ID, journal.ErrSubjectUnknown, "subject_not_found")
	w.want("after the erasure", "run-1", journal.BulkDiscarded, journal.BulkPlanned)

	again := w.die(gone, 2) // whose name comes again begins anew
	if _, h := recall(t, s, journal.Lookup{Subject: subject(gone)}); h[0].Attempts != 1 {
		t.Errorf("after the erasure it has %d attempts", h[0].Attempts)
	}
	testkit.Must(t, w.decide("", gone, again, true))
	if done, err = erase(gone); err != nil {
		t.Fatal(err)
	}
	if st := story(t, s, done.Pseudonym); len(st.DeadLetters) != 1 || st.DeadLetters[0].State != journal.DeadLetterDiscarded || st.DeadLetters[0].ID == again {
		t.Errorf("under its second pseudonym there is %+v", st)
	}
	same("erased twice")
	head, err := s.Head(t.Context())
	testkit.Must(t, err)
	for through := int64(3); through <= head.Record; through++ {
		_, err := s.Purge(t.Context(), through, 9, testkit.PurgeAt(at(11)))
		testkit.Must(t, err)
		same(fmt.Sprintf("once records up to %d are purged", through))
	}
}

func value[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// erase has a claim erased.
func (w *bulkWorld) erase(id string) journal.Erased {
	w.t.Helper()
	done, err := w.j.Erase(w.t.Context(), w.s, journal.Erasure{Subject: subject(id), Reason: "pedido do titular de " + id, By: "ana"})
	testkit.Must(w.t, err)
	return done
}

// everywhere looks for a text in all that the store keeps, and returns where it is.
func everywhere(t *testing.T, s Store, text string) (where string) {
	t.Helper()
	err := s.(audit.Journal).Moment(t.Context(), func(m journal.Moment) error {
		records, err := m.Entries(0, 1000)
		testkit.Must(t, err)
		for _, r := range records {
			if strings.Contains(r.Entry.Body+r.Entry.Subject.ID, text) {
				where += fmt.Sprintf(" record %d (%s)", r.Entry.Record, r.Entry.Kind)
			}
		}
		page, err := m.Subjects(-1, 1000)
		testkit.Must(t, err)
		rows := append(page.Subjects, page.Letters...)
		for _, table := range []*journal.Table{journal.RunsTable, journal.ItemsTable} {
			more, err := m.Rows(table)
			testkit.Must(t, err)
			rows = append(rows, more...)
		}
		for _, r := range rows {
			if strings.Contains(fmt.Sprint(r...), text) {
				where += fmt.Sprint(" ", r)
			}
		}
		return nil
	})
	testkit.Must(t, err)
	for _, queue := range []string{journal.ReviewQueue, journal.NoticeQueue, "events"} {
		messages, err := s.Pending(t.Context(), queue, 0, 1000)
		testkit.Must(t, err)
		for i := range messages {
			if strings.Contains(messages[i].Body+messages[i].Key, text+`"`) {
				where += " the outbox"
			}
		}
	}
	return where
}

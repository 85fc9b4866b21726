package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"retry-worker/internal/audit"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/seeded"
)

// testErase erases a subject: what is refused changes nothing, and what is done leaves sums and digests, and no name.
func testErase(t *testing.T, s Store) {
	w := newBulkWorld(t, s)
	const gone = "CLM-GONE-1"
	w.die("CLM-OLD-1", 1)
	letter := w.die(gone, 2)
	w.die("CLM-OTHER-1", 3)
	purge(t, s, 1, 9, 1) // its record carries the others
	w.wantRefused("CLM-UNKNOWN-1", journal.ErrSubjectUnknown, "subject_not_found")
	w.wantRefused(gone, journal.ErrSubjectBusy, "discard that first")
	w.Await(letter)
	w.begin("run-1")
	testkit.Must(t, w.decide("run-1", gone, letter, true))
	w.wantRefused(gone, journal.ErrSubjectBusy, "on its way")
	w.Deliver(true)
	w.wantRefused(gone, journal.ErrSubjectBusy, "run-1")
	w.step(journal.BulkCancel, journal.BulkRun{ID: "run-1"})
	must(t, s, nil, func(x *transaction) {
		x.Outbox = append(x.Outbox, journal.Message{ID: "gate/1", Queue: journal.GateQueue, Key: "<default>/tiss-submission/" + gone, Body: `{}`})
	})
	w.wantRefused(gone, journal.ErrSubjectBusy, "the answer of its gate")
	going := pending(t, s, journal.GateQueue, 9)[0].Sequence
	must(t, s, nil, func(x *transaction) { x.Published = append(x.Published, going) })
	purge(t, s, 2, 9, 1) // its first record: the purge's record carries it
	must(t, s, nil, func(x *transaction) {
		for key, body := range map[string]string{
			"<default>/tiss-submission/" + gone: `{}`, "b": `{"id":"` + gone + `0"}`,
		} {
			x.Outbox = append(x.Outbox, journal.Message{ID: key, Queue: "events", Key: key, Body: body})
		}
	})
	sums := func() (all [3]any) {
		var errs [3]error
		all[0], errs[0] = s.Sums(t.Context(), 0)
		all[1], errs[1] = s.Causes(t.Context(), journal.CauseFilter{}, nil, 9)
		all[2], errs[2] = s.DeadLetterCounts(t.Context())
		testkit.Must(t, errors.Join(errs[:]...))
		return all
	}
	before := sums()
	done, err := w.erase(gone)
	if err != nil || done.Records != 3 || done.Pseudonym.ID == gone {
		t.Fatalf("erased %+v (%v)", done, err)
	}
	w.wantNowhere("once it is erased", gone, letter)
	wantSame(t, "the sums", sums(), before)
	if left := pending(t, s, "events", 9); len(left) != 1 || left[0].Key != "b" {
		t.Errorf("%+v waits to be told", left)
	}
	if st := story(t, s, done.Pseudonym); len(st.Attempts) != 0 || len(st.Entries) != 1 || len(st.DeadLetters) != 0 { // purged
		t.Errorf("under its pseudonym there is %+v", st)
	}
	w.wantRefused(gone, journal.ErrSubjectUnknown, "subject_not_found")
	w.wantRefused(done.Pseudonym.ID, journal.ErrSubjectUnknown, "subject_not_found")
	w.want("after the erasure", "run-1", journal.BulkDiscarded, journal.BulkPlanned)
}

// testEraseOne erases one of several subjects that have the same id, or nearly, and an answer on its way each: those of the
// others stay, and reach their processes; then they can be erased, too.
func testEraseOne(t *testing.T, s Store) {
	w := newBulkWorld(t, s)
	const gone = "CLM-GONE-1"
	subjects := []journal.Subject{subject(gone), subject("clm-gone-1"), subject("CLM-OTHER-1"),
		{Tenant: "<default>", Policy: "job-queue", ID: gone}, {Tenant: "other", Policy: decision.DefaultPolicy, ID: gone}}
	waiting, discards := map[journal.Subject]int64{}, []string{}
	for i, of := range subjects {
		a := w.Analysis(decision.DefaultPolicy, gone, "DUPLICATE_CLAIM", 0)
		a.Subject, a.JobKey, a.ElementInstanceKey = of, int64(i+1), int64(i+1)
		r, err := w.j.Analyze(t.Context(), a)
		testkit.Must(t, err)
		_, err = w.j.ReviewSeen(t.Context(), &journal.ReviewJob{Subject: of, DeadLetter: r.Attempt.DeadLetter, JobKey: int64(i + 90)})
		testkit.Must(t, err)
		_, err = w.j.Note(t.Context(), &journal.Note{Subject: of, DeadLetter: r.Attempt.DeadLetter, Verb: journal.DiscardLater, Text: "x"})
		testkit.Must(t, err)
		discards = append(discards, r.Attempt.DeadLetter)
		_, err = w.j.Review(t.Context(), &journal.Review{Subject: of, DeadLetter: r.Attempt.DeadLetter, Discard: true,
			Reason: `como a guia "` + gone + `"`, By: "ana"})
		testkit.Must(t, err)
		waiting[of] = int64(i + 90)
	}
	answers := func() (all []*journal.Answer) {
		for _, m := range pending(t, s, journal.ReviewQueue, 99) {
			a, err := journal.ReadAnswer(&m)
			testkit.Must(t, err)
			all = append(all, a)
		}
		return all
	}
	for _, of := range subjects {
		for _, a := range answers() {
			if a.Subject() == of {
				testkit.Must(t, w.j.Delivered(t.Context(), a, true))
				delete(waiting, of)
			}
		}
		_, err := w.j.Erase(t.Context(), s, journal.Erasure{Subject: of, Reason: "pedido", By: "ana"})
		if err != nil {
			t.Fatalf("%v is not erased once its process has its answer: %v", of, err)
		}
		left := map[journal.Subject]int64{}
		for _, a := range answers() {
			left[a.Subject()] = a.JobKey
		}
		var asked []string
		for _, m := range pending(t, s, journal.DiscardQueue, 99) {
			asked = append(asked, m.Key)
		}
		discards = discards[1:]
		wantSame(t, "the dead letters that were to be discarded later", asked, discards)
		wantSame(t, fmt.Sprintf("the jobs whose answers wait once %v is erased", of), left, waiting)
		Verify(t, s)
	}
}

// testEraseWords erases claims whose error, id or context is in what is kept of others: in the cause's pattern, and in the
// filters of bulk runs. What others share stays.
func testEraseWords(t *testing.T, s Store) {
	w := newBulkWorld(t, s)
	job := int64(0)
	die := func(id, text, card string) {
		job++
		a := w.Analysis(decision.DefaultPolicy, id, text, 0)
		a.JobKey, a.ElementInstanceKey = job, job
		a.Failure.Context = decision.Context{{Variable: "plano", Type: decision.ContextText, Value: "ouro"},
			{Variable: "carteira", Type: decision.ContextText, Value: card}}
		r, err := w.j.Analyze(t.Context(), a)
		testkit.Must(t, err)
		testkit.Must(t, w.decide("", id, r.Attempt.DeadLetter, true))
	}
	die("CLM-GONE-1", "DUPLICATE_CLAIM: xyzzy falta", "cartao-plugh")
	die("CLM-GONE-1", "DUPLICATE_CLAIM: frotz de ambas", "cartao-plugh")
	die("CLM-GOES-2", "DUPLICATE_CLAIM: frotz de ambas", "cartao-other")
	filters := map[string]journal.DeadLetterFilter{"id": {Query: "clm-gone"}, "words": {Query: "guia clm-gone-1 xyzzy"}, "all": {Query: "CLM-GO"},
		"card": {Context: "carteira=cartao-plugh"}, "plan": {Context: "plano=ouro"}, "other": {Query: "clm-goes", Policy: "tiss-submission"}}
	for id, f := range filters {
		w.step(journal.BulkStart, journal.BulkRun{ID: id, Action: journal.BulkDiscard, Filter: f, Reason: "x", PerMinute: 1})
		if id == "id" || id == "words" || id == "card" {
			w.wantRefused("CLM-GONE-1", journal.ErrSubjectBusy, id)
		}
		w.step(journal.BulkCancel, journal.BulkRun{ID: id})
	}
	erase := func(id string) {
		_, err := w.j.Erase(t.Context(), s, journal.Erasure{Subject: subject(id), Reason: "de " + strings.ToLower(id), By: "ana"})
		testkit.Must(t, err)
	}
	erase("CLM-GONE-1")
	w.wantNowhere("once it is erased", "CLM-GONE", "clm-gone", "xyzzy", "plugh")
	for id, f := range filters {
		r, _, err := s.BulkRun(t.Context(), id)
		testkit.Must(t, err)
		if id == "id" || id == "words" || id == "card" {
			f.Query, f.Context = "", ""
		}
		wantSame(t, "the filter of the run "+id, r.Filter, f)
	}
	patterns := func() (all []string) {
		causes, err := s.Causes(t.Context(), journal.CauseFilter{}, nil, 9)
		testkit.Must(t, err)
		for _, c := range causes {
			all = append(all, c.Pattern)
		}
		slices.Sort(all)
		return all
	}
	wantSame(t, "the causes", patterns(), []string{"", "duplicate_claim: frotz de ambas"})
	erase("CLM-GOES-2")
	w.wantNowhere("once both are erased", "frotz", "clm-goes")
	die("CLM-NEXT-1", "DUPLICATE_CLAIM: xyzzy falta", "cartao-next")
	wantSame(t, "the causes once one came again", patterns(), []string{"", "duplicate_claim: xyzzy falta"})
	Verify(t, s)
	if r, is := s.(audit.Rebuilder); is {
		testkit.Must(t, audit.Rebuild(t.Context(), r, at(9), false, nil, nil))
		Verify(t, s)
	}
}

// testEraseAgain erases a name that came again, and purges what is left, record by record.
func testEraseAgain(t *testing.T, s Store) {
	w := newBulkWorld(t, s)
	const gone = "CLM-GONE-1"
	var letters []string
	for i := range int64(2) {
		run := fmt.Sprint("run-", i)
		letter := w.die(gone, i+1)
		if _, h := recall(t, s, journal.Lookup{Subject: subject(gone)}); h[0].Attempts != 1 {
			t.Errorf("it has %d attempts", h[0].Attempts)
		}
		w.begin(run)
		testkit.Must(t, w.decide(run, gone, letter, true))
		w.step(journal.BulkCancel, journal.BulkRun{ID: run})
		w.die("CLM-OTHER-1", i+3)
		letters = append(letters, letter)
		done, err := w.erase(gone)
		testkit.Must(t, err)
		st := story(t, s, done.Pseudonym)
		if len(st.DeadLetters) != 1 || st.DeadLetters[0].State != journal.DeadLetterDiscarded || st.DeadLetters[0].ID == letter {
			t.Errorf("under its pseudonym there is %+v", st)
		}
	}
	w.wantNowhere("erased twice", append(letters, gone)...)
	head, err := s.Head(t.Context())
	testkit.Must(t, err)
	for through := int64(1); through <= head.Record; through++ {
		_, err := s.Purge(t.Context(), through, 9, testkit.PurgeAt(at(11)))
		testkit.Must(t, err)
		w.wantNowhere(fmt.Sprintf("once records up to %d are purged", through), append(letters, gone)...)
	}
}

// RunErasures has claims die, be decided on alone and in bulk, erased and purged in any order: after each step the audit
// holds, and of what is erased no name is left. open gives each order a store of its own.
func RunErasures(t *testing.T, open func() Store) {
	seeded.Check(t, func(r *rapid.T) {
		w, run, erased := newBulkWorld(t, open()), "", map[string]bool{}
		for n := range int64(rapid.IntRange(20, 40).Draw(r, "steps")) {
			id := fmt.Sprintf("CLM-%d-1", rapid.IntRange(0, 2).Draw(r, "claim"))
			run = w.anyStep(r, n+1, id, run, erased)
			w.wantNowhere("after that", slices.Collect(maps.Keys(erased))...)
			if t.Failed() {
				r.FailNow()
			}
		}
	})
}

// anyStep does something to a claim, or to the run that goes on, which it returns; n is the step's number.
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
	case step <= 4 && letter != "": // or is refused: it is decided, or nobody waits
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
		_, err := w.s.Purge(ctx, n-rapid.Int64Range(0, n).Draw(r, "but"), 20, testkit.PurgeAt(at(9)))
		testkit.Must(w.t, err)
	default: // or is refused: something is to be done
		if _, err := w.erase(id); err == nil {
			erased[id] = true
		}
	}
	return run
}

// erase has a claim erased.
func (w *bulkWorld) erase(id string) (journal.Erased, error) {
	w.t.Helper()
	e := journal.Erasure{Subject: subject(id), Reason: "pedido do titular de " + id, By: "ana"}
	return w.j.Erase(w.t.Context(), w.s, e)
}

// wantRefused wants a claim not to be erased, and nothing to be changed.
func (w *bulkWorld) wantRefused(id string, want error, says string) {
	w.t.Helper()
	before, err := w.s.Head(w.t.Context())
	testkit.Must(w.t, err)
	_, err = w.erase(id)
	if after, _ := w.s.Head(w.t.Context()); !errors.Is(err, want) || !strings.Contains(err.Error(), says) || after != before {
		w.t.Errorf("erasing %s: %v, want %q", id, err, says)
	}
}

// wantNowhere wants the audit to hold, and none of the texts to be anywhere.
func (w *bulkWorld) wantNowhere(when string, texts ...string) {
	w.t.Helper()
	Verify(w.t, w.s)
	for _, text := range texts {
		if where := everywhere(w.t, w.s, text); where != "" {
			w.t.Errorf("%s %s is still in %s", when, text, where)
		}
	}
}

// everywhere looks for a text in all that the store keeps, and returns where it is.
func everywhere(t *testing.T, s Store, text string) (where string) {
	t.Helper()
	err := s.Moment(t.Context(), func(m journal.Moment) error {
		records, err := m.Entries(0, 1000)
		testkit.Must(t, err)
		for _, r := range records {
			if strings.Contains(r.Entry.Body+r.Entry.Subject.ID, text) {
				where += fmt.Sprintf(" record %d (%s)", r.Entry.Record, r.Entry.Kind)
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
		return nil
	})
	testkit.Must(t, err)
	for _, queue := range []string{journal.ReviewQueue, deadletter.NoticeQueue, "events"} {
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

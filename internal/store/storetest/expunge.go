package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// testErase erases a subject: a refusal changes nothing, and an erasure leaves sums and digests but no name.
func testErase(t *testing.T, s Store) {
	w := newBulkWorld(t, s)
	const gone = "CLM-GONE-1"
	letter := w.die(gone, 2)
	w.die("CLM-OTHER-1", 3)
	w.wantRefused("CLM-UNKNOWN-1", journal.SubjectNotFound, "knows no such subject")
	w.wantRefused(gone, journal.SubjectBusy, "discard that first")
	w.Await(letter)
	w.begin("run-1")
	testkit.Must(t, w.decide("run-1", gone, letter, true))
	w.wantRefused(gone, journal.SubjectBusy, "on its way")
	w.Deliver(true)
	w.wantRefused(gone, journal.SubjectBusy, "run-1")
	w.step(journal.BulkCancel, journal.BulkRun{ID: "run-1"})
	_, h := recall(t, s, journal.Lookup{Subject: subject(gone)}, journal.Lookup{Subject: subject("CLM-OTHER-1")})
	must(t, s, nil, func(x *transaction) {
		x.Outbox = append(x.Outbox, journal.Message{ID: "gate/1", Queue: journal.GateQueue, Subject: h[0].Key, Body: `{}`})
	})
	w.wantRefused(gone, journal.SubjectBusy, "the answer of its gate")
	going := pending(t, s, journal.GateQueue, 9)[0].Sequence
	must(t, s, nil, func(x *transaction) { x.Published = append(x.Published, going) })
	must(t, s, nil, func(x *transaction) {
		for _, of := range h { // a key does not say whose it is
			x.Outbox = append(x.Outbox, journal.Message{ID: fmt.Sprint(of.Key), Queue: "events", Key: "<default>/tiss-submission/" + gone, Subject: of.Key, Body: `{}`})
		}
	})
	before := w.sums()
	done, err := w.erase(gone)
	if err != nil || done.Records != 4 {
		t.Fatalf("erased %+v (%v)", done, err)
	}
	w.wantNowhere("once it is erased", gone, letter)
	wantSame(t, "the sums", w.sums(), before)
	if left := pending(t, s, "events", 9); len(left) != 1 || left[0].ID != fmt.Sprint(h[1].Key) {
		t.Errorf("%+v waits to be told", left)
	}
	w.wantRefused(gone, journal.SubjectNotFound, "knows no such subject")
	w.want("after the erasure", "run-1", journal.BulkPlanned)
}

// sums returns the sums, and the counts of causes without their patterns.
func (w *bulkWorld) sums() (all struct {
	Sums   []journal.Sum
	Causes []journal.Cause
}) {
	w.t.Helper()
	var err, bad error
	all.Sums, err = w.s.Sums(w.t.Context(), 0)
	all.Causes, bad = w.s.Causes(w.t.Context(), journal.CauseFilter{}, nil, 99)
	testkit.Must(w.t, errors.Join(err, bad))
	for i := range all.Causes {
		all.Causes[i].Pattern = ""
	}
	return all
}

// testEraseOne erases one of several subjects with the same id, or nearly, each with an answer in the outbox. The
// others' answers stay and reach their processes; then those subjects can be erased too.
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
		asked, err := w.j.Note(t.Context(), &journal.Note{Subject: of, DeadLetter: r.Attempt.DeadLetter, Verb: journal.DiscardLater, Text: "x"})
		testkit.Must(t, err)
		discards = append(discards, r.Attempt.DeadLetter)
		_, err = w.j.Review(t.Context(), &journal.Review{Subject: of, DeadLetter: r.Attempt.DeadLetter, Discard: true,
			Reason: `como a guia "` + gone + `"`, By: "ana", Note: asked.Later.Record})
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
			if a.Subject == of {
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
			left[a.Subject] = a.JobKey
		}
		var asked []string
		for _, m := range pending(t, s, journal.LaterQueue, 99) {
			asked = append(asked, m.Key)
		}
		discards = discards[1:]
		wantSame(t, "the dead letters that were to be discarded later", asked, discards)
		wantSame(t, fmt.Sprintf("the jobs whose answers wait once %v is erased", of), left, waiting)
		Verify(t, s)
	}
}

// testEraseWords erases claims whose error is a cause's pattern, and that a bulk run's filter named: nothing is kept
// of either. A pattern that others share stays.
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
	w.step(journal.BulkStart, journal.BulkRun{ID: "run-1", BulkCommand: journal.BulkCommand{Action: journal.BulkDiscard, Reason: "x", PerMinute: 1,
		Filter: journal.DeadLetterFilter{Query: "guia clm-gone-1 xyzzy", Context: "carteira=cartao-plugh", IDs: "CLM-GONE-1,xyzzy", Team: "ti"}}})
	erase := func(id string) {
		_, err := w.j.Erase(t.Context(), s, journal.Erasure{Subject: subject(id), Reason: "de " + strings.ToLower(id), By: "ana"})
		testkit.Must(t, err)
	}
	erase("CLM-GONE-1")
	w.wantNowhere("once it is erased", "CLM-GONE", "clm-gone", "xyzzy", "plugh")
	r, _, err := s.BulkRun(t.Context(), "run-1")
	testkit.Must(t, err)
	wantSame(t, "the filter of the run", r.Filter, journal.DeadLetterFilter{Query: "#", Context: "carteira=#", IDs: "#,#", Team: "ti"})
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

// testPurgeOfAPortal purges the states of a destination that has had very many, a part in each transaction, as a server
// ends one that takes long.
func testPurgeOfAPortal(t *testing.T, s Store) {
	const states, most = 1800, 200
	portal := []journal.Lookup{{Subject: journal.DestinationSubject("unimed")}}
	for version := int64(1); version <= states; version += 300 {
		testkit.Must(t, s.Transact(t.Context(), portal, func(head journal.Head, histories []journal.History) *journal.Changes {
			var all []journal.Entry
			for v := version; v < version+300; v++ {
				body := fmt.Sprintf(`{"version":%d,"state":{"phase":"down"}}`, v)
				all = append(all, journal.Entry{Kind: journal.DestinationEntry, Subject: portal[0].Subject, Body: body})
			}
			c, err := journal.Append(head, at(version), portal, histories, all...)
			testkit.Must(t, err)
			return c
		}))
	}
	purged, times := 0, 0
	for after := int64(0); after < states; times++ {
		n, last, err := testkit.PurgeAt(t.Context(), s, at(9_999_999), after, states, 20)
		testkit.Must(t, err)
		if purged, after = purged+n, last; n > most {
			t.Fatalf("%d records were purged at once, want %d at most", n, most)
		}
	}
	_, left := recall(t, s, portal...)
	if purged != states-1 || left[0].Destination.Version != states {
		t.Errorf("%d records were purged, and version %d is left, want all but that of version %d", purged, left[0].Destination.Version, states)
	}
	Verify(t, s)
}

// testPurge purges subjects and runs of every kind. An ended episode goes whole, with its traces elsewhere; what goes
// on stays. A subject of which nothing was heard expires, and goes with the next purge.
func testPurge(t *testing.T, s Store) {
	w := newBulkWorld(t, s)
	ofRun := w.die("CLM-RUN-1", 1)
	w.begin("run-old")
	testkit.Must(t, w.decide("run-old", "CLM-RUN-1", ofRun, true))
	w.step(journal.BulkFinish, journal.BulkRun{ID: "run-old"})
	long := w.fails("CLM-LONG-1", 2, 5) // dead by the limit, then it recovers
	w.succeeds("CLM-LONG-1")
	waits := w.die("CLM-WAITS-1", 3)
	w.Await(waits)
	w.fails("CLM-QUIET-1", 4, 0)
	for _, class := range []decision.ErrorClassification{decision.Transient, decision.Permanent} {
		testkit.Must(t, w.j.Teach(t.Context(), decision.DefaultPolicy, "c", journal.Teaching{Class: class, Team: "ti", Reason: "x"}))
	}
	for version := range int64(2) {
		testkit.Must(t, w.j.RecordDestination(t.Context(), "unimed", journal.DestinationBody{Version: version + 1, State: new(destination.New(at(0)))}))
	}
	testkit.Must(t, w.j.Reject(t.Context(), &journal.RejectedJob{Rejection: &decision.Rejection{Code: decision.InvalidClaimID}}))
	young, err := s.Head(t.Context())
	testkit.Must(t, err)
	late := w.die("CLM-LATE-1", 5)
	w.begin("run-late")
	testkit.Must(t, w.decide("run-late", "CLM-LATE-1", late, true))
	w.fails("CLM-LONG-1", 6, 0)
	old, err := s.Head(t.Context())
	testkit.Must(t, err)
	if n, _, err := testkit.PurgeAt(t.Context(), s, w.Now(), young.Record, old.Record, 99); n != 0 || err != nil {
		t.Errorf("of a run that goes on, and its claim, %d records were purged (%v)", n, err)
	}
	w.step(journal.BulkCancel, journal.BulkRun{ID: "run-late"})
	w.succeeds("CLM-LONG-1")
	before := w.sums()
	purge := func(want int) {
		t.Helper()
		n, last, err := testkit.PurgeAt(t.Context(), s, w.Now(), 0, old.Record, 99)
		if err != nil || n != want || last != old.Record {
			t.Errorf("%d records were purged up to %d (%v), want %d", n, last, err, want)
		}
		Verify(t, s)
	}
	// The ended run with its claim, 2 records each; 2 of the long claim; 1 each of the cause, the destination and a
	// rejection; and the late claim, whose run stays, 2.
	purge(11)
	if st := story(t, s, subject("CLM-LONG-1")); len(st.Attempts) != 1 || st.Attempts[0].Number != 2 || len(st.Episodes) != 1 || len(st.DeadLetters) != 0 {
		t.Errorf("of the claim that goes on there is %+v", st)
	}
	for id, want := range map[string]bool{ofRun: false, long: false, late: false, waits: true} {
		if _, found, err := s.DeadLetter(t.Context(), id); err != nil || found != want {
			t.Errorf("the dead letter %s is there: %t (%v)", id, found, err)
		}
	}
	if _, found, err := s.BulkRun(t.Context(), "run-old"); found || err != nil {
		t.Errorf("the run that is over is there (%v)", err)
	}
	w.want("after the purge", "run-late", journal.BulkPlanned)
	if a := w.Answers(); len(a) != 1 || a[0].DeadLetter != waits {
		t.Errorf("%+v is on its way, want what the process is told that waits", a)
	}
	ended := map[string][]journal.Episode{}
	for _, id := range []string{"CLM-QUIET-1", "CLM-WAITS-1"} {
		ended[id] = story(t, s, subject(id)).Episodes
	}
	purge(1) // the quiet claim's; the other's answer waits
	w.Deliver(true)
	purge(2)
	for id, episodes := range ended {
		if st := story(t, s, subject(id)); len(episodes) != 1 || episodes[0].State != journal.Expired || len(st.Attempts) != 0 {
			t.Errorf("of %s there is %+v, and was %+v", id, st, episodes)
		} else {
			wantSame(t, "what "+id+" ended as", st.Episodes, episodes)
		}
	}
	after := w.sums()
	wantSame(t, "the causes", after.Causes, before.Causes)
	wantSame(t, "the sums but for those that expired", len(after.Sums) >= len(before.Sums), true)
	if r, is := s.(audit.Rebuilder); is {
		testkit.Must(t, audit.Rebuild(t.Context(), r, at(9), false, nil, nil))
		wantSame(t, "the sums once they are made anew", w.sums(), after)
		Verify(t, s)
	}
	purge(0)
}

// succeeds records that a subject's retry succeeded.
func (w *bulkWorld) succeeds(id string) {
	_, err := w.j.Conclude(w.t.Context(), &journal.Outcome{Subject: subject(id), Success: true})
	testkit.Must(w.t, err)
}

// fails records a failure after so many retries, and returns the dead letter.
func (w *bulkWorld) fails(id string, job int64, retries int) string {
	r, err := w.analyze(id, job, "TIMEOUT", retries)
	testkit.Must(w.t, err)
	return r.Attempt.DeadLetter
}

// testPurgeCut cancels a purge: nothing is half purged, and the next one goes on.
func testPurgeCut(t *testing.T, s Store) {
	must(t, s, nil, func(x *transaction) {
		x.entries = slices.Repeat([]journal.Entry{{Kind: journal.RejectionEntry, Body: `{"n":1}`}}, 20)
	})
	ctx, cancel := context.WithCancel(t.Context())
	purge := func(ctx context.Context, want int) error {
		n, _, err := testkit.PurgeAt(ctx, s, at(9), 0, 15, 4)
		if n != want {
			t.Errorf("%d records were purged (%v), want %d", n, err, want)
		}
		return err
	}
	testkit.Must(t, purge(ctx, 4))
	cancel()
	WantKind(t, purge(ctx, 0), journal.Unavailable)
	for _, want := range []int{4, 4, 3, 0} {
		testkit.Must(t, purge(t.Context(), want))
	}
	records, err := s.Records(t.Context(), journal.RecordFilter{}, 0, 99)
	testkit.Must(t, err)
	if len(records) != 9 || records[0].Record != 16 {
		t.Errorf("%d records are left, from %d on", len(records), records[0].Record)
	}
}

// testPurgeBeside purges while many write, some of the same subjects: no record loses its subject.
func testPurgeBeside(t *testing.T, s Store) {
	written := make(chan error, 1)
	go func() { written <- race(t, s, func(int, int) bool { return false }) }()
	for writing := true; writing; {
		head, err := s.Head(t.Context())
		testkit.Must(t, err)
		_, _, err = testkit.PurgeAt(t.Context(), s, at(9), 0, head.Record, 9)
		testkit.Must(t, err)
		select {
		case err := <-written:
			testkit.Must(t, err)
			writing = false
		default:
		}
	}
	Verify(t, s)
}

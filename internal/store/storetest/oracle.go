package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/seeded"
)

// testOracle does the same to the store and to the memory store, which is simple; all their answers must be equal.
// Each check has its own subjects and policy.
func testOracle(t *testing.T, s Store) {
	o := &oracle{t: t, store: s, memory: testkit.NewMemoryOf(s.IdentityKey()), now: at(0)}
	o.both = &doubled{Store: s, memory: o.memory}
	o.journal = journal.New(o.both, func() time.Time { return o.now }, tellAll, journal.NoHooks())
	testkit.RunJournal(t, o.journal)
	seeded.Check(t, func(r *rapid.T) {
		o.checks++
		o.policy = fmt.Sprintf("policy-%d", o.checks)
		o.subjects, o.runs = nil, []string{"none"}
		for i := range rapid.IntRange(1, 4).Draw(r, "subjects") {
			id := fmt.Sprint(i, text().Draw(r, "id"))
			o.subjects = append(o.subjects, journal.Subject{Tenant: text().Draw(r, "tenant"), Policy: o.policy, ID: id})
		}
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			o.now = o.now.Add(rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, -time.Millisecond, time.Hour, -30 * time.Hour,
				47 * time.Hour, journal.Silence}).Draw(r, "later"))
			o.step(r, rapid.SampledFrom(o.subjects).Draw(r, "of"))
		}
		o.compareAll(t.Context(), r)
		if o.checks%20 == 0 { // it reads what earlier checks left, too
			Verify(t, s)
		}
	})
	Verify(t, s)
}

// oracle is the store under test and the memory store.
type oracle struct {
	t        *testing.T
	store    Store
	memory   *testkit.Memory
	both     *doubled
	journal  *journal.Journal
	now      time.Time
	checks   int
	policy   string
	subjects []journal.Subject
	runs     []string
	asked    []*journal.Analysis
}

// tellAll publishes every record.
func tellAll(h *journal.Happening) []journal.Message {
	return []journal.Message{{ID: fmt.Sprint(h.Record), Queue: "told", Key: h.Subject.ID,
		Type: h.Subject.Tenant, Body: "{}", At: at(0)}}
}

// The errors of the oracle's failures: transient, permanent, unknown, of several teams and causes.
var oracleErrors = []string{"TIMEOUT", "TIMEOUT", "TIMEOUT: portal's 'gateway' 100% ocupado", "INSURANCE_EXPIRED",
	"DUPLICATE_CLAIM: a guia já existe", "DUPLICATE_CLAIM", "time-out?"}

var oracleTeams = []decision.Team{"", "faturamento", "cadastro", "none"}

var oracleVerbs = []journal.BulkVerb{journal.BulkPause, journal.BulkResume, journal.BulkCancel, journal.BulkFinish}

// steps are the kinds of step, the frequent ones several times.
var steps = []string{"fail", "fail", "fail", "fail", "fail", "fail", "fail", "fail", "outcome", "reject", "seen", "review", "review", "note", "note", "deliver", "deliver", "publish",
	"arrive", "arrive", "depart", "destination", "start", "start", "decide", "decide", "refuse", "verb", "teach", "tell", "purge", "erase"}

// step does something to a subject or to a bulk run. A step that the rules refuse changes nothing.
func (o *oracle) step(r *rapid.T, of journal.Subject) {
	ctx := context.Background()
	job := rapid.Int64Range(1, 4).Draw(r, "job")
	st, _, err := o.memory.Story(ctx, of)
	testkit.Must(o.t, err)
	letter, run := "none", rapid.SampledFrom(o.runs).Draw(r, "run")
	if n := len(st.DeadLetters); n > 0 {
		letter = st.DeadLetters[rapid.IntRange(0, n-1).Draw(r, "letter")].ID
	}
	switch rapid.SampledFrom(steps).Draw(r, "step") {
	case "fail":
		var recorded journal.Recorded
		if recorded, err = o.journal.Analyze(ctx, o.analysis(r, of, job)); err == nil && rapid.Bool().Draw(r, "answered") {
			o.journal.Answered(&recorded)
		}
	case "outcome":
		_, err = o.journal.Conclude(ctx, &journal.Outcome{Subject: of, Success: rapid.Bool().Draw(r, "success"), ProcessInstanceKey: job})
	case "reject":
		err = o.journal.Reject(ctx, &journal.RejectedJob{Subject: of, JobKey: job, Rejection: &decision.Rejection{Code: decision.RejectionCode(text().Draw(r, "code"))}})
	case "seen":
		_, err = o.journal.ReviewSeen(ctx, &journal.ReviewJob{Subject: of, DeadLetter: letter, JobKey: job})
	case "note":
		err = o.note(ctx, r, of, letter)
	case "review":
		err = o.review(r, of, letter, "", rapid.Bool().Draw(r, "discard"))
	case "deliver":
		err = o.deliver(ctx, r)
	case "publish":
		var some []journal.Message
		if some, err = o.memory.Pending(ctx, "told", 0, rapid.IntRange(0, 3).Draw(r, "published")); err == nil {
			sequences := []int64{1 << 40} // there is no such message
			for _, m := range some {
				sequences = append(sequences, m.Sequence)
			}
			err = o.journal.Published(ctx, sequences)
		}
	case "purge":
		through := rapid.Int64Range(0, o.memory.End().Record).Draw(r, "through")
		_, _, err = testkit.PurgeAt(ctx, o.both, o.now, rapid.Int64Range(0, through).Draw(r, "after"), through,
			rapid.IntRange(1, 30).Draw(r, "at most"))
	case "erase":
		_, err = o.journal.Erase(ctx, o.both, journal.Erasure{Subject: of, Reason: "x", By: text().Draw(r, "by")})
	case "arrive":
		p := decisiontest.TISSSubmission()
		p.Name = o.policy
		err = o.journal.Hold(ctx, &journal.Arrival{Subject: of, JobKey: job, Destination: "d" + text().Draw(r, "destination"), Policy: p,
			Context: brought(r), Deadline: o.deadline(r)})
	case "depart":
		d := &journal.Departure{Subject: of, JobKey: job, Reason: text().Draw(r, "why"),
			Kind: rapid.SampledFrom([]destination.Kind{destination.Pass, destination.Test}).Draw(r, "kind")}
		if rapid.Bool().Draw(r, "given up") {
			d.GiveUp = decision.ReasonDeadline
		}
		_, err = o.journal.Depart(ctx, d)
	case "tell":
		o.tell(ctx, r)
	case "teach":
		err = o.teach(ctx, r)
	case "destination":
		err = o.journal.RecordDestination(ctx, "d"+o.policy, o.destination(r, job))
	case "start":
		o.start(ctx, r)
	case "decide":
		var items []journal.BulkItem
		if items, err = o.memory.BulkItems(ctx, run, journal.BulkPlanned, 0, 1); err == nil && len(items) > 0 {
			err = o.review(r, items[0].Subject, items[0].DeadLetter, run, job > 1)
		}
	case "refuse":
		err = o.journal.RefuseBulkItem(ctx, run, job, text().Draw(r, "code"))
	case "verb":
		_, err = o.journal.Bulk(ctx, &journal.BulkStep{Verb: rapid.SampledFrom(oracleVerbs).Draw(r, "verb"), Run: journal.BulkRun{ID: run}, By: text().Draw(r, "by")})
	}
	o.holds(r, err)
}

// destination returns a body to record of a destination: a new state, or a person's order.
func (o *oracle) destination(r *rapid.T, version int64) journal.DestinationBody {
	if rapid.Bool().Draw(r, "ordered") {
		return journal.DestinationBody{Command: &destination.Order{Verb: destination.SendCanary, Reason: "x", By: text().Draw(r, "by")}}
	}
	return journal.DestinationBody{Version: version, State: new(destination.New(o.now)), Went: destination.Down}
}

// holds fails if the store refused a step, or differs from the memory store.
func (o *oracle) holds(r *rapid.T, err error) {
	if e, is := errors.AsType[*journal.StoreError](err); is {
		r.Fatalf("the store refused: %v", e)
	}
	if err := o.both.differs(); err != nil {
		r.Fatal(err)
	}
}

// analysis returns that of a failure, often of an earlier one, by another delivery of its job.
func (o *oracle) analysis(r *rapid.T, of journal.Subject, job int64) *journal.Analysis {
	until := rapid.Int64Range(0, 5).Draw(r, "locked until")
	if len(o.asked) > 0 && rapid.Bool().Draw(r, "asked before") {
		a := *rapid.SampledFrom(o.asked).Draw(r, "asked")
		a.LockedUntil = until
		return &a
	}
	p := decisiontest.TISSSubmission()
	p.Name, p.LimitTeam = o.policy, rapid.SampledFrom(oracleTeams[1:3]).Draw(r, "limit's team")
	e := rapid.OneOf(rapid.SampledFrom(oracleErrors), text()).Draw(r, "error")
	v := decision.Variables{ID: decision.Text("CLM-1-1"), Error: decision.Text(e)}
	if count := rapid.IntRange(-1, 5).Draw(r, "count"); count >= 0 {
		v.RetryCount = decision.Value(fmt.Sprint(count))
	}
	f, _ := p.Read(v) // valid except for
	f.Context, f.Deadline = brought(r), o.deadline(r)
	a := &journal.Analysis{Subject: of, JobKey: job, ElementInstanceKey: job, ProcessInstanceKey: job % 2,
		LockedUntil: until, Policy: p, Failure: &f, Error: f.Error, Rule: decision.RNBIL005, ReceivedAt: o.now}
	o.asked = append(o.asked, a)
	return a
}

var oracleAssignees = []string{"", "ana", "nobody2", "já"}

// note records a note on a dead letter.
func (o *oracle) note(ctx context.Context, r *rapid.T, of journal.Subject, letter string) error {
	verb := rapid.SampledFrom([]journal.NoteVerb{journal.Comment, journal.Assign, journal.Assign, journal.RetryLater, journal.DiscardLater, journal.Undo}).Draw(r, "verb")
	n := &journal.Note{Subject: of, DeadLetter: letter, Verb: verb, Text: "x" + text().Draw(r, "said"), By: text().Draw(r, "by")}
	switch verb {
	case journal.Assign:
		n.Assignee, n.FollowUpAt = rapid.SampledFrom(oracleAssignees).Draw(r, "to"), o.bound(r, "follow up")
	case journal.RetryLater:
		n.Retry = &journal.Review{Subject: of, DeadLetter: letter, RetryOptions: journal.RetryOptions{Force: rapid.Bool().Draw(r, "force")}}
	}
	_, err := o.journal.Note(ctx, n)
	return err
}

// review decides a dead letter.
func (o *oracle) review(r *rapid.T, of journal.Subject, letter, run string, discard bool) error {
	force := !discard && rapid.Bool().Draw(r, "force")
	var anew time.Time
	if !discard && rapid.Bool().Draw(r, "anew") {
		anew = o.now.Add(time.Hour)
	}
	_, err := o.journal.Review(context.Background(), &journal.Review{Subject: of, DeadLetter: letter, Run: run, Discard: discard, RetryOptions: journal.RetryOptions{Force: force, Deadline: anew, Fresh: force && rapid.Bool().Draw(r, "fresh")}, Delay: time.Minute, Reason: "x" + text().Draw(r, "why"), By: text().Draw(r, "by")})
	return err
}

// deliver records the delivery of the first waiting answer.
func (o *oracle) deliver(ctx context.Context, r *rapid.T) error {
	all, err := o.memory.Pending(ctx, journal.ReviewQueue, 0, 1)
	if err != nil || len(all) == 0 {
		return err
	}
	a, err := journal.ReadAnswer(&all[0])
	if err == nil {
		err = o.journal.Delivered(ctx, a, rapid.Bool().Draw(r, "taken"))
	}
	return err
}

// start starts a bulk run, sometimes with a known id.
func (o *oracle) start(ctx context.Context, r *rapid.T) {
	f := o.drawFilter(r)
	f.State, f.Now = "", time.Time{}
	id := fmt.Sprint(o.policy, "/", rapid.IntRange(0, 4).Draw(r, "id"))
	action := rapid.SampledFrom([]journal.BulkAction{journal.BulkRetry, journal.BulkDiscard}).Draw(r, "action")
	run := journal.BulkRun{ID: id, Through: o.memory.End().Record + rapid.Int64Range(-3, 3).Draw(r, "through"),
		BulkCommand: journal.BulkCommand{Action: action, Filter: f, Reason: "x" + text().Draw(r, "why"), PerMinute: 1}}
	step := &journal.BulkStep{Verb: journal.BulkStart, Run: run, Items: testkit.Open(o.t, o.memory, f, run.Through), By: text().Draw(r, "by")}
	if _, err := o.journal.Bulk(ctx, step); err == nil && !slices.Contains(o.runs, id) {
		o.runs = append(o.runs, id)
	}
}

// deadline returns one of a few, so that claims share them, or none.
func (o *oracle) deadline(r *rapid.T) time.Time {
	switch hours := rapid.IntRange(0, 5).Draw(r, "deadline"); hours {
	case 0:
		return time.Time{}
	case 1: // what many write for none
		return time.Unix(0, 0).UTC()
	case 2:
		return time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
	default:
		return o.now.Add(time.Duration(hours) * time.Hour).Truncate(time.Hour)
	}
}

// brought returns a claim's context.
func brought(r *rapid.T) (c decision.Context) {
	if rapid.Bool().Draw(r, "brings") {
		c = decision.Context{{Variable: "operadora", Type: decision.ContextText, Value: text().Draw(r, "operadora")},
			{Variable: "valor", Type: decision.ContextMoney, Value: rapid.SampledFrom([]string{"0.00", "0.01", "184200.00", "100000000000.00"}).Draw(r, "valor")}}
	}
	return c
}

// text generates whatever the journal accepts: valid UTF-8 without NUL.
func text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringN(0, 12, -1), rapid.SampledFrom([]string{"", "'", `"`, "%", "_", `\`, "''; --", "é", "e\u0301", "🏥", "\u202e", "\uffff", "\x7f", "\n", "?1", "$1"})).
		Filter(func(s string) bool { return !strings.ContainsRune(s, 0) })
}

// tell reports a new cause.
func (o *oracle) tell(ctx context.Context, r *rapid.T) {
	causes, _ := o.memory.Causes(ctx, journal.CauseFilter{Policy: o.policy}, nil, 9)
	if len(causes) == 0 {
		return
	}
	c := rapid.SampledFrom(causes).Draw(r, "told")
	same(o, r, "what is told of a cause", func(s ports) (journal.News, error) {
		one := c
		one.News = &journal.News{At: o.now, First: o.now}
		told, err := s.TellCause(ctx, &one)
		if one.News.Failures = 1; !told {
			one.News.At = time.Time{}
		}
		return *one.News, err
	})
}

// teach teaches something of a cause, or takes it back.
func (o *oracle) teach(ctx context.Context, r *rapid.T) error {
	causes, _ := o.memory.Causes(ctx, journal.CauseFilter{Policy: o.policy}, nil, 9)
	if len(causes) == 0 {
		return nil
	}
	t := journal.Teaching{Reason: "x", By: text().Draw(r, "by")}
	t.Class = rapid.SampledFrom([]decision.ErrorClassification{"", decision.Transient, decision.Permanent}).Draw(r, "class")
	if t.Class == decision.Permanent {
		t.Team = "cadastro"
	}
	return o.journal.Teach(ctx, o.policy, rapid.SampledFrom(causes).Draw(r, "cause").ID, t)
}

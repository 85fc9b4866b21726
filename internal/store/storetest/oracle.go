package storetest

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// testOracle runs the same transactions on the store and on a naive one; whatever either tells must be the same.
// Each check has subjects and a policy of its own.
func testOracle(t *testing.T, s Store) {
	o := &oracle{store: s, memory: testkit.NewMemory(), answered: map[int64]bool{}}
	rapid.Check(t, func(r *rapid.T) {
		o.checks++
		o.policy = fmt.Sprintf("policy-%d", o.checks)
		o.subjects = nil
		for i := range rapid.IntRange(1, 4).Draw(r, "subjects") {
			o.subjects = append(o.subjects, journal.Subject{Tenant: text().Draw(r, "tenant"), Policy: o.policy, ID: fmt.Sprint(i, text().Draw(r, "id"))})
		}
		o.ids = []journal.Identity{identity(), identity(), identity()}
		o.letters, o.runs = nil, nil
		o.wild = o.checks > 30 && rapid.Bool().Draw(r, "wild")
		for range rapid.IntRange(1, 6).Draw(r, "transactions") {
			o.transact(t.Context(), r)
			o.carryOn(t.Context(), r)
		}
		for _, of := range o.subjects {
			o.compare(t.Context(), r, of)
		}
		o.comparePending(t.Context(), r)
		o.compareAll(t.Context(), r)
		o.purge(t.Context(), r)
	})
}

// oracle is the store and what it is held against.
type oracle struct {
	store    Store
	memory   *testkit.Memory
	checks   int
	policy   string
	subjects []journal.Subject
	ids      []journal.Identity
	letters  []string
	runs     []string // bulk runs
	last     []journal.Run
	answered map[int64]bool
	sent     int64 // messages, those included that were not saved
	// wild tells that a check's instants may be any; otherwise they are near one another, as clocks are.
	wild bool
}

// transact draws a transaction and runs it on both.
func (o *oracle) transact(ctx context.Context, r *rapid.T) {
	var lookups []journal.Lookup
	for _, of := range o.subjects {
		if rapid.Bool().Draw(r, "looked up") {
			lookups = append(lookups, journal.Lookup{Subject: of, Identity: o.identity(r), DeadLetter: o.letter(r)})
		}
	}
	for _, id := range o.runs {
		if rapid.Bool().Draw(r, "run looked up") {
			lookups = append(lookups, journal.Lookup{Run: id, Item: rapid.Int64Range(0, 4).Draw(r, "item")})
		}
	}
	var saved *journal.Changes
	type seen struct {
		Head      journal.Head
		Histories []journal.History
	}
	var want, got seen
	decide := func(head journal.Head, histories []journal.History) *journal.Changes {
		want = seen{head, clone(histories)}
		if saved = o.draw(r, begin(head, lookups, histories), lookups); rapid.IntRange(0, 9).Draw(r, "nothing") == 0 {
			saved = nil
		}
		return saved
	}
	if err := o.memory.Transact(ctx, lookups, decide); err != nil {
		r.Fatalf("the oracle refused: %v", err)
	}
	err := o.store.Transact(ctx, lookups, func(head journal.Head, histories []journal.History) *journal.Changes {
		got = seen{head, histories}
		return saved
	})
	if err != nil {
		r.Fatalf("the store refused: %v", err)
	}
	if d := difference(got, want); d != "" {
		r.Fatalf("head or histories differ (- want, + got):\n%s", d)
	}
	if saved != nil {
		o.last = saved.Link.Answered
		for _, run := range saved.Link.Answered {
			o.answered[run.First] = true
		}
		for _, d := range saved.DeadLetters {
			o.letters = append(o.letters, d.DeadLetter.ID)
		}
	}
}

// clone keeps what the oracle told, because drawing changes it.
func clone(histories []journal.History) []journal.History {
	return append([]journal.History(nil), histories...)
}

func (o *oracle) identity(r *rapid.T) journal.Identity {
	if rapid.IntRange(0, 4).Draw(r, "no identity") == 0 {
		return journal.Identity{}
	}
	return rapid.SampledFrom(o.ids).Draw(r, "identity")
}

func (o *oracle) letter(r *rapid.T) string {
	if len(o.letters) == 0 || rapid.Bool().Draw(r, "no letter") {
		return ""
	}
	return rapid.SampledFrom(o.letters).Draw(r, "letter")
}

// draw makes the changes of a transaction. Whatever the journal's rules would never do is drawn as well, as
// long as the port allows it.
func (o *oracle) draw(r *rapid.T, x *transaction, lookups []journal.Lookup) *journal.Changes {
	for i := range lookups {
		of := lookups[i].Subject
		if lookups[i].Run != "" {
			continue
		}
		for range rapid.IntRange(0, 2).Draw(r, "attempts") {
			o.drawAttempt(r, x, i)
		}
		if x.histories[i].Key != 0 && rapid.Bool().Draw(r, "episode") {
			o.drawEpisode(r, x, i)
		}
		if x.histories[i].Key != 0 && rapid.Bool().Draw(r, "dead letter") {
			o.drawLetter(r, x, i)
		}
		if rapid.IntRange(0, 3).Draw(r, "entry") == 0 {
			x.entry(journal.Entry{Kind: journal.RejectionEntry, Subject: of, At: o.instant().Draw(r, "at"), Body: quoted(text().Draw(r, "body"))})
		}
	}
	for range rapid.IntRange(0, 2).Draw(r, "messages") {
		x.Outbox = append(x.Outbox, journal.Message{ID: text().Draw(r, "id"), Queue: text().Draw(r, "queue"), Key: text().Draw(r, "key"),
			Type: text().Draw(r, "type"), Body: text().Draw(r, "body"), At: instant().Draw(r, "at")})
	}
	o.drawAnswered(r, x)
	o.drawRuns(r, x)
	o.drawSums(r, x)
	x.sums()
	x.states()
	if x.drawn, x.sealed = true, true; len(x.Link.Digests)+len(x.Link.Answered) > 0 {
		x.Link.At = o.drawWritten(r)
		x.Link = x.Link.After(x.head)
	}
	return &x.Changes
}

// drawAttempt adds an attempt, or a revision of the last one.
func (o *oracle) drawAttempt(r *rapid.T, x *transaction, i int) {
	h := &x.histories[i]
	number, revision := h.Attempts+1, int64(0)
	if h.Last != nil && rapid.IntRange(0, 2).Draw(r, "revision") == 0 {
		number, revision = h.Last.Number, h.Last.Revision+1
	}
	d := decision.Decision{
		Outcome: word[decision.Outcome](r), ErrorClassification: word[decision.ErrorClassification](r), Reason: word[decision.Reason](r),
		MatchedRule: text().Draw(r, "rule"), MatchedText: text().Draw(r, "matched"), Catalogue: text().Draw(r, "catalogue"),
		RetryCount: whole(r), MaxRetries: whole(r),
		Backoff: decision.Backoff{Delay: time.Duration(whole(r)), Raw: time.Duration(whole(r)), JitterRatio: ratio().Draw(r, "jitter"),
			AtMaximum: rapid.Bool().Draw(r, "maximum")},
		NextRetryTime: instant().Draw(r, "next"), RetryReason: text().Draw(r, "why"), Team: word[decision.Team](r),
		CountAssumed: rapid.Bool().Draw(r, "assumed"), AnalysedAt: o.instant().Draw(r, "analysed"), FirstFailure: instant().Draw(r, "first"),
	}
	x.attempt(i, journal.Attempt{
		At: o.instant().Draw(r, "at"), Fingerprint: text().Draw(r, "fingerprint"), Ends: word[journal.State](r),
		Number: number, Revision: revision, Episode: rapid.OneOf(rapid.Int64Range(1, 3), rapid.Int64()).Draw(r, "episode"), Identity: rapid.SampledFrom(o.ids).Draw(r, "identity"),
		JobKey: whole(r), ElementInstanceKey: whole(r), ProcessInstanceKey: whole(r), Rule: word[decision.BusinessRule](r),
		Error: text().Draw(r, "error"), AnalysedCount: whole(r), GivenCount: whole(r), ReceivedAt: instant().Draw(r, "received"),
		Took:       time.Duration(rapid.Int64Range(0, math.MaxInt64/1000).Draw(r, "took")) * time.Microsecond,
		DeadLetter: o.letter(r), Decision: d,
	})
}

// drawEpisode adds an episode, or changes the latest.
func (o *oracle) drawEpisode(r *rapid.T, x *transaction, i int) {
	h := &x.histories[i]
	n := h.Episode.Number
	if n == 0 || rapid.Bool().Draw(r, "new episode") {
		n++
	}
	h.Episode = journal.Episode{
		Number: n, ProcessInstanceKey: whole(r), Retries: whole(r), Scheduled: whole(r), Presumed: whole(r), DeadLetter: o.letter(r),
		State: rapid.SampledFrom([]journal.State{journal.Scheduled, journal.Dead, journal.Reprocessing, journal.Recovered,
			journal.Discarded, journal.Superseded, journal.Abandoned}).Draw(r, "state"),
		FirstFailure: instant().Draw(r, "first"), OpenedAt: instant().Draw(r, "opened"), ClosedAt: instant().Draw(r, "closed"),
		NextRetryTime: soon().Draw(r, "next"),
	}
	x.key(i)
}

// drawDeadLetter is a new one, or what became of one of the subject, which is returned too.
func (o *oracle) drawDeadLetter(r *rapid.T, x *transaction, i int) (d journal.DeadLetter, before *journal.DeadLetter) {
	d = journal.DeadLetter{ID: identity().String(), Record: x.record(), CreatedAt: o.instant().Draw(r, "created")}
	if rapid.IntRange(0, 3).Draw(r, "cause") > 0 {
		d.Fingerprint = fmt.Sprint(o.checks, "-", rapid.IntRange(0, 2).Draw(r, "cause"))
	}
	if before = x.histories[i].DeadLetter; before != nil && rapid.Bool().Draw(r, "settled") {
		d = *before
		x.histories[i].DeadLetter = nil // each is in a transaction once
	} else {
		before = nil
		d.Reason, d.Team = o.drawCause(r)
	}
	d.State = o.drawState(r)
	d.Outcome, d.Delivery, d.Answer = word[decision.Outcome](r), drawDelivery(r), whole(r)
	d.ReviewJobKey, d.ReviewSeen, d.Review = whole(r), instant().Draw(r, "seen"), drawNote(r)
	d.Episode, d.RetryCount, d.MaxRetries, d.ProcessInstanceKey = whole(r), whole(r), whole(r), whole(r)
	d.ChangedAt = instant().Draw(r, "changed")
	return d, before
}

// drawAnswered marks a few of the last records, or marks again what the last transaction did.
func (o *oracle) drawAnswered(r *rapid.T, x *transaction) {
	if rapid.IntRange(0, 3).Draw(r, "marked again") == 0 {
		x.Link.Answered = append(x.Link.Answered, o.last...)
		return
	}
	for record := max(1, x.head.Record-5); record <= x.head.Record; record++ {
		if !o.answered[record] && rapid.IntRange(0, 3).Draw(r, "answered") == 0 {
			x.Link.Answered = append(x.Link.Answered, journal.Run{First: record, Last: record})
		}
	}
}

// compare holds the story of a subject against the oracle's.
func (o *oracle) compare(ctx context.Context, r *rapid.T, of journal.Subject) {
	want, known, _ := o.memory.Story(ctx, of)
	got, found, err := o.store.Story(ctx, of)
	if err != nil {
		r.Fatalf("the story could not be read: %v", err)
	}
	if d := difference(got, want); d != "" || found != known {
		r.Fatalf("the story, found %t, want %t, differs (- want, + got):\n%s", found, known, d)
	}
	wantCount, _ := o.memory.CountAttempts(ctx, of)
	if n, err := o.store.CountAttempts(ctx, of); err != nil || n != wantCount {
		r.Fatalf("counted %d attempts (%v), want %d", n, err, wantCount)
	}
	for i := range got.Attempts {
		a, w := &got.Attempts[i], &want.Attempts[i]
		if journal.DigestEntry(journal.EntryOf(of, a)) != journal.DigestEntry(journal.EntryOf(of, w)) {
			r.Fatalf("attempt %d has another digest than when it was saved", a.Record)
		}
	}
}

// comparePending holds pending retries of a policy, or the first of all, against the oracle's.
func (o *oracle) comparePending(ctx context.Context, r *rapid.T) {
	policy := rapid.SampledFrom([]string{o.policy, o.policy, ""}).Draw(r, "pending of")
	var after *journal.PendingRetry
	limit := rapid.IntRange(1, 3).Draw(r, "limit")
	for range 5 {
		want, _ := o.memory.PendingRetries(ctx, policy, after, limit)
		got, err := o.store.PendingRetries(ctx, policy, after, limit)
		same(r, "the pending retries", got, want, err)
		if len(want) < limit {
			return
		}
		after = &want[limit-1]
	}
}

// text is whatever the journal lets through: valid UTF-8 without NUL.
func text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringN(0, 12, -1), rapid.SampledFrom([]string{"", "'", `"`, "%", "_", `\`, "''; --", "é", "e\u0301", "🏥", "\u202e", "\uffff", "\x7f", "\n", "?1", "$1"})).
		Filter(func(s string) bool {
			for _, c := range s {
				if c == 0 {
					return false
				}
			}
			return true
		})
}

// whole is any number, the ends of their range often.
func whole(r *rapid.T) int64 {
	return rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, -1, 0, 1})).Draw(r, "number")
}

// ratio is any number but NaN, which no decision has, and −0, which is 0 in a database.
func ratio() *rapid.Generator[float64] {
	return rapid.Float64().Filter(func(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) && (f != 0 || !math.Signbit(f)) })
}

// instant is any that can be stored; 0 is none.
func instant() *rapid.Generator[time.Time] {
	return rapid.Custom(func(r *rapid.T) time.Time { return journal.FromMilli(rapid.Int64Range(-1<<45, 1<<47).Draw(r, "ms")) })
}

// soon are instants that often coincide.
func soon() *rapid.Generator[time.Time] {
	return rapid.Custom(func(r *rapid.T) time.Time { return at(rapid.Int64Range(0, 5).Draw(r, "ms")) })
}

func word[S ~string](r *rapid.T) S { return S(text().Draw(r, "word")) }

package journal

import (
	"maps"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
)

// Recorded is the journal's result of an analysis: what to answer, and how it came about.
type Recorded struct {
	How How
	// Attempt holds the decision; nil where the input was rejected.
	Attempt *Attempt
	// Decision is the answer; its Rejection is set where the input was rejected.
	Decision decision.Decision
	// Ended reports whether a re-based decision gave the episode up because its retry came too late (R20).
	Ended bool
	// mark is the record to mark as answered once the engine took the answer; zero where it belongs to another job or
	// is marked already.
	mark Run
	// opens reports whether the decision begins an episode, and ends is how the open one ends then.
	opens bool
	ends  State
}

// Raised reports whether the given retryCount was raised to the journal's.
func (r *Recorded) Raised() bool {
	a := r.Attempt
	return r.How == Fresh && a != nil && a.GivenCount >= 0 && a.GivenCount < a.AnalysedCount
}

// batch gathers what one transaction saves. Each subject is in it once.
type batch struct {
	now     time.Time
	head    Head
	changes Changes
	*projection
	// subjects and letters are the changed ones, by their keys and ids.
	subjects map[int64]*History
	letters  map[string]*DeadLetter
	born     int64
	// happened are the records, for Hooks.Committed.
	happened []Happening
	// publish makes the outbox's messages; nil for none.
	publish Publisher
	// identities is the key of the journal's identities.
	identities IdentityKey
}

func newBatch(now time.Time, head Head, publish Publisher) *batch {
	return &batch{now: now, head: head, publish: publish, projection: newProjection(), subjects: map[int64]*History{},
		letters: map[string]*DeadLetter{}}
}

// next returns the next record's number.
func (b *batch) next() int64 { return b.head.Record + int64(len(b.changes.Link.Digests)) + 1 }

// seal returns the completed changes; nil if there are none.
func (b *batch) seal() *Changes {
	c := &b.changes
	if c.Seal(b.head, b.now); c.Link.empty() {
		return nil
	}
	b.grow(c)
	c.Subjects = slices.Grow(c.Subjects, len(b.subjects))
	for _, key := range slices.Sorted(maps.Keys(b.subjects)) {
		c.Subjects = append(c.Subjects, b.subjects[key].KeyedState)
	}
	for _, id := range slices.Sorted(maps.Keys(b.letters)) {
		c.DeadLetters = append(c.DeadLetters, *b.letters[id])
	}
	return c
}

// entry appends a record that is no attempt, and folds it. h is nil if the record has no subject.
func (b *batch) entry(h *History, s Subject, kind EntryKind, content any) {
	b.write(h, Entry{Kind: kind, Subject: s, Body: string(encoded(content))}, content)
}

// write appends the record e, whose decoded body is content, and folds it.
func (b *batch) write(h *History, e Entry, content any) {
	var about Happening
	e.Record, e.At, e.Body = b.next(), b.milli(), salted(e.Body)
	if h != nil && e.Subject != (Subject{}) {
		e.Key = b.key(h)
		changes, _ := content.(body)
		b.apply(h.of(e.Subject), &e, changes)
		b.keep(h)
		about.Episode = h.Episode
	}
	b.changes.Link.Digests = append(b.changes.Link.Digests, e.Digest())
	b.changes.Records = append(b.changes.Records, e)
	about.Entry = e
	about.Attempt, _ = content.(*Attempt)
	b.happened = append(b.happened, about)
	if b.publish != nil {
		for _, m := range b.publish(&about) {
			m.Subject = e.Key
			b.changes.Outbox = append(b.changes.Outbox, m)
		}
	}
}

// keep collects what the last record changed of a subject, and the answers that it sends.
func (b *batch) keep(h *History) {
	b.subjects[h.Key] = h
	for _, d := range b.answers {
		b.changes.Outbox = append(b.changes.Outbox, d.AnswerMessage(b.milli()))
	}
	for _, d := range b.touched {
		b.letters[d.ID] = d
	}
}

// key returns the subject's key in the store, a new one if it has none yet.
func (b *batch) key(h *History) int64 {
	if h.Key == 0 {
		b.born++
		h.Key = b.head.Subject + b.born
	}
	return h.Key
}

// analyze decides on a, adds the changes, and returns what to answer.
func (b *batch) analyze(a *Analysis, h *History) Recorded {
	h.recallWritten(a, &b.identities)
	if h.Teaching != nil {
		asked, f := *a, *a.Failure // copies, as the transaction may be tried again
		h.Teaching.Apply(&f)
		asked.Failure, a = &f, &asked
	}
	r := rule(a, h, b.now)
	switch {
	case r.How == Fresh && r.Decision.Rejection != nil:
		b.reject(&RejectedJob{Subject: a.Subject, Rule: a.Rule, JobKey: a.JobKey, ProcessInstanceKey: a.ProcessInstanceKey,
			Rejection: r.Decision.Rejection}, h)
	case r.How == Fresh, r.How == Rebased:
		b.decided(a, h, &r)
	}
	return r
}

// decided records a fresh decision, or a revision of the recorded one: a later retry, or the episode's end if that is
// too late.
func (b *batch) decided(a *Analysis, h *History, r *Recorded) {
	at, old, before := b.attemptOf(a, &r.Decision), r.Attempt, h.Episode
	if r.How == Rebased {
		at.Number, at.Revision, at.Episode = old.Number, old.Revision+1, old.Episode
		at.AnalysedCount, at.Fingerprint = old.AnalysedCount, old.Fingerprint
	} else {
		if at.Number, at.Episode, at.Ends = h.Attempts+1, before.Number, r.ends; r.opens {
			at.Episode++
		}
		at.AnalysedCount, at.Fingerprint = analysedCount(&r.Decision), a.cause.ID
		if at.Tells, at.RetryAfter = a.tells(b.now); h.Sent != nil {
			at.Sent = *h.Sent
		}
	}
	at.DeadLetter = at.deadLetterID()
	b.write(h, EntryOf(a.Subject, at), at)
	r.Attempt, r.mark = at, one(at)
	r.Ended = r.How == Rebased && !at.ShouldRetry() && before.State == Scheduled && h.Episode.DeadLetter == at.DeadLetter
}

// analysedCount returns the retryCount that d was decided on (R12).
func analysedCount(d *decision.Decision) int64 {
	if d.ShouldRetry() {
		return d.RetryCount - 1
	}
	return d.RetryCount
}

func (b *batch) attemptOf(a *Analysis, d *decision.Decision) *Attempt {
	f, given := a.Failure, int64(-1)
	if f.HasRetryCount {
		given = f.RetryCount
	}
	d.FirstFailure = d.FirstFailure.Truncate(time.Millisecond)
	d.Catalogue, d.MatchedText = storable(d.Catalogue), bounded(d.MatchedText)
	at, took := b.milli(), max(b.now.Sub(a.ReceivedAt), 0).Truncate(time.Microsecond)
	return &Attempt{
		Record: b.next(), At: at, Identity: a.identity, JobKey: a.JobKey, ElementInstanceKey: a.ElementInstanceKey,
		ProcessInstanceKey: a.ProcessInstanceKey, LockedUntil: a.LockedUntil, Rule: a.Rule, Error: storable(a.Error),
		Destination: storable(f.Destination), GivenCount: given, ReceivedAt: at.Add(-took).Truncate(time.Millisecond),
		Took: took, Context: storableContext(f.Context), Deadline: f.Deadline.UTC().Truncate(time.Millisecond),
		Chance: f.SuccessProbability, Decision: *d,
	}
}

// storable returns s as valid UTF-8 without NUL, which PostgreSQL refuses in text.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func storableContext(c decision.Context) decision.Context {
	c = slices.Clone(c)
	for i := range c {
		c[i].Value = storable(c[i].Value)
	}
	return c
}

// maxTextBytes bounds names, searches and the text that a rule matched: a pattern may match a whole message.
const maxTextBytes = 200

// bounded returns s storable, cut to maxTextBytes between characters.
func bounded(s string) string {
	s = storable(s)
	return strings.ToValidUTF8(s[:min(len(s), maxTextBytes)], "")
}

// milli returns the batch's instant as it is stored.
func (b *batch) milli() time.Time { return b.now.UTC().Truncate(time.Millisecond) }

// Append returns the changes that append the entries and fold them into the histories that were looked up.
func Append(head Head, at time.Time, lookups []Lookup, histories []History, entries ...Entry) (*Changes, error) {
	b := newBatch(at, head, nil)
	for _, e := range entries {
		e.Record, e.At = b.next(), b.milli()
		content, err := bodyOf(&e)
		if err != nil {
			return nil, err
		}
		var h *History
		if i := slices.IndexFunc(lookups, func(l Lookup) bool { return l.Subject == e.Subject }); i >= 0 {
			h = &histories[i]
		}
		b.write(h, e, content)
	}
	return b.seal(), nil
}

// RebuildStep returns the changes that record a rebuild of the projections. unverified says that the records did not
// hold or were not checked.
func RebuildStep(head Head, at time.Time, unverified bool, publish Publisher) *Changes {
	b := newBatch(at, head, publish)
	b.entry(nil, Subject{}, RebuildEntry, map[string]bool{"unverified": unverified})
	return b.seal()
}

// Happening is a record that was written, as hooks and publishers see it.
type Happening struct {
	Entry
	// Episode is the subject's as it stands then; its Number is 0 where there is none.
	Episode Episode
}

// Accepted reports whether an outcome or a person ended the episode because the other side had the claim already (R33).
func (h *Happening) Accepted() bool {
	return (h.Kind == OutcomeEntry || h.Kind == ReviewEntry) && h.Episode.State == Accepted
}

// Recovered reports whether an outcome ended the episode with a success.
func (h *Happening) Recovered() bool { return h.Kind == OutcomeEntry && h.Episode.State == Recovered }

// Publisher returns the outbox's messages about a record. It is pure.
type Publisher func(h *Happening) []Message

package journal

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"retry-worker/internal/decision"
)

// Recorded is what the journal has for an analysis: what to answer, and how it came about.
type Recorded struct {
	How How
	// Attempt that holds the decision; nil where the input was rejected.
	Attempt *Attempt
	// Decision to answer with; its Rejection is set where the input was rejected.
	Decision decision.Decision
	// Ended tells that a re-based decision gave the episode up: its retry came too late (R20).
	Ended bool
	// RaisedFrom is the retryCount that came where it was raised to the journal's, below 0 where it was not.
	RaisedFrom int64
	// mark is the record to be marked answered once the engine took the answer; 0 where it belongs to
	// another job, or is marked already.
	mark int64
}

// recalls tells whether r is what an earlier try of the same analysis recorded, committed after all.
func (r *Recorded) recalls(earlier *Recorded) bool {
	return r.How == Replayed && earlier.How != Replayed && earlier.Attempt != nil && *r.Attempt == *earlier.Attempt
}

// batch gathers what one transaction saves. Each subject is in it once.
type batch struct {
	now     time.Time
	head    Head
	changes Changes
	// tally adds up what the figures grow by.
	tally tally
	// publish makes the messages of the outbox; nil where nobody listens.
	publish Publisher
}

// record takes the next record's number.
func (b *batch) record() int64 { return b.head.Record + int64(len(b.changes.Link.Digests)) + 1 }

// seal completes the changes; nil where there are none.
func (b *batch) seal() *Changes {
	c := &b.changes
	if len(c.Link.Digests) == 0 && len(c.Answered) == 0 && len(c.Published) == 0 && len(c.DeadLetters) == 0 && len(c.Runs) == 0 {
		return nil
	}
	c.Figures = b.tally.figures()
	if len(c.Link.Digests) > 0 {
		c.Link.At = b.now.Truncate(time.Millisecond)
		c.Link = c.Link.After(b.head)
	}
	return c
}

// analyze decides on a, adds what that changes, and says what to answer.
func (b *batch) analyze(a *Analysis, h *History) Recorded {
	h.recallWritten(a)
	r := rule(a, h, b.now)
	switch {
	case r.how == Replayed:
		return Recorded{How: Replayed, Attempt: r.attempt, Decision: r.decision, RaisedFrom: -1, mark: r.mark(h)}
	case r.how == Rebased:
		return b.rebase(a, h, &r)
	case r.decision.Rejection != nil:
		b.reject(&Refusal{Subject: a.Subject, Rule: a.Rule, JobKey: a.JobKey, ProcessInstanceKey: a.ProcessInstanceKey, Rejection: r.decision.Rejection})
		return Recorded{How: Fresh, Decision: r.decision, RaisedFrom: -1}
	}
	return b.decided(a, h, &r)
}

// decided saves a fresh decision: attempt, dead letter, episode, messages.
func (b *batch) decided(a *Analysis, h *History, r *ruling) Recorded {
	key := b.subject(a.Subject, h)
	e := h.Episode
	took := h.reported(a.ProcessInstanceKey)
	if r.opens {
		b.end(key, h, r.ends)
		e = Episode{Number: h.Episode.Number + 1, OpenedAt: b.milli()}
	} else if e.DeadLetter != "" && (h.DeadLetter.State == DeadLetterOpen || !r.decision.ShouldRetry()) {
		b.settle(h, DeadLetterSuperseded) // one that is reprocessed waits for how its retries end
		e.DeadLetter = ""
	} else if took {
		b.keep(h, *h.DeadLetter)
	}
	d := &r.decision
	if h.Last == nil || h.Last.Episode != e.Number { // the first analysis in an episode, which a person may have begun
		e.Scheduled += analysedCount(d)
	}
	e.ProcessInstanceKey, e.Retries, e.NextRetryTime, e.FirstFailure = a.ProcessInstanceKey, d.RetryCount, d.NextRetryTime, d.FirstFailure
	at := b.attempt(a, h.Attempts+1, 0, e.Number, d)
	at.Attempt.AnalysedCount = analysedCount(d)
	if d.ShouldRetry() {
		e.State = Scheduled
		e.Scheduled++
		if d.Presumes() {
			e.Presumed++
		}
	} else {
		e.State, e.DeadLetter = Dead, deadLetterID(a, r.again...)
		at.Attempt.DeadLetter = e.DeadLetter
		b.bear(key, a.Subject, b.deadLetter(at.Attempt), at.Attempt)
	}
	at.Key = key
	b.save(a.Subject, at, e)
	b.changes.Episodes = append(b.changes.Episodes, KeyedEpisode{key, e})
	b.countDecision(a, at.Attempt)
	b.countFingerprint(a.Policy.Name, at.Attempt)
	if e.State == Dead && (r.opens || h.Episode.State != Dead) {
		b.countEnd(a.Policy.Name, &e, r.opens || h.Episode.DeadLetter == "", d.Outcome == decision.MaxRetriesExceeded)
	}
	raised := int64(-1)
	if r.floor >= 0 {
		raised = a.Failure.RetryCount
	}
	return Recorded{How: Fresh, Attempt: at.Attempt, Decision: *d, RaisedFrom: raised, mark: at.Attempt.Record}
}

// rebase saves a revision of the recorded attempt: a retry at a later time, or the end where that is too late. The
// episode follows where it is still about that attempt.
func (b *batch) rebase(a *Analysis, h *History, r *ruling) Recorded {
	old := r.attempt
	at := b.attempt(a, old.Number, old.Revision+1, old.Episode, &r.decision)
	at.Key = h.Key
	at.Attempt.AnalysedCount = old.AnalysedCount
	e := h.Episode
	follows := e.Number == old.Episode && e.State == Scheduled && h.Attempts == old.Number
	switch {
	case !r.decision.ShouldRetry():
		b.endByTime(a, h, at.Attempt, &e, follows)
	case follows:
		e.NextRetryTime = r.decision.NextRetryTime
	}
	b.save(a.Subject, at, e)
	if follows {
		b.changes.Episodes = append(b.changes.Episodes, KeyedEpisode{h.Key, e})
	}
	ended := follows && !r.decision.ShouldRetry()
	return Recorded{How: Rebased, Attempt: at.Attempt, Decision: r.decision, RaisedFrom: -1, Ended: ended, mark: at.Attempt.Record}
}

// endByTime gives up the retry that at is a revision of: it can no longer be made within the total limit (R20). Where
// the episode went on meanwhile, nobody is to act on its dead letter: it is superseded from the start.
func (b *batch) endByTime(a *Analysis, h *History, at *Attempt, e *Episode, follows bool) {
	at.DeadLetter = deadLetterID(a, at.Number, at.Revision)
	letter := b.deadLetter(at)
	if !follows {
		letter.State = DeadLetterSuperseded
		b.bear(h.Key, a.Subject, letter, at)
		return
	}
	died := e.DeadLetter != ""
	if died {
		b.settle(h, DeadLetterSuperseded)
	}
	e.State, e.Retries, e.NextRetryTime, e.DeadLetter = Dead, at.Decision.RetryCount, time.Time{}, at.DeadLetter
	b.bear(h.Key, a.Subject, letter, at)
	b.countEnd(a.Policy.Name, e, !died, true)
	b.recountFingerprint(a.Policy.Name, at)
}

// analysedCount is the retryCount a decision was made on (R12).
func analysedCount(d *decision.Decision) int64 {
	if d.ShouldRetry() {
		return d.RetryCount - 1
	}
	return d.RetryCount
}

func (b *batch) attempt(a *Analysis, number, revision, episode int64, d *decision.Decision) KeyedAttempt {
	given := int64(-1)
	if a.Failure.HasRetryCount {
		given = a.Failure.RetryCount
	}
	d.FirstFailure = d.FirstFailure.Truncate(time.Millisecond)
	d.Catalogue, d.MatchedText = storable(d.Catalogue), bounded(storable(d.MatchedText), maxMatchedBytes)
	return KeyedAttempt{Attempt: &Attempt{
		Record: b.record(), Number: number, Revision: revision, Episode: episode, Identity: a.Identity,
		JobKey: a.JobKey, ElementInstanceKey: a.ElementInstanceKey, ProcessInstanceKey: a.ProcessInstanceKey,
		Rule: a.Rule, Error: storable(a.Error), GivenCount: given, ReceivedAt: a.ReceivedAt.UTC().Truncate(time.Millisecond),
		Took: max(b.now.Sub(a.ReceivedAt), 0).Truncate(time.Microsecond), Decision: *d,
	}}
}

// storable is s as every store takes it: valid UTF-8, and no NUL, which PostgreSQL refuses in text.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// maxMatchedBytes of the text that a rule matched: a pattern may match a whole message.
const maxMatchedBytes = 200

// bounded is s, or as much of its beginning as fits into limit bytes without cutting a character.
func bounded(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// save adds the attempt, its digest and its messages; e is the subject's episode as it stands then.
func (b *batch) save(s Subject, at KeyedAttempt, e Episode) {
	c := &b.changes
	c.Attempts = append(c.Attempts, at)
	c.Link.Digests = append(c.Link.Digests, DigestAttempt(s, at.Attempt))
	b.tell(&Happening{Subject: s, Attempt: at.Attempt, Episode: e})
}

// subject is the key of s, a new one where it is not known yet.
func (b *batch) subject(s Subject, h *History) int64 {
	if h.Key == 0 {
		h.Key = b.head.Subject + int64(len(b.changes.Subjects)) + 1
		b.changes.Subjects = append(b.changes.Subjects, KeyedSubject{h.Key, s})
	}
	return h.Key
}

// end closes the subject's open episode, because another begins.
func (b *batch) end(key int64, h *History, as State) {
	if as == "" {
		return
	}
	e := h.Episode
	alive := e.State != Dead
	e.State, e.ClosedAt = as, b.milli()
	if alive {
		b.countEnd(h.subject.Policy, &e, e.DeadLetter == "", false)
	}
	if e.DeadLetter != "" {
		b.settle(h, DeadLetterSuperseded)
	}
	e.DeadLetter, e.NextRetryTime = "", time.Time{}
	b.changes.Episodes = append(b.changes.Episodes, KeyedEpisode{key, e})
}

// settle changes what is said of the episode's dead letter, because something newer happened. A process that waits for
// a person's decision on it gets its answer: nobody makes one any more.
func (b *batch) settle(h *History, as DeadLetterState) {
	d := *h.DeadLetter
	tell := d.State == DeadLetterOpen && d.waits()
	b.move(h, &d, as)
	if tell {
		b.answer(h.subject, &d, 0)
	}
	b.keep(h, d)
}

// move brings a dead letter to another state.
func (b *batch) move(h *History, d *DeadLetter, to DeadLetterState) {
	b.countDeadLetter(h.subject.Policy, d.State, to)
	d.State, d.ChangedAt = to, b.milli()
}

// keep saves a dead letter that is known.
func (b *batch) keep(h *History, d DeadLetter) {
	b.changes.DeadLetters = append(b.changes.DeadLetters, KeyedDeadLetter{Key: h.Key, Policy: h.subject.Policy, DeadLetter: d})
}

// bear adds a dead letter that is new. of is the attempt that tells its cause; nil where there is none.
func (b *batch) bear(key int64, s Subject, d DeadLetter, of *Attempt) {
	b.countDeadLetter(s.Policy, "", d.State)
	row := KeyedDeadLetter{Key: key, Policy: s.Policy, DeadLetter: d}
	if of != nil {
		row.Fingerprint = FingerprintOf(s.Policy, of).ID
	}
	b.changes.DeadLetters = append(b.changes.DeadLetters, row)
}

func (b *batch) deadLetter(a *Attempt) DeadLetter {
	d := &a.Decision
	return DeadLetter{
		ID: a.DeadLetter, State: DeadLetterOpen, Episode: a.Episode, Record: a.Record, Outcome: d.Outcome, Reason: d.Reason, Team: d.Team,
		RetryCount: d.RetryCount, MaxRetries: d.MaxRetries, ProcessInstanceKey: a.ProcessInstanceKey,
		CreatedAt: b.milli(), ChangedAt: b.milli(),
	}
}

// milli is the batch's instant as it is stored.
func (b *batch) milli() time.Time { return b.now.UTC().Truncate(time.Millisecond) }

// entry adds a record of the audit that is no attempt, and its messages; h says what it is about.
func (b *batch) entry(kind EntryKind, body any, h Happening) {
	text, err := json.Marshal(body)
	if err != nil { // cannot be: bodies are plain structs
		text = []byte("{}")
	}
	e := Entry{Record: b.record(), Kind: kind, Subject: h.Subject, At: b.milli(), Body: string(text)}
	b.changes.Entries = append(b.changes.Entries, e)
	b.changes.Link.Digests = append(b.changes.Link.Digests, DigestEntry(&e))
	h.Entry = &e
	b.tell(&h)
}

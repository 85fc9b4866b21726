package journal

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"retry-worker/internal/decision"
)

// The fold alone makes the projections from records. The committer folds what it writes; a verification, a rebuild and
// a purge fold what was written. It is pure.

// of returns the history of the subject s, ready to fold records into.
func (h *History) of(s Subject) *History {
	if h.letters == nil {
		h.Subject, h.letters = s, map[string]*DeadLetter{}
		if d := h.DeadLetter; d != nil {
			h.letters[d.ID] = d
		}
	}
	return h
}

// latest sets the subject's latest attempt.
func (h *History) latest(a *Attempt) { h.Last, h.LastRecord = a, a.Record }

// deadLetters returns the known dead letters, in the order of their records.
func (h *History) deadLetters() (all []DeadLetter) {
	for _, d := range h.letters {
		all = append(all, *d)
	}
	slices.SortFunc(all, func(a, b DeadLetter) int { return cmp.Compare(a.Record, b.Record) })
	return all
}

// letter returns the dead letter of the latest episode; nil if it has none.
func (h *History) letter() *DeadLetter { return h.letters[h.Episode.DeadLetter] }

// projection collects what records change.
type projection struct {
	// at and record are the instant and number of the record that is being folded, policy is its subject's.
	at     time.Time
	record int64
	policy string
	sums   sums
	causes map[string]*Fingerprint
	items  []BulkItem
	// touched are the dead letters that the record changes, answers those whose process it answers.
	touched, answers []*DeadLetter
}

func newProjection() *projection {
	return &projection{sums: sums{}, causes: map[string]*Fingerprint{}}
}

// body is the body of a record that changes its subject.
type body interface {
	fold(p *projection, h *History)
}

// apply folds the subject's record e, whose decoded body is b. A nil b changes nothing.
func (p *projection) apply(h *History, e *Entry, b body) {
	p.at, p.record, p.policy, p.touched, p.answers = e.At, e.Record, h.Subject.Policy, p.touched[:0], p.answers[:0]
	if b != nil {
		b.fold(p, h)
	}
	for _, d := range p.touched {
		d.unmark()
		if d.Run != "" { // a bulk run has decided on it
			p.items = append(p.items, BulkItem{Run: d.Run, Record: d.Record, Outcome: d.outcome(h), ChangedAt: p.at,
				DecidedAt: d.Review.At})
		}
	}
}

// bodyOf returns the decoded body of a record; nil for kinds that change no subject.
func bodyOf(e *Entry) (b body, err error) {
	switch e.Kind {
	case AttemptEntry:
		err := e.Decode()
		return e.Attempt, err
	case RejectionEntry, RebuildEntry, BulkEntry, PurgeEntry, ErasureEntry:
		return nil, nil
	case OutcomeEntry:
		b = &outcomeBody{}
	case ReviewEntry:
		b = &ReviewBody{}
	case DeliveryEntry:
		b = &deliveryBody{}
	case NoteEntry:
		b = &noteBody{}
	case GateEntry:
		b = &GateBody{}
	case DestinationEntry:
		b = &DestinationBody{}
	case TeachingEntry:
		b = &TeachingBody{}
	default:
		return nil, fmt.Errorf("%w record %d: it is of the kind %q, which this version does not know", ErrUnreadable, e.Record,
			e.Kind)
	}
	return b, e.decode(b)
}

// touch marks d as changed by the record.
func (p *projection) touch(d *DeadLetter) {
	if !slices.Contains(p.touched, d) {
		p.touched = append(p.touched, d)
	}
}

// create adds a new dead letter.
func (p *projection) create(h *History, d DeadLetter) {
	d.Key, d.Subject, d.Record = h.Key, h.Subject, p.record
	d.CreatedAt, d.ChangedAt, d.Cents = p.at, p.at, d.Context.Cents()
	d.Chance = cmp.Or(d.Chance, ChanceOf(0))
	h.letters[d.ID] = &d
	p.touch(&d)
}

// fold folds a decision into the episode, its dead letter and the sums.
func (a *Attempt) fold(p *projection, h *History) {
	if a.Revision > 0 {
		p.revision(h, a)
		return
	}
	d, e := &a.Decision, &h.Episode
	h.Sent = nil
	p.reported(h, a.ProcessInstanceKey)
	switch letter := h.letter(); {
	case a.Episode > e.Number:
		p.begin(h, a.Ends, Episode{Number: a.Episode, OpenedAt: p.at})
	case letter != nil && (letter.State == DeadLetterOpen || !d.ShouldRetry()):
		p.settle(letter, DeadLetterSuperseded) // a reprocessed one stays until its retries end
		e.DeadLetter = ""
	}
	if h.Last == nil || h.Last.Episode != e.Number { // the episode's first analysis
		e.Scheduled += a.AnalysedCount
	}
	e.ProcessInstanceKey, e.Retries, e.NextRetryTime, e.FirstFailure = a.ProcessInstanceKey, d.RetryCount, d.NextRetryTime,
		d.FirstFailure
	h.PossiblyAccepted = d.PossiblyAccepted
	if d.ShouldRetry() {
		e.State = Scheduled
		e.Scheduled++
		e.Retried = true
		if d.Presumes() {
			e.Presumed++
		}
	} else {
		p.countCase(e, h.Last, d.Reason, time.Time{})
		p.die(h, a.letter(), d.Outcome == decision.MaxRetriesExceeded)
	}
	h.Attempts, h.Seen = a.Number, a.Identity.add(h.Seen)
	h.latest(a)
	p.countDecision(a)
}

// letter returns the dead letter that the attempt creates.
func (a *Attempt) letter() DeadLetter {
	d := &a.Decision
	return DeadLetter{ID: a.DeadLetter, State: DeadLetterOpen, Episode: a.Episode, Outcome: d.Outcome, Reason: d.Reason,
		Team: d.Team, Fingerprint: a.Fingerprint, RetryCount: d.RetryCount, MaxRetries: d.MaxRetries,
		PossiblyAccepted: d.PossiblyAccepted, ProcessInstanceKey: a.ProcessInstanceKey, FirstFailure: d.FirstFailure,
		Context: a.Context, Deadline: a.Deadline, Chance: ChanceOf(a.Chance)}
}

// revision folds a later retry, or the end if that would be beyond the total limit (R20). The episode follows if a is
// of its latest attempt.
func (p *projection) revision(h *History, a *Attempt) {
	e := &h.Episode
	follows := e.Number == a.Episode && e.State == Scheduled && h.Attempts == a.Number
	switch letter := a.letter(); {
	case follows && a.Decision.ShouldRetry():
		e.NextRetryTime = a.Decision.NextRetryTime
	case follows:
		e.Retries = a.Decision.RetryCount
		p.die(h, letter, true)
		p.countCause(SumCauseExhausted, a)
	case !a.Decision.ShouldRetry(): // nobody is to act on an episode that has gone on meanwhile
		letter.State = DeadLetterSuperseded
		p.create(h, letter)
	}
	if h.Last == nil || cmp.Or(cmp.Compare(a.Number, h.Last.Number), cmp.Compare(a.Revision, h.Last.Revision)) > 0 {
		h.latest(a)
	}
}

// die gives the episode up with a dead letter, which supersedes the one before.
func (p *projection) die(h *History, born DeadLetter, byLimit bool) {
	p.settle(h.letter(), DeadLetterSuperseded)
	e := &h.Episode
	again := e.State == Dead
	born.PossiblyAccepted = h.PossiblyAccepted
	e.State, e.DeadLetter, e.NextRetryTime = Dead, born.ID, time.Time{}
	if p.create(h, born); !again {
		p.countEnd(e, byLimit)
	}
}

// begin opens an episode. ends is how it ends the one before; empty if that has ended.
func (p *projection) begin(h *History, ends State, next Episode) {
	if ends != "" {
		p.settle(h.letter(), DeadLetterSuperseded)
		p.close(h, ends, p.at)
	}
	if h.Episode.Number > 0 {
		h.ended = append(h.ended, h.Episode)
	}
	h.Episode = next
}

// close ends the subject's episode. A doubt whether the other side took the claim outlives it if another begins (R33).
func (p *projection) close(h *History, as State, at time.Time) {
	e := &h.Episode
	e.State, e.ClosedAt, e.DeadLetter, e.NextRetryTime = as, at, "", time.Time{}
	h.PossiblyAccepted = h.PossiblyAccepted && (as == Superseded || as == Abandoned)
	p.countEnd(e, false) // a dead episode is counted already
}

// settle changes the state of a dead letter, unless it is nil, without a person's decision. A process that waits for
// one is answered.
func (p *projection) settle(d *DeadLetter, as DeadLetterState) {
	if d == nil {
		return
	}
	p.touch(d)
	tell := d.State == DeadLetterOpen && d.Waits()
	d.State, d.ChangedAt = as, p.at
	if tell {
		p.answer(d)
	}
}

// answer marks that this record answers the process that waits.
func (p *projection) answer(d *DeadLetter) {
	d.Answer = p.record
	if d.Delivery != DeliveryTaken {
		d.Delivery = DeliveryPending
	}
	p.answers = append(p.answers, d)
}

// reported handles a report of a process instance: if it waited for a person's retry it has taken it, even if the
// engine's confirmation was lost.
func (p *projection) reported(h *History, processInstanceKey int64) {
	if d := h.letter(); d != nil && d.State == DeadLetterReprocessing && d.Delivery == DeliveryPending &&
		processInstanceKey != 0 && processInstanceKey == d.ProcessInstanceKey {
		p.touch(d)
		d.Delivery = DeliveryTaken
	}
}

// fold folds the end of a subject's work.
func (b *outcomeBody) fold(p *projection, h *History) {
	h.Sent, h.Concluded = nil, cmp.Or(b.Delivered, h.Concluded)
	p.reported(h, b.ProcessInstanceKey)
	e, d, a := &h.Episode, h.letter(), h.Last
	switch b.Outcome {
	case outcomeExpired: // nothing was heard for the whole retention
		p.settle(d, DeadLetterDiscarded)
		if b.Left != nil { // nil where somebody edited the record
			*e = *b.Left
			e.OpenedAt = b.Opened
		}
		p.close(h, Expired, b.At)
	case outcomeAccepted:
		p.settle(d, DeadLetterAccepted)
		p.close(h, Accepted, b.At)
	case outcomeSuccess:
		if a != nil && e.State == Scheduled {
			p.countCase(e, a, "", b.At)
		}
		p.settle(d, DeadLetterRecovered)
		p.close(h, Recovered, b.At)
		if a != nil && (a.Episode == e.Number || d != nil && d.Fingerprint == a.Fingerprint) {
			p.countCause(SumCauseRecovered, a)
		}
	default:
		born := DeadLetter{ID: b.DeadLetter, State: DeadLetterOpen, Episode: e.Number, Outcome: decision.MaxRetriesExceeded,
			Reason: decision.ReasonReported, Team: b.Team, RetryCount: e.Retries, ProcessInstanceKey: e.ProcessInstanceKey,
			FirstFailure: e.FirstFailure}
		switch {
		case d != nil && e.State == Reprocessing: // nothing has failed since a person sent it again
			born.MaxRetries, born.Fingerprint, born.Context, born.Deadline = d.MaxRetries, d.Fingerprint, d.Context, d.Deadline
		case a != nil:
			born.MaxRetries, born.Fingerprint, born.Context, born.Deadline = a.Decision.MaxRetries, a.Fingerprint, a.Context,
				a.Deadline
		}
		p.die(h, born, false)
	}
}

// fold folds a person's decision. A retry continues the episode one retry further, or begins a fresh one at 0.
func (b *ReviewBody) fold(p *projection, h *History) {
	d, e := h.letters[b.DeadLetter], &h.Episode
	if d == nil {
		return // expunged
	}
	p.touch(d)
	switch b.Decision {
	case DeadLetterDiscarded:
		p.close(h, Discarded, p.at)
	case DeadLetterAccepted:
		p.close(h, Accepted, p.at)
	default:
		if b.Fresh {
			old := *e
			old.State, old.ClosedAt, old.DeadLetter = Superseded, p.at, ""
			h.ended = append(h.ended, old)
			*e = Episode{Number: e.Number + 1, OpenedAt: p.at, FirstFailure: p.at, ProcessInstanceKey: e.ProcessInstanceKey, Counted: true}
		}
		e.State, e.DeadLetter, e.NextRetryTime, e.Retries = Reprocessing, d.ID, b.NextRetryTime, b.RetryCount
		e.Retried = false
	}
	d.State, d.ChangedAt, d.Run, d.Deadline = b.Decision, p.at, b.Run, cmp.Or(b.Deadline, d.Deadline)
	d.Review = b.ReviewNote
	d.Review.Discard, d.Review.At = b.Decision == DeadLetterDiscarded, p.at
	if d.Waits() {
		p.answer(d)
	} else {
		d.Delivery = DeliveryNobody
	}
}

func (b *deliveryBody) fold(p *projection, h *History) {
	d := h.letters[b.DeadLetter]
	if d == nil {
		return // expunged
	}
	p.touch(d)
	switch b.Delivery {
	case deliveryWaiting:
		b.waits(d)
		if d.State == DeadLetterOpen {
			d.Delivery = DeliveryNone
		}
	case DeliveryPending:
		if b.waits(d); b.Taken {
			d.Delivery = DeliveryTaken
		}
		p.answer(d)
	case DeliveryTaken:
		d.Answer, d.Delivery = 0, DeliveryTaken
	case DeliveryNobody:
		d.Answer, d.Delivery = 0, DeliveryNobody
		p.reopen(h, d)
	}
}

// waits sets which process waits, and by which job.
func (b *deliveryBody) waits(d *DeadLetter) {
	d.ReviewJobKey, d.ReviewProcess, d.Accepts = b.JobKey, b.Process, b.Accepts
}

// reopen opens a dead letter that was sent again although no process waited, unless its episode has gone on. The
// episode counts as dead already (R19).
func (p *projection) reopen(h *History, d *DeadLetter) {
	if e := &h.Episode; d.State == DeadLetterReprocessing && e.State == Reprocessing && e.DeadLetter == d.ID {
		d.State, d.ChangedAt = DeadLetterOpen, p.at
		e.State, e.Retries, e.NextRetryTime = Dead, d.RetryCount, time.Time{}
	}
}

package journal

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"retry-worker/internal/decision"
)

// The fold makes the projections from records, and nothing else does: the committer folds what it writes, and whoever
// verifies, rebuilds or purges folds what was written. It is pure.

// life is what the fold knows of one subject.
type life struct {
	subject Subject
	SubjectState
	last *Attempt
	// ended are the episodes before it, letters the dead letters that are known, by their ids.
	ended   []Episode
	letters map[string]*DeadLetter
}

// fold returns what the fold makes of the history of a subject.
func (h *History) fold(s Subject) *life {
	if h.life == nil {
		h.life = newLife(s)
		h.life.SubjectState, h.life.last = h.SubjectState, h.Last
		if h.DeadLetter != nil {
			h.life.letters[h.DeadLetter.ID] = h.DeadLetter
		}
	}
	return h.life
}

func newLife(s Subject) *life { return &life{subject: s, letters: map[string]*DeadLetter{}} }

// latest is the subject's latest attempt, in its latest revision.
func (l *life) latest(a *Attempt) { l.last, l.LastRecord = a, a.Record }

// deadLetters are those that are known, in the order of their records.
func (l *life) deadLetters() (all []DeadLetter) {
	for _, d := range l.letters {
		all = append(all, *d)
	}
	slices.SortFunc(all, func(a, b DeadLetter) int { return cmp.Compare(a.Record, b.Record) })
	return all
}

// letter of the latest episode; nil where it has none.
func (l *life) letter() *DeadLetter { return l.letters[l.Episode.DeadLetter] }

// projection gathers what records change.
type projection struct {
	// at and record are those of the record that is being folded.
	at     time.Time
	record int64
	sums   sums
	causes map[string]*Fingerprint
	items  []BulkItemChange
	// touched are dead letters that the record changes, as they were before.
	touched []touched
	// answers are the dead letters whose process gets an answer by the record.
	answers []*DeadLetter
}

type touched struct {
	letter *DeadLetter
	before DeadLetter
}

func newProjection() *projection {
	return &projection{sums: sums{}, causes: map[string]*Fingerprint{}}
}

// apply folds a record of a subject. body is what was decoded from it.
func (p *projection) apply(l *life, e *Entry, body any) {
	p.at, p.record, p.touched, p.answers = e.At, e.Record, p.touched[:0], p.answers[:0]
	switch b := body.(type) {
	case *Attempt:
		if b.Revision == 0 {
			p.attempt(l, b)
		} else {
			p.revision(l, b)
		}
	case *outcomeBody:
		p.outcome(l, b)
	case *reviewBody:
		p.review(l, b)
	case *deliveryBody:
		p.delivery(l, b)
	case *noteBody:
		p.note(l, b)
	case *GateBody:
		p.gate(l, b)
	case *DestinationBody:
		l.destination(b, p.record)
	case *TeachingBody:
		p.teaching(l, b)
	}
	for i := range p.touched {
		p.touched[i].letter.unmark()
		p.move(l, &p.touched[i])
	}
}

// decoders of the bodies that apply takes, and of those that change a bulk run or what the fold starts from.
var decoders = map[EntryKind]func(*Entry) (any, error){
	OutcomeEntry:     decode[outcomeBody],
	ReviewEntry:      decode[reviewBody],
	DeliveryEntry:    decode[deliveryBody],
	NoteEntry:        decode[noteBody],
	BulkEntry:        decode[bulkBody],
	PurgeEntry:       decode[expungeBody],
	ErasureEntry:     decode[expungeBody],
	GateEntry:        decode[GateBody],
	DestinationEntry: decode[DestinationBody],
	TeachingEntry:    decode[TeachingBody],
}

func decode[T any](e *Entry) (any, error) {
	body, err := BodyOf[T](e)
	if err != nil {
		return nil, err
	}
	return &body, nil
}

// decodeBody returns what apply takes; nil of kinds that change no subject.
func decodeBody(e *Entry) (any, error) {
	switch e.Kind {
	case AttemptEntry:
		r, err := e.Decode()
		return r.Attempt, err
	case RejectionEntry, RebuildEntry:
		return nil, nil
	}
	if decode := decoders[e.Kind]; decode != nil {
		return decode(e)
	}
	return nil, fmt.Errorf("%w record %d: it is of the kind %q, which this version does not know", ErrUnreadable, e.Record,
		e.Kind)
}

// touch notes that the record changes d.
func (p *projection) touch(d *DeadLetter) {
	if !slices.ContainsFunc(p.touched, func(t touched) bool { return t.letter == d }) {
		p.touched = append(p.touched, touched{d, *d})
	}
}

// createDeadLetter adds a dead letter that is new.
func (p *projection) createDeadLetter(l *life, d DeadLetter) {
	d.Record, d.CreatedAt, d.ChangedAt, d.Cents = p.record, p.at, p.at, d.Context.Cents()
	l.letters[d.ID] = &d
	p.touched = append(p.touched, touched{letter: &d})
}

// move notes what became of a bulk run's dead letter.
func (p *projection) move(l *life, t *touched) {
	d, before := t.letter, &t.before
	if d.Run == "" || before.ID == "" {
		return
	}
	from := BulkPlanned
	if before.Run == d.Run {
		from = before.outcome(l)
	}
	if to := d.outcome(l); from.going() && from != to {
		p.items = append(p.items,
			BulkItemChange{Run: d.Run, Record: d.Record, To: to, ChangedAt: p.at, DecidedAt: d.Review.At})
	}
}

// going reports whether the outcome may change by itself.
func (o BulkOutcome) going() bool { return o == BulkPlanned || o == BulkDecided || o == BulkTaken }

// outcome of a dead letter that a bulk run decided on.
func (d *DeadLetter) outcome(l *life) BulkOutcome {
	switch {
	case d.State == DeadLetterRecovered:
		return BulkRecovered
	case d.State == DeadLetterSuperseded:
		if next := l.Episode.DeadLetter; next != "" && next != d.ID {
			return BulkDeadAgain
		}
		return BulkSuperseded
	case d.State == DeadLetterOpen, d.Delivery == DeliveryNobody:
		return BulkNobody
	case d.State == DeadLetterDiscarded && d.Delivery != DeliveryPending:
		return BulkDiscarded
	case d.State == DeadLetterAccepted && d.Delivery != DeliveryPending:
		return BulkAccepted
	case d.Delivery == DeliveryTaken:
		return BulkTaken
	default:
		return BulkDecided
	}
}

// attempt folds a fresh decision: the episode, its dead letter, the sums.
func (p *projection) attempt(l *life, a *Attempt) {
	d, e, before := &a.Decision, &l.Episode, l.Episode
	l.Sent = nil
	p.reported(l, a.ProcessInstanceKey)
	letter, opens := l.letter(), a.Episode > l.Episode.Number
	switch {
	case opens:
		p.end(l, a.Ends)
		if e.Number > 0 {
			l.ended = append(l.ended, *e)
		}
		*e = Episode{Number: a.Episode, OpenedAt: p.at}
	case letter != nil && (letter.State == DeadLetterOpen || !d.ShouldRetry()):
		p.settle(letter, DeadLetterSuperseded) // one that is reprocessed waits for how its retries end
		e.DeadLetter = ""
	}
	if l.last == nil || l.last.Episode != e.Number { // the first analysis in an episode, which a person may have begun
		e.Scheduled += a.AnalysedCount
	}
	e.ProcessInstanceKey, e.Retries, e.NextRetryTime, e.FirstFailure = a.ProcessInstanceKey, d.RetryCount, d.NextRetryTime,
		d.FirstFailure
	if d.ShouldRetry() {
		e.State = Scheduled
		e.Scheduled++
		e.Retried = true
		if d.Presumes() {
			e.Presumed++
		}
	} else {
		p.countCase(l.subject.Policy, e, a, time.Time{})
		e.State, e.DeadLetter = Dead, a.DeadLetter
		p.createDeadLetter(l, a.letter())
	}
	l.Attempts, l.Seen, l.PossiblyAccepted = a.Number, a.Identity.add(l.Seen), d.PossiblyAccepted
	l.latest(a)
	p.countDecision(l.subject.Policy, a)
	if e.State == Dead && (opens || before.State != Dead) {
		p.countEnd(l.subject.Policy, e, d.Outcome == decision.MaxRetriesExceeded)
	}
}

// letter is the dead letter that is born with the attempt.
func (a *Attempt) letter() DeadLetter {
	d := &a.Decision
	return DeadLetter{ID: a.DeadLetter, State: DeadLetterOpen, Episode: a.Episode, Outcome: d.Outcome, Reason: d.Reason,
		Team:        d.Team,
		Fingerprint: a.Fingerprint, RetryCount: d.RetryCount, MaxRetries: d.MaxRetries,
		ProcessInstanceKey: a.ProcessInstanceKey,
		FirstFailure:       d.FirstFailure, Context: a.Context, Deadline: a.Deadline}
}

// revision folds a retry at a later time, or the end where that is too late. The episode follows where it is still
// about that attempt.
func (p *projection) revision(l *life, a *Attempt) {
	e := &l.Episode
	follows := e.Number == a.Episode && e.State == Scheduled && l.Attempts == a.Number
	switch {
	case !a.Decision.ShouldRetry():
		p.endByTime(l, a, follows)
	case follows:
		e.NextRetryTime = a.Decision.NextRetryTime
	}
	if l.last == nil || cmp.Or(cmp.Compare(a.Number, l.last.Number), cmp.Compare(a.Revision, l.last.Revision)) > 0 {
		l.latest(a)
	}
}

// endByTime gives up the retry that a is a revision of: it can no longer be made within the total limit (R20). Where
// the episode went on meanwhile, nobody is to act on its dead letter: it is superseded from the start.
func (p *projection) endByTime(l *life, a *Attempt, follows bool) {
	letter := a.letter()
	if !follows {
		letter.State = DeadLetterSuperseded
		p.createDeadLetter(l, letter)
		return
	}
	l.Episode.Retries = a.Decision.RetryCount
	p.die(l, letter, true)
	p.countCause(l.subject.Policy, SumCauseExhausted, a)
}

// die ends the subject's episode with a dead letter, which takes the place of the one before.
func (p *projection) die(l *life, born DeadLetter, byLimit bool) {
	if old := l.letter(); old != nil {
		p.settle(old, DeadLetterSuperseded)
	}
	e := &l.Episode
	e.State, e.DeadLetter, e.NextRetryTime = Dead, born.ID, time.Time{}
	p.createDeadLetter(l, born)
	p.countEnd(l.subject.Policy, e, byLimit)
}

// end closes the subject's open episode, because another begins.
func (p *projection) end(l *life, as State) {
	if as == "" {
		return
	}
	e, alive := &l.Episode, l.Episode.State != Dead
	e.State, e.ClosedAt = as, p.at
	if alive {
		p.countEnd(l.subject.Policy, e, false)
	}
	if d := l.letter(); d != nil {
		p.settle(d, DeadLetterSuperseded)
	}
	e.DeadLetter, e.NextRetryTime = "", time.Time{}
}

// settle changes what is said of a dead letter, because something newer happened. A process that waits for a person's
// decision on it gets its answer: nobody makes one any more.
func (p *projection) settle(d *DeadLetter, as DeadLetterState) {
	p.touch(d)
	tell := d.State == DeadLetterOpen && d.Waits()
	d.State, d.ChangedAt = as, p.at
	if tell {
		p.answer(d)
	}
}

// answer notes that the process that waits gets an answer by this record.
func (p *projection) answer(d *DeadLetter) {
	d.Answer = p.record
	if d.Delivery != DeliveryTaken {
		d.Delivery = DeliveryPending
	}
	p.answers = append(p.answers, d)
}

// reported notes that a process instance says how its work went on: whoever waited there for a person's retry has taken
// it, even where the engine's own word for that was lost.
func (p *projection) reported(l *life, processInstanceKey int64) {
	d := l.letter()
	if d == nil || d.State != DeadLetterReprocessing || d.Delivery != DeliveryPending || processInstanceKey == 0 ||
		processInstanceKey != d.ProcessInstanceKey {
		return
	}
	p.touch(d)
	d.Delivery = DeliveryTaken
}

// outcome folds how the work of a subject ended.
func (p *projection) outcome(l *life, b *outcomeBody) {
	l.Sent, l.Concluded = nil, cmp.Or(b.Delivered, l.Concluded)
	p.reported(l, b.ProcessInstanceKey)
	e, d := &l.Episode, l.letter()
	switch b.Outcome {
	case outcomeExpired:
		p.expire(l, b)
		return
	case outcomeAccepted:
		if d != nil {
			p.settle(d, DeadLetterAccepted)
		}
		p.close(l, Accepted, b.At)
		p.countEnd(l.subject.Policy, e, false)
		return
	case outcomeSuccess:
		if l.last != nil && e.State == Scheduled {
			p.countCase(l.subject.Policy, e, l.last, b.At)
		}
		if d != nil {
			p.settle(d, DeadLetterRecovered)
		}
		p.close(l, Recovered, b.At)
		p.countEnd(l.subject.Policy, e, false)
		if l.last != nil {
			p.countCause(l.subject.Policy, SumCauseRecovered, l.last)
		}
		return
	}
	born := DeadLetter{ID: b.DeadLetter, State: DeadLetterOpen, Episode: e.Number, Outcome: decision.MaxRetriesExceeded,
		Reason: decision.ReasonReported, Team: b.Team, RetryCount: e.Retries, ProcessInstanceKey: e.ProcessInstanceKey,
		FirstFailure: e.FirstFailure}
	if a := l.last; a != nil {
		born.MaxRetries, born.Fingerprint = a.Decision.MaxRetries, a.Fingerprint
		born.Context, born.Deadline = a.Context, a.Deadline
	}
	if d != nil && e.State == Reprocessing {
		born.Deadline = cmp.Or(d.Deadline, born.Deadline)
	}
	p.die(l, born, false)
}

// close ends the subject's episode for good: its history is finished (R33).
func (p *projection) close(l *life, as State, at time.Time) {
	e := &l.Episode
	e.State, e.ClosedAt, e.DeadLetter, e.NextRetryTime = as, at, "", time.Time{}
	l.PossiblyAccepted = false
}

// expire ends an episode of which nothing was heard for as long as records are kept. A process that waits for a review
// is told that nobody makes one any more.
func (p *projection) expire(l *life, b *outcomeBody) {
	e, d := &l.Episode, l.letter()
	if d != nil {
		p.settle(d, DeadLetterDiscarded)
	}
	alive := e.State != Dead
	e.Number, e.State, e.ClosedAt, e.DeadLetter, e.NextRetryTime = b.Episode, Expired, b.At, "", time.Time{}
	if alive {
		p.countEnd(l.subject.Policy, e, false)
	}
}

// review folds a person's decision. The episode goes on one retry further, or a fresh one begins at 0.
func (p *projection) review(l *life, b *reviewBody) {
	d, e := l.letters[b.DeadLetter], &l.Episode
	if d == nil {
		return // expunged
	}
	p.touch(d)
	var accepted *Acceptance
	switch b.Decision {
	case DeadLetterDiscarded:
		p.close(l, Discarded, p.at)
	case DeadLetterAccepted:
		accepted = &Acceptance{b.Protocol}
		p.close(l, Accepted, p.at)
		p.countEnd(l.subject.Policy, e, false)
	default:
		if b.Fresh {
			old := *e
			old.State, old.ClosedAt, old.DeadLetter = Superseded, p.at, ""
			l.ended = append(l.ended, old)
			*e = Episode{Number: e.Number + 1, OpenedAt: p.at, FirstFailure: p.at, ProcessInstanceKey: e.ProcessInstanceKey, Counted: true}
		}
		e.State, e.DeadLetter, e.NextRetryTime, e.Retries = Reprocessing, d.ID, b.NextRetryTime, b.RetryCount
		e.Retried = false
	}
	d.State, d.ChangedAt, d.Run, d.Deadline = b.Decision, p.at, b.Run, cmp.Or(b.Deadline, d.Deadline)
	d.Review = ReviewNote{Discard: b.Decision == DeadLetterDiscarded, Accepted: accepted, Force: b.Force, Fresh: b.Fresh,
		Reason: b.Reason, By: b.By, At: p.at,
		NextRetryTime: b.NextRetryTime, Deadline: b.Deadline}
	if d.Waits() {
		p.answer(d)
	} else {
		d.Delivery = DeliveryNobody
	}
}

// delivery folds what is known of the process that waits, and of the answer to it.
func (p *projection) delivery(l *life, b *deliveryBody) {
	d := l.letters[b.DeadLetter]
	if d == nil {
		return // expunged
	}
	p.touch(d)
	switch b.Delivery {
	case deliveryWaiting:
		d.ReviewJobKey, d.ReviewSeen, d.Accepts = b.JobKey, p.at, b.Accepts
		if d.State == DeadLetterOpen {
			d.Delivery = DeliveryNone
		}
	case DeliveryPending:
		if d.ReviewJobKey, d.ReviewSeen, d.Accepts = b.JobKey, p.at, b.Accepts; b.Taken {
			d.Delivery = DeliveryTaken
		}
		p.answer(d)
	case DeliveryTaken:
		d.Answer, d.Delivery = 0, DeliveryTaken
	case DeliveryNobody:
		d.Answer, d.Delivery = 0, DeliveryNobody
		p.reopen(l, d)
	}
}

// reopen gives a dead letter back to people that was sent again to nobody, unless its episode has gone on all the same.
// No episode ends by that: it has died before (R19).
func (p *projection) reopen(l *life, d *DeadLetter) {
	e := &l.Episode
	if d.State != DeadLetterReprocessing || e.State != Reprocessing || e.DeadLetter != d.ID {
		return
	}
	d.State, d.ChangedAt = DeadLetterOpen, p.at
	e.State, e.Retries, e.NextRetryTime = Dead, d.RetryCount, time.Time{}
}

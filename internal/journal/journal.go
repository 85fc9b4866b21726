// Package journal remembers every decision before it is answered, so that none is made twice and none is
// forgotten.
//
// rules.go and the files beside it are pure: what an analysis, an outcome or a review means, given what is
// remembered. committer.go runs them in transactions that many callers share. The Store port keeps it all.
package journal

import (
	"context"
	"errors"
	"sync"
	"time"

	"retry-worker/internal/decision"
)

// Hooks are told what happens; all must be set (see NoHooks). They must not block.
type Hooks struct {
	// Committed is called for each transaction of this Journal that saved something, with its records, in their order, and
	// how long it took.
	Committed func(records []Happening, took time.Duration)
	// Open tells whether the journal can be written, when that changes; reason says why not.
	Open func(open bool, reason error)
}

// NoHooks does nothing.
func NoHooks() Hooks {
	return Hooks{
		Committed: func([]Happening, time.Duration) {},
		Open:      func(bool, error) {},
	}
}

// ErrUnavailable is why nothing was recorded: the store cannot be reached or written.
var ErrUnavailable = errors.New("the journal cannot be written")

// ErrInvalid is why one item was not recorded, and never can be: the store takes everything but it.
var ErrInvalid = errors.New("the journal cannot hold this")

// ErrUnreadable is why nothing is recorded of one subject: what is kept of it cannot be read.
var ErrUnreadable = errors.New("unreadable")

// Journal is the one writer of this process. Its methods are safe for concurrent use.
type Journal struct {
	// Learner says what came of a cause's retries; nil where nobody learns. It is set before Run.
	Learner Learner

	store   Store
	now     func() time.Time
	publish Publisher
	hooks   Hooks
	key     IdentityKey
	queue   chan *item
	ended   chan struct{} // closed when Run has returned
	gate    gate

	mu       sync.Mutex
	answered []Run // records whose answer the engine took, not saved yet
}

// queued is how many items may wait; who comes later waits to be let in.
const queued = 1024

// New prepares a Journal over store; Run starts it. now gives the instant of a decision. publish makes the
// outbox's messages of an attempt; nil where nobody listens.
func New(store Store, now func() time.Time, publish Publisher, hooks Hooks) *Journal {
	return &Journal{
		store: store, now: now, publish: publish, hooks: hooks, key: store.IdentityKey(),
		queue: make(chan *item, queued), ended: make(chan struct{}), gate: newGate(),
	}
}

// Analyze recalls, decides and records, in one step. It returns when that is durable, with the decision to
// answer with; ErrUnavailable or ErrInvalid when it is not; or when ctx ends, what became of it unknown then:
// asking again with the same identity gives the same answer. a must not be changed, even after that.
func (j *Journal) Analyze(ctx context.Context, a *Analysis) (Recorded, error) {
	var r Recorded
	asked, f := *a, *a.Failure
	asked.Failure, asked.cause, asked.identity = &f, j.Foresee(a.Policy, &f, a.Error), j.key.Identity(a)
	i := &item{lookup: Lookup{Subject: a.Subject, Identity: asked.identity}}
	if f.Teachable() {
		i.cause = asked.cause.Subject()
	}
	a = &asked
	i.apply = func(b *batch, h *History) error {
		r = b.analyze(a, h)
		return nil
	}
	if err := j.submit(ctx, i); err != nil {
		return Recorded{}, err // apply may be running still
	}
	return r, nil
}

// Foresee sets f.SuccessProbability and returns the failure's cause; redacted is the error with nothing personal in it.
func (j *Journal) Foresee(p *decision.Policy, f *decision.Failure, redacted string) *Fingerprint {
	cause := CauseOf(p.Name, f.Match.Name, redacted)
	if j.Learner != nil {
		f.SuccessProbability = j.Learner.Probability(cause, f.Destination)
	}
	return cause
}

// Reject records that an input was refused. It returns as Analyze does.
func (j *Journal) Reject(ctx context.Context, r *Refusal) error {
	return j.submit(ctx, &item{
		lookup: Lookup{Subject: r.Subject},
		apply:  func(b *batch, h *History) error { b.reject(r, h); return nil },
	})
}

// Conclude records how a subject's work ended. It returns as Analyze does.
func (j *Journal) Conclude(ctx context.Context, o *Outcome) (Concluded, error) {
	if err := o.Accepted.check(); err != nil {
		return Concluded{}, err
	}
	return outcomeOf(ctx, j, Lookup{Subject: o.Subject}, func(b *batch, h *History) (Concluded, error) {
		return b.conclude(o, h), nil
	})
}

// Review records a person's decision on a dead letter, and sends it to the process that waits for it (ReviewQueue). It
// returns as Analyze does, or one of ErrReasonRequired, ErrInvalidReview, ErrDeadLetterUnknown, ErrMaxRetriesExceeded,
// ErrDeadlineMissed and ErrInvalidRetryState, which is a *DecidedError, ErrNobodyWaits or
// ErrNotListed (R17, R33). A bulk run (Review.Run)
// decides while it is running only: it gets a *BulkStateError or ErrBulkRunUnknown otherwise.
func (j *Journal) Review(ctx context.Context, r *Review) (Reviewed, error) {
	if err := r.check(); err != nil {
		return Reviewed{}, err
	}
	asked := Lookup{Subject: r.Subject, DeadLetter: r.DeadLetter, Run: r.Run}
	return outcomeOf(ctx, j, asked, func(b *batch, h *History) (Reviewed, error) { return b.review(r, h) })
}

// Published lets go of messages of the outbox, by their sequences. It returns as Analyze does.
func (j *Journal) Published(ctx context.Context, sequences []int64) error {
	return j.submit(ctx, &item{apply: func(b *batch, _ *History) error {
		b.changes.Published = append(b.changes.Published, sequences...)
		return nil
	}})
}

// Answered notes that the engine took the answer that r is. It is written with the next commit, or within a
// second, and lost where the process is killed before: the job is gone then all the same.
func (j *Journal) Answered(r *Recorded) {
	if r.mark == (Run{}) {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answered = append(j.answered, r.mark)
}

// Await returns once the journal can be written: at once, mostly. It returns false when ctx ends before.
func (j *Journal) Await(ctx context.Context) bool { return j.gate.await(ctx) }

// outcomeOf has what apply does committed, and returns what it came to. Where the error is not nil, apply may be running
// still.
func outcomeOf[T any](
	ctx context.Context, j *Journal, l Lookup, apply func(b *batch, h *History) (T, error),
) (T, error) {
	var done, none T
	i := &item{lookup: l, apply: func(b *batch, h *History) (err error) {
		done, err = apply(b, h)
		return err
	}}
	if err := j.submit(ctx, i); err != nil {
		return none, err
	}
	return done, nil
}

// submit has the item committed.
func (j *Journal) submit(ctx context.Context, i *item) error {
	if err := ctx.Err(); err != nil { // of two ways at once the one below is drawn
		return err
	}
	i.ctx, i.done = ctx, make(chan error, 1)
	select {
	case j.queue <- i:
	case <-ctx.Done():
		return ctx.Err()
	case <-j.ended:
		return ErrUnavailable
	}
	select {
	case err := <-i.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-j.ended:
	}
	select {
	case err := <-i.done: // its answer came with the end
		return err
	default:
		return ErrUnavailable
	}
}

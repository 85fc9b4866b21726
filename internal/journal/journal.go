// Package journal remembers every decision before it is answered, so that none is made twice and none is forgotten.
//
// rules.go and the files beside it are pure: they say what an analysis, an outcome or a review means, given what is
// remembered. committer.go runs them in transactions that many callers share. A Store keeps the records.
package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"retry-worker/internal/decision"
)

// Hooks are called when something happens. All must be set (see NoHooks); none may block.
type Hooks struct {
	// Committed is called for each transaction of this Journal that saved something, with its records in order.
	Committed func(records []Happening, took time.Duration)
	// Open is called when the journal can be written again, or no longer, with the reason.
	Open func(open bool, reason error)
}

// NoHooks returns Hooks that do nothing.
func NoHooks() Hooks {
	return Hooks{Committed: func([]Happening, time.Duration) {}, Open: func(bool, error) {}}
}

// ErrUnavailable says that nothing was recorded because the store cannot be reached or written.
var ErrUnavailable = errors.New("the journal cannot be written")

// ErrInvalid says that the store refuses this one item, now and later.
var ErrInvalid = errors.New("the journal cannot hold this")

// ErrUnreadable says that a stored record or state cannot be read.
var ErrUnreadable = errors.New("unreadable")

// Journal is the only writer of its process. Its methods are safe for concurrent use.
type Journal struct {
	// Learner gives the chances of retries; nil for none. It is set before Run.
	Learner Learner

	store   Store
	now     func() time.Time
	publish Publisher
	hooks   Hooks
	key     IdentityKey
	queue   chan *item
	ended   chan struct{} // closed when Run has returned
	open    chan struct{} // holds a token while the journal can be written

	mu       sync.Mutex
	answered []Run // records whose answer the engine took, not yet saved
}

// queued is how many items may wait; further callers block.
const queued = 1024

// New returns a Journal over store; Run starts it. now is the clock of decisions. publish makes the outbox's messages;
// nil for none.
func New(store Store, now func() time.Time, publish Publisher, hooks Hooks) *Journal {
	j := &Journal{
		store: store, now: now, publish: publish, hooks: hooks, key: store.IdentityKey(),
		queue: make(chan *item, queued), ended: make(chan struct{}), open: make(chan struct{}, 1),
	}
	j.open <- struct{}{}
	return j
}

// Analyze recalls, decides and records in one step, and returns the decision once it is durable. If nothing was
// recorded the error is ErrUnavailable or ErrInvalid. If ctx ends first it is unknown whether something was; asking
// again with the same inputs gives the same decision. a must not be changed, not even later.
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
		return Recorded{}, err // apply may still be running
	}
	return r, nil
}

// Foresee sets f.SuccessProbability and returns the failure's cause. redacted is the error with nothing personal in it.
func (j *Journal) Foresee(p *decision.Policy, f *decision.Failure, redacted string) *Fingerprint {
	cause := CauseOf(p.Name, f.Match.Name, redacted)
	if j.Learner != nil {
		f.SuccessProbability = j.Learner.Probability(cause, f.Destination)
	}
	return cause
}

// Reject records that an input was refused. Its errors are those of Analyze.
func (j *Journal) Reject(ctx context.Context, r *RejectedJob) error {
	return j.submit(ctx, &item{
		lookup: Lookup{Subject: r.Subject},
		apply:  func(b *batch, h *History) error { b.reject(r, h); return nil },
	})
}

// Conclude records how a subject's work ended. Its errors are those of Analyze.
func (j *Journal) Conclude(ctx context.Context, o *Outcome) (Concluded, error) {
	if err := o.Accepted.check(); err != nil {
		return Concluded{}, err
	}
	return outcomeOf(ctx, j, Lookup{Subject: o.Subject}, func(b *batch, h *History) (Concluded, error) {
		return b.conclude(o, h), nil
	})
}

// Review records a person's decision on a dead letter, sends it to the process that waits for it (ReviewQueue; R17,
// R33), and returns the dead letter as it stands then. The caller has checked that there is a reason, and Force where
// Fresh is. Its errors are a *Refusal and those of Analyze.
func (j *Journal) Review(ctx context.Context, r *Review) (DeadLetter, error) {
	if err := r.Accepted.check(); err != nil {
		return DeadLetter{}, err
	}
	asked := Lookup{Subject: r.Subject, DeadLetter: r.DeadLetter, Run: r.Run}
	return outcomeOf(ctx, j, asked, func(b *batch, h *History) (DeadLetter, error) { return b.review(r, h) })
}

// Published removes messages from the outbox, by their sequences. Its errors are those of Analyze.
func (j *Journal) Published(ctx context.Context, sequences []int64) error {
	return j.submit(ctx, &item{apply: func(b *batch, _ *History) error {
		b.changes.Published = append(b.changes.Published, sequences...)
		return nil
	}})
}

// Answered notes that the engine took the answer r. The note is saved with the next commit, within a second or so. It
// is lost if the process is killed before, which is harmless: the job is gone.
func (j *Journal) Answered(r *Recorded) {
	if r.mark == (Run{}) {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answered = append(j.answered, r.mark)
}

// Await waits until the journal can be written. It reports false if ctx ends first.
func (j *Journal) Await(ctx context.Context) bool {
	select {
	case token := <-j.open:
		j.open <- token
		return true
	case <-ctx.Done():
		return false
	}
}

// outcomeOf commits what apply does and returns its result. After an error apply may still be running.
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

// submit hands the item to the committer and waits for its result.
func (j *Journal) submit(ctx context.Context, i *item) error {
	if err := ctx.Err(); err != nil { // the select below chooses at random if both are ready
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
	case err := <-i.done: // its result came with the end
		return err
	default:
		return ErrUnavailable
	}
}

// Refusal is why something that a person asked for was refused. Nothing was changed.
type Refusal struct {
	Code Code
	// Message is one English line for the person: what was found, what was expected, what to do.
	Message string
	// State is the dead letter's; By set it at At. By is empty if no person did. All three are zero unless Code is
	// InvalidRetryState. By and At are also zero if the dead letter is open: then no process waits for it.
	By    string
	At    time.Time
	State DeadLetterState
}

// Code is the API's code of a refusal.
type Code string

// The codes of the journal's refusals. retry-failed-job.md and the contract name the first three.
const (
	JobNotFound        Code = "job_not_found"
	MaxRetriesExceeded Code = "max_retries_exceeded"
	InvalidRetryState  Code = "invalid_retry_state"
	DeadlineMissed     Code = "deadline_missed"
	NothingTaught      Code = "nothing_taught"
	RunNotFound        Code = "run_not_found"
	InvalidRunState    Code = "invalid_run_state" // the run's state does not allow the verb
	SubjectNotFound    Code = "subject_not_found"
	SubjectBusy        Code = "subject_busy" // it cannot be erased yet
)

func (r *Refusal) Error() string { return r.Message }

// Refuse returns a refusal with that code and message.
func Refuse(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// RefusalOf returns the refusal that err holds, or nil. With any other error, the outcome is unknown and asking again
// is safe (ErrUnavailable), or the journal can never hold what was asked for (ErrInvalid).
func RefusalOf(err error) *Refusal {
	r, _ := errors.AsType[*Refusal](err)
	return r
}

// CodeOf returns the code of the refusal that err holds; empty if it holds none.
func CodeOf(err error) Code {
	if r := RefusalOf(err); r != nil {
		return r.Code
	}
	return ""
}

// Refusals that say all that there is to say.
var (
	ErrDeadLetterUnknown = Refuse(JobNotFound, "there is no dead letter of this id; the list has their ids")
	ErrBulkRunUnknown    = Refuse(RunNotFound, "there is no bulk run of this id; the list has their ids")
	// ErrReassigned refuses an assignment in place of one that is no longer there.
	ErrReassigned = Refuse(InvalidRetryState, "somebody took the dead letter, passed it on or gave it back meanwhile; look "+
		"at it again")
	// ErrNotListed is why a dead letter cannot be closed as accepted (R33).
	ErrNotListed = Refuse(InvalidRetryState, "the process could do nothing with the answer accepted: the header decisions "+
		"of its review task does not list it; discard it, or use a newer model")
)

// Exceeded refuses a retry beyond the limit.
func (d *DeadLetter) Exceeded() *Refusal {
	return Refuse(MaxRetriesExceeded,
		"%d of %d retries are made; set forceRetry for one more, and fresh with it for the whole ladder again",
		d.RetryCount, d.MaxRetries)
}

// Missed refuses a retry after the deadline.
func Missed(deadline time.Time) *Refusal {
	return Refuse(DeadlineMissed, "it cannot be sent by its deadline %s; set forceRetry to send it all the same, or give a "+
		"new submissionDeadline", decision.Instant(deadline))
}

// Unattended refuses a decision that no process waits for.
func (d *DeadLetter) Unattended() *Refusal {
	r := Refuse(InvalidRetryState, "no process waits for this dead letter, so nothing would carry a retry out; start the "+
		"process again for its subject, or discard it")
	r.State = d.State
	return r
}

// Decided refuses a decision on a dead letter that is no longer open.
func (d *DeadLetter) Decided() *Refusal {
	by, at := "", d.ChangedAt
	if d.State == DeadLetterReprocessing || d.State == DeadLetterDiscarded ||
		d.State == DeadLetterAccepted && d.Review.Accepted != nil {
		by = d.Review.By
		if !d.Review.At.IsZero() { // zero without a note
			at = d.Review.At
		}
	}
	return settled(d.State, at, by)
}

// settled refuses a decision on a dead letter on which somebody has decided. by is empty if no person did.
func settled(as DeadLetterState, at time.Time, by string) *Refusal {
	who := ""
	if by != "" {
		who = " by " + by
	}
	r := Refuse(InvalidRetryState, "the dead letter is %s since %s%s; only an open one can be decided on", as,
		decision.Instant(at), who)
	r.By, r.At, r.State = by, at, as
	return r
}

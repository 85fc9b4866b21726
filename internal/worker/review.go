package worker

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// DeadLetterVariable names the dead letter that a process waits for.
const DeadLetterVariable = "deadLetterId"

const (
	// reviewTime is how long a recorded review job stays locked before the engine offers it again (contract, job
	// types).
	reviewTime = 24 * time.Hour
	// reviewTakeTime is how long a job stays locked until it is recorded. It is short, so that a job which a killed
	// process took, or which was lost on the way, comes back soon.
	reviewTakeTime = 30 * time.Second
	// reviewPlaces bounds the jobs that are being recorded.
	reviewPlaces = 64
	// reviewPause slows down jobs that cannot be looked up and come back at once.
	reviewPause = 2 * time.Second
	// holdTime bounds the tries to lengthen a job's lock.
	holdTime = 5 * time.Second
)

// HoldingEngine is an Engine that can keep a job until a person or a destination is ready.
type HoldingEngine interface {
	Engine
	// Hold makes the engine offer an activated job again only after that time.
	Hold(ctx context.Context, j *Job, long time.Duration) error
}

// Reviews is the use case of retry-review: a process waits for a person's decision on a dead letter. Its job is
// recorded, and stays locked until the decision is delivered (ReviewSink), even across restarts.
type Reviews struct {
	holder
	letters deadletter.Reader
	waiting func()
}

// holder handles jobs that are answered later.
type holder struct {
	useCase
	engine HoldingEngine
	unheld sync.Once
}

// NewReviews returns the use case; memory records the waiting processes. It calls waiting if a process arrives whose
// answer is already pending; waiting must not block.
func NewReviews(
	engine HoldingEngine, policies func() decision.Policies, letters deadletter.Reader, memory *journal.Journal,
	waiting func(), hooks Hooks, log *zap.Logger,
) *Reviews {
	return &Reviews{holder{useCase: useCase{policies, "", memory, hooks, log}, engine: engine}, letters, waiting}
}

// Worker returns a worker for review jobs with places of its own, since people are slow. It keeps cfg's name, tenants,
// poll time-out and Await. Its memory is bounded, however many jobs wait.
func (r *Reviews) Worker(cfg Config) *Worker {
	return r.worker(cfg, RetryReview, r.Begin)
}

func (h *holder) worker(cfg Config, jobType string, begin func() Activation) *Worker {
	cfg.JobTimeout, cfg.MaxJobsActive, cfg.Concurrency = reviewTakeTime, reviewPlaces, reviewPlaces
	hooks := h.hooks
	hooks.InFlight = func(int) {}  // these jobs take no capacity
	hooks.EngineUp = func(bool) {} // the other loops report that
	return New(h.engine, cfg, []Subscription{{JobType: jobType, Begin: begin}}, hooks, h.log)
}

// Begin returns an activation under the policies in force.
func (r *Reviews) Begin() Activation {
	return Activation{Variables: append(r.policies().IDVariables(), DeadLetterVariable), Handler: r.handle}
}

// handle records that the process waits. A job that cannot be recorded now is handed back.
func (r *Reviews) handle(ctx context.Context, j *Job) Reply {
	seen, rejection, err := r.read(ctx, j)
	if err == nil && rejection == nil {
		var d journal.DeadLetter
		if d, err = r.memory.ReviewSeen(ctx, seen); err == nil {
			return r.hold(ctx, j, seen, &d)
		}
		rejection = unseen(seen, err)
	}
	if rejection != nil {
		return r.refuse(ctx, j, rejection)
	}
	clock.Machine{}.Rest(ctx, reviewPause) // here, because in the engine's back-off the job could not be completed
	return release(j, notRecorded)
}

// unseen returns the rejection of a review job that the journal will never record; nil if it may.
func unseen(seen *journal.ReviewJob, err error) *decision.Rejection {
	switch {
	case errors.Is(err, journal.ErrDeadLetterUnknown):
		return unknownLetter(strconv.Quote(seen.DeadLetter))
	case errors.Is(err, journal.ErrInvalid):
		return unrecordable(err)
	default:
		return nil
	}
}

// hold keeps the job, or wakes the delivery if the answer is already pending.
func (r *Reviews) hold(ctx context.Context, j *Job, seen *journal.ReviewJob, d *journal.DeadLetter) Reply {
	if d.Delivery == journal.DeliveryPending {
		r.waiting()
		return Reply{Action: held}
	}
	r.log.Info("a process waits for a review", zap.String("event", "review_waiting"), zap.String("deadLetterId", d.ID),
		zap.String("retryPolicy", seen.Subject.Policy), zap.Int64("jobKey", j.Key),
		zap.Int64("processInstanceKey", j.ProcessInstanceKey))
	return r.holder.hold(ctx, j)
}

// hold locks the job for a day. It tries again while the engine is busy.
func (h *holder) hold(ctx context.Context, j *Job) Reply {
	within, cancel := context.WithTimeout(ctx, holdTime)
	defer cancel()
	err, pauses := h.engine.Hold(within, j, reviewTime), newBackoff(50*time.Millisecond, time.Second, uint64(j.Key))
	for err != nil && within.Err() == nil && kindOf(err) != Refused && kindOf(err) != Gone {
		clock.Machine{}.Rest(within, pauses.draw())
		err = h.engine.Hold(within, j, reviewTime)
	}
	if err != nil && kindOf(err) == Refused {
		h.unheld.Do(func() {
			h.log.Warn("the engine does not keep jobs that wait for a day; they come every half minute, which costs a little "+
				"each time",
				zap.String("jobType", j.Type), zap.Error(err))
		})
	}
	return Reply{Action: held}
}

// read finds the dead letter that the job names. An error means that the lookup failed.
func (r *Reviews) read(ctx context.Context, j *Job) (*journal.ReviewJob, *decision.Rejection, error) {
	values, rejection := r.readVariables(j)
	if rejection != nil {
		return nil, rejection, nil
	}
	id, rejection := readDeadLetterID(values.get(DeadLetterVariable))
	if rejection != nil {
		return nil, rejection, nil
	}
	d, found, err := r.letters.DeadLetter(ctx, id)
	switch {
	case err != nil:
		return nil, nil, err
	case !found, d.Subject.Tenant != tenant(j): // another tenant's does not exist here
		return nil, unknownLetter(strconv.Quote(id)), nil
	}
	listed, rejection := header(j, decisionsHeader)
	if rejection == nil {
		rejection = r.mistaken(values, &d.Subject)
	}
	return &journal.ReviewJob{Subject: d.Subject, DeadLetter: id, JobKey: j.Key, ProcessInstanceKey: j.ProcessInstanceKey,
		Accepts: listsAccepted(listed)}, rejection, nil
}

// decisionsHeader lists the decisions that the process accepts, separated by commas; by default reprocess and discard
// (R33).
const decisionsHeader = "decisions"

func listsAccepted(decisions string) bool {
	return slices.ContainsFunc(strings.Split(decisions, ","), func(one string) bool {
		return strings.TrimSpace(one) == string(decision.Accepted)
	})
}

// mistaken returns the rejection of a process that waits with another subject's dead letter. It returns nil if they
// match, or if that is unknown: the policy does not exist here, or the process names no subject.
func (r *Reviews) mistaken(values values, s *journal.Subject) *decision.Rejection {
	policy := r.policies()[s.Policy]
	if policy == nil {
		return nil
	}
	given := values.get(policy.IDVariable)
	if given == "" || given == "null" {
		return nil
	}
	f, rejection := policy.Read(decision.Variables{ID: given})
	if rejection == nil && f.ID != s.ID {
		rejection = &decision.Rejection{Code: policy.InvalidID, Variable: policy.IDVariable, Found: strconv.Quote(f.ID),
			Expected: strconv.Quote(s.ID) + ", to which the dead letter of " + DeadLetterVariable + " belongs"}
	}
	return rejection
}

// readDeadLetterID reads the variable deadLetterId.
func readDeadLetterID(v decision.Value) (string, *decision.Rejection) {
	var id string
	switch {
	case v == "" || v == "null":
		return "", unknownLetter("missing")
	case json.Unmarshal([]byte(v), &id) != nil:
		return "", unknownLetter("no text")
	case !deadletter.IsID(id):
		return "", unknownLetter(strconv.Quote(id))
	}
	return id, nil
}

func unknownLetter(found string) *decision.Rejection {
	return &decision.Rejection{Code: decision.InvalidVariables, Variable: DeadLetterVariable, Found: found,
		Expected: "the id of a dead letter in this worker's journal, as the BPMN errors " +
			string(decision.MaxRetriesExceeded) + " and " +
			string(decision.PermanentError) + " bring it"}
}

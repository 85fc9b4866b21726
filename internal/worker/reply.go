package worker

import (
	"context"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/redact"
)

// Action is what became of a job: the label of retry_worker_jobs_total. The set is closed.
type Action string

// The actions. Superseded: another worker answered, or the job is gone. Released: handed back, or left unanswered.
// Unconfirmed: sent, but whether it arrived is unknown.
const (
	Completed   Action = "completed"
	Thrown      Action = "bpmn_error"
	Failed      Action = "failed"
	Superseded  Action = "superseded"
	Released    Action = "released"
	Unconfirmed Action = "unconfirmed"
)

// held is an Action that is not counted: the job stays locked and is answered later.
const held Action = "held"

// Reply is the answer to a job; the fields that its Action needs are set.
type Reply struct {
	Action    Action
	Variables string    // Completed: a JSON object
	Error     BPMNError // Thrown
	Failure   Failure   // Failed, Released
	// Taken, if not nil, is called once when the engine acknowledges this reply.
	Taken func()
}

const (
	// penaltyBackoff delays a job that broke its handler.
	penaltyBackoff = 10 * time.Second
	// deliveryFirst and deliveryMost bound the pause between two tries to deliver an answer.
	deliveryFirst = 20 * time.Millisecond
	deliveryMost  = 500 * time.Millisecond
	// deliveryShortest and deliveryLongest bound the time-out of one try.
	deliveryShortest = 250 * time.Millisecond
	deliveryLongest  = 5 * time.Second
)

// penalty hands the job back with one retry less.
func penalty(j *Job, message string) Reply {
	return Reply{Action: Failed, Failure: Failure{Retries: max(j.Retries-1, 0), Backoff: penaltyBackoff, Message: message}}
}

// release hands the job back unchanged, for another worker to take at once.
func release(j *Job, message string) Reply {
	return Reply{Action: Released, Failure: Failure{Retries: j.Retries, Message: message}}
}

// deliver sends r until the engine takes it or says that the job is gone, the job's deadline is reached, or ctx ends.
// Sending again is safe: an engine takes one answer for each job.
func (w *Worker) deliver(ctx context.Context, j *Job, r Reply) Action {
	if r.Action == held || r.Action == Superseded { // there is nothing to send
		return r.Action
	}
	pause := newBackoff(deliveryFirst, deliveryMost, uint64(j.Key))
	action := Released // until something is sent that may have arrived
	for time.Now().Before(j.Deadline) && ctx.Err() == nil {
		err := w.try(ctx, j, r)
		if err == nil {
			if r.Taken != nil {
				r.Taken()
			}
			return r.Action
		}
		switch kindOf(err) {
		case Gone:
			if action == Unconfirmed {
				return Unconfirmed // perhaps by an earlier try of ours
			}
			return Superseded
		case Refused:
			return w.refused(ctx, j, r, action, err)
		case Ambiguous:
			action = Unconfirmed
		}
		clock.Machine{}.Rest(ctx, min(pause.draw(), time.Until(j.Deadline)))
	}
	return w.late(j, action)
}

// late gives up on j, which the engine offers again after its time-out. action says whether an answer may have arrived.
func (w *Worker) late(j *Job, action Action) Action {
	w.log.Warn("job not answered in time, the engine offers it again",
		zap.String("jobType", j.Type), zap.Int64("jobKey", j.Key), zap.String("action", string(action)))
	return action
}

// try sends r once. It takes at most half of the time left, so that a stuck call leaves time for another.
func (w *Worker) try(ctx context.Context, j *Job, r Reply) error {
	left := time.Until(j.Deadline)
	ctx, cancel := context.WithTimeout(ctx, min(max(left/2, deliveryShortest), deliveryLongest, left))
	defer cancel()
	return send(ctx, w.engine, j, r)
}

// send sends r once.
func send(ctx context.Context, engine Engine, j *Job, r Reply) error {
	switch r.Action {
	case Completed:
		return engine.Complete(ctx, j, r.Variables)
	case Thrown:
		return engine.Throw(ctx, j, r.Error)
	default:
		return engine.Fail(ctx, j, r.Failure)
	}
}

// sendLater sends r once to a process whose job was kept, and returns what became of that: Released with the error if
// it is to be sent again, Failed with the error if the engine will never take it.
func sendLater(ctx context.Context, engine Engine, j *Job, r Reply) (Action, error) {
	if engine.Ended(ctx, j.ProcessInstanceKey) {
		return Superseded, nil
	}
	err := send(ctx, engine, j, r)
	switch {
	case err == nil:
		return r.Action, nil
	case kindOf(err) == Gone:
		return Superseded, nil
	case kindOf(err) == Refused:
		return Failed, err
	}
	return Released, err
}

// refused handles an answer that the engine will never take. The job loses a retry, so that it becomes an incident
// instead of coming back for ever. before is the Action of earlier tries. The engine's message may quote variables, so
// it is redacted.
func (w *Worker) refused(ctx context.Context, j *Job, r Reply, before Action, err error) Action {
	reason := redact.Line(err.Error(), maxErrorBytes)
	w.log.Error("engine refuses the answer",
		zap.String("jobType", j.Type), zap.Int64("jobKey", j.Key), zap.String("action", string(r.Action)),
		zap.String("error", reason))
	if r.Action == Failed || r.Action == Released {
		return w.late(j, before)
	}
	return w.deliver(ctx, j, penalty(j, "the engine refused the worker's answer: "+reason))
}

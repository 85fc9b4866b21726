package worker

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
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

// Actions lists every Action, for metrics that start at 0.
func Actions() []Action {
	return []Action{Completed, Thrown, Failed, Superseded, Released, Unconfirmed}
}

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
	switch r.Action {
	case Completed:
		return w.engine.Complete(ctx, j, r.Variables)
	case Thrown:
		return w.engine.Throw(ctx, j, r.Error)
	default:
		return w.engine.Fail(ctx, j, r.Failure)
	}
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

// refuse records the rejection of a job's input, then rejects the job (R11).
func (u *useCase) refuse(ctx context.Context, j *Job, r *decision.Rejection) Reply {
	refusal := journal.RejectedJob{
		Subject: journal.Subject{Tenant: tenant(j)}, Rule: u.rule,
		JobKey: j.Key, ProcessInstanceKey: j.ProcessInstanceKey, Rejection: r,
	}
	if err := u.memory.Reject(ctx, &refusal); err != nil {
		return u.unrecorded(ctx, j)
	}
	return u.rejectJob(j, r)
}

// rejectJob fails the job with no retries left. The engine raises an incident that says what is wrong (R11).
func (u *useCase) rejectJob(j *Job, r *decision.Rejection) Reply {
	message := journal.RejectionMessage(r)
	switch r.Variable {
	case PolicyHeader, taskHeaders:
		message += correctHeader
	case remembered:
		message += correctJournal
	default:
		message += correctVariable
	}
	u.hooks.Rejected(j.Type, r.Code)
	u.log.Warn("input rejected", zap.String("event", "input_rejected"), zap.String("rejection", string(r.Code)),
		zap.String("detail", message), zap.String("jobType", j.Type), zap.Int64("jobKey", j.Key),
		zap.Int64("processInstanceKey", j.ProcessInstanceKey), zap.String("tenantId", j.TenantID))
	return Reply{Action: Failed, Failure: Failure{Retries: 0, Message: message}}
}

// tenant returns the job's tenant; an engine without tenants names none.
func tenant(j *Job) string { return cmp.Or(j.TenantID, journal.DefaultTenant) }

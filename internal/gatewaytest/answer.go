package gatewaytest

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// CompleteRequest completes a job; Variables is a JSON object or empty.
type CompleteRequest struct {
	JobKey    int64
	Variables string
	Caller    string
}

// FailRequest fails a job: with Retries above 0 it is activatable again after
// BackOff, otherwise an incident is raised. Variables stay local to the task.
type FailRequest struct {
	JobKey    int64
	Retries   int
	BackOff   time.Duration
	Message   string // cut at 10,000 bytes
	Variables string
	Caller    string
}

// ThrowRequest throws a BPMN error from a job. Its variables reach the process
// with [EngineOptions].MapErrorVariables only.
type ThrowRequest struct {
	JobKey    int64
	Code      string
	Message   string // cut at 10,000 bytes
	Variables string
	Caller    string
}

// SetVariablesRequest sets variables in the scope of an element instance or of
// a process instance; not Local, they reach the process.
type SetVariablesRequest struct {
	ElementInstanceKey int64
	Variables          string
	Local              bool
	Caller             string
}

// Complete completes a job. It is accepted after the time-out too, while nobody
// else answered. Errors: NOT_FOUND for a key that is unknown or finished,
// FAILED_PRECONDITION during a back-off or an incident, INVALID_ARGUMENT for
// variables that are no JSON object.
func (e *Engine) Complete(ctx context.Context, r CompleteRequest) error {
	a := &Answer{Method: CompleteJob, JobKey: r.JobKey, Caller: r.Caller, Variables: r.Variables}
	return e.command(ctx, a, func(a *Answer, j *job) error {
		e.setInProcess(j, r.Variables)
		e.settle(j, a, Completed)
		return nil
	})
}

// Fail fails a job; see [FailRequest]. Errors as those of Complete.
func (e *Engine) Fail(ctx context.Context, r FailRequest) error {
	a := &Answer{
		Method: FailJob, JobKey: r.JobKey, Caller: r.Caller, Variables: r.Variables,
		Retries: r.Retries, BackOff: r.BackOff, Message: cut(r.Message),
	}
	return e.command(ctx, a, func(a *Answer, j *job) error {
		j.Retries = r.Retries
		if j.history != nil {
			j.Variables = merged(j.Variables, r.Variables)
		}
		e.fail(j, a)
		return nil
	})
}

func (e *Engine) fail(j *job, a *Answer) {
	switch {
	case a.Retries <= 0:
		e.raise(j, a, Incident)
	case a.BackOff > 0:
		j.due = e.now().Add(a.BackOff)
		e.move(j, BackingOff)
		e.counts.HandedBack++
	default:
		e.move(j, Activatable)
		e.counts.HandedBack++
	}
}

// Throw throws a BPMN error; a code nobody catches raises an incident and is
// accepted all the same. Errors as those of Complete.
func (e *Engine) Throw(ctx context.Context, r ThrowRequest) error {
	a := &Answer{
		Method: ThrowError, JobKey: r.JobKey, Caller: r.Caller, Variables: r.Variables,
		ErrorCode: r.Code, Message: cut(r.Message),
	}
	return e.command(ctx, a, func(a *Answer, j *job) error {
		if slices.Contains(e.options.UncaughtErrors, r.Code) {
			e.raise(j, a, ErrorUncaught)
			return nil
		}
		if e.options.MapErrorVariables {
			e.setInProcess(j, r.Variables)
		}
		e.settle(j, a, ErrorThrown)
		return nil
	})
}

// UpdateTimeout lets a held job run out timeout from now. Errors: NOT_FOUND;
// FAILED_PRECONDITION where nobody holds it.
func (e *Engine) UpdateTimeout(ctx context.Context, caller string, key int64, timeout time.Duration) error {
	a := &Answer{Method: UpdateJobTimeout, JobKey: key, Caller: caller, Timeout: timeout}
	return e.command(ctx, a, func(_ *Answer, j *job) error {
		if j.state != Activated {
			return status.Errorf(codes.FailedPrecondition, "job %d has no time-out to change: it is %s", key, j.state)
		}
		e.due.remove(j)
		j.due = e.now().Add(timeout)
		e.due.push(j)
		if j.history != nil {
			j.history.activations[len(j.history.activations)-1].Deadline = j.due
		}
		return nil
	})
}

// UpdateRetries sets a job's retries, which [Engine.Resolve] needs after an
// incident. Errors: NOT_FOUND; INVALID_ARGUMENT for retries below 1.
func (e *Engine) UpdateRetries(ctx context.Context, caller string, key int64, retries int) error {
	a := &Answer{Method: UpdateJobRetries, JobKey: key, Caller: caller, Retries: retries}
	return e.command(ctx, a, func(_ *Answer, j *job) error {
		if retries < 1 {
			return status.Errorf(codes.InvalidArgument, "retries of job %d must be at least 1, found %d", key, retries)
		}
		j.Retries = retries
		return nil
	})
}

// command is the way of every command on a job: what stands before the engine,
// the effect under the lock, and the answer.
func (e *Engine) command(ctx context.Context, a *Answer, effect func(*Answer, *job) error) error {
	c := Call{Method: a.Method, Caller: a.Caller, JobKey: a.JobKey}
	p, err := e.begin(ctx, c)
	if err == nil {
		err = e.apply(a, effect)
		err = e.answer(ctx, p, err)
	} else {
		e.noteUnreached(a, err)
	}
	err = e.end(c, err)
	e.acknowledge(ctx, a, err)
	return err
}

// apply runs a command's effect and notes it.
func (e *Engine) apply(a *Answer, effect func(*Answer, *job) error) error {
	if err := checkVariables(a.Variables); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	e.expire(now)
	j := e.jobs[a.JobKey]
	err := refusal(a, j)
	if err == nil {
		err = effect(a, j)
	}
	a.At, a.Code, a.Reached = now, status.Code(err), true
	e.counts.answered(a)
	e.atGoal()
	e.note(j, a)
	e.changed()
	return err
}

// refusal is why the engine does not take a command; nil if it does.
func refusal(a *Answer, j *job) error {
	if j == nil || j.state.gone() {
		return status.Errorf(codes.NotFound, "%s: no job with key %d", a.Method, a.JobKey)
	}
	settles := a.Method == CompleteJob || a.Method == FailJob || a.Method == ThrowError
	if settles && !j.state.answerable() {
		return status.Errorf(codes.FailedPrecondition, "%s: job %d is %s", a.Method, a.JobKey, j.state)
	}
	return nil
}

// settle ends a job.
func (e *Engine) settle(j *job, a *Answer, to State) {
	a.Settled = true
	e.move(j, to)
}

// raise ends a job's way in an incident. An endless job is forgotten instead:
// it would pile up.
func (e *Engine) raise(j *job, a *Answer, to State) {
	a.Settled = true
	e.nextKey++
	j.incident = e.nextKey
	e.move(j, to)
	if j.history == nil {
		e.forget(j)
		return
	}
	e.incidents[j.incident] = j
}

// Resolve resolves an incident by the key [JobRecord] tells. Errors: NOT_FOUND;
// FAILED_PRECONDITION where the job has no retries (this package's choice: the
// real engine was not asked).
func (e *Engine) Resolve(ctx context.Context, caller string, incident int64) error {
	c := Call{Method: ResolveIncident, Caller: caller}
	return e.other(ctx, c, nil, func() error {
		j := e.incidents[incident]
		if j == nil || j.incident != incident {
			return status.Errorf(codes.NotFound, "no incident with key %d", incident)
		}
		if j.Retries < 1 {
			return status.Errorf(codes.FailedPrecondition, "job %d of incident %d has no retries", j.Key, incident)
		}
		j.incident = 0
		e.move(j, Activatable)
		return nil
	})
}

// SetVariables sets variables; see [SetVariablesRequest]. Errors: NOT_FOUND
// where no such scope lives, INVALID_ARGUMENT for what is no JSON object.
func (e *Engine) SetVariables(ctx context.Context, r SetVariablesRequest) error {
	c := Call{Method: SetVariables, Caller: r.Caller, Element: r.ElementInstanceKey}
	a := &Answer{Method: SetVariables, Caller: r.Caller, Variables: r.Variables, Local: r.Local}
	return e.other(ctx, c, a, func() error {
		if err := checkVariables(r.Variables); err != nil {
			return err
		}
		if e.setInInstance(r) {
			return nil
		}
		j := e.jobOf(r.ElementInstanceKey)
		if j == nil || j.state.gone() {
			return status.Errorf(codes.NotFound, "no element instance with key %d", r.ElementInstanceKey)
		}
		e.setInElement(j, a)
		return nil
	})
}

func (e *Engine) setInElement(j *job, a *Answer) {
	a.At, a.JobKey, a.Reached = e.now(), j.Key, true
	if j.history == nil {
		return
	}
	j.Variables = merged(j.Variables, a.Variables)
	if !a.Local {
		e.setInProcess(j, a.Variables)
	}
	e.note(j, a)
}

// other is the way of the calls that name no job; a is what the effect may have
// noted, or nil.
func (e *Engine) other(ctx context.Context, c Call, a *Answer, effect func() error) error {
	p, err := e.begin(ctx, c)
	if err == nil {
		err = e.locked(effect)
		err = e.answer(ctx, p, err)
	}
	err = e.end(c, err)
	e.acknowledge(ctx, a, err)
	return err
}

func (e *Engine) locked(effect func() error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.expire(e.now())
	err := effect()
	e.changed()
	return err
}

// cut shortens a message as the broker does.
func cut(message string) string {
	if len(message) <= messageLimit {
		return message
	}
	end := messageLimit
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end]
}

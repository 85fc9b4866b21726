// Package worker takes jobs from a process engine, decides what follows the failure each one carries,
// and answers.
//
// One job's way: loop.go activates it, analyze.go parses, decides and builds the reply, reply.go
// delivers that reply until the job's own deadline. The engine stands behind the Engine port; nothing
// here knows which engine it is.
package worker

import (
	"context"
	"errors"
	"time"
)

// Engine is a process engine as the loop needs it. Every method is safe for concurrent use, obeys its
// context and returns nil or an error that holds an *EngineError. Adapters do not retry.
type Engine interface {
	// Activate waits up to r.PollTimeout for jobs and returns at most r.MaxJobs, each locked for
	// r.JobTimeout. It may return jobs and an error together; the jobs are then locked all the same.
	Activate(ctx context.Context, r ActivateRequest) ([]Job, error)
	// Complete ends the job; variables is a JSON object that goes to the process.
	Complete(ctx context.Context, j *Job, variables string) error
	// Throw ends the job with a BPMN error whose variables the process sees even where the boundary
	// event that catches it maps nothing.
	Throw(ctx context.Context, j *Job, e BPMNError) error
	// Fail gives the job back. With retries left it is offered again after the back-off, at once where
	// that is 0; without, the engine raises an incident.
	Fail(ctx context.Context, j *Job, f Failure) error
}

// ActivateRequest asks for jobs of one type.
type ActivateRequest struct {
	JobType string
	// Worker names this process to the engine.
	Worker string
	// MaxJobs is at least 1.
	MaxJobs int
	// JobTimeout after which the engine offers an unanswered job again.
	JobTimeout time.Duration
	// PollTimeout is how long the engine waits for a job to appear.
	PollTimeout time.Duration
	// Variables to fetch; at least one.
	Variables []string
	// TenantIDs whose jobs are wanted; none means the engine's default tenant.
	TenantIDs []string
}

// Job is one activated job.
type Job struct {
	Key                int64
	ProcessInstanceKey int64
	ElementInstanceKey int64
	Type               string
	TenantID           string
	// Retries the engine still grants.
	Retries int32
	// Headers and Variables are JSON objects as the engine gave them.
	Headers, Variables string
	// LockedUntil is when the engine gives the job to another, in milliseconds by its own clock: it tells deliveries
	// apart, and is compared with no clock here. 0: the engine does not say.
	LockedUntil int64
	// Deadline up to which this process may answer, on the local monotonic clock; the loop sets it.
	Deadline time.Time
}

// BPMNError is an error for the model to catch. Code is its name there.
type BPMNError struct {
	Code, Message, Variables string
}

// Failure says how a job is given back. Retries is what the engine shall grant from now on.
type Failure struct {
	Retries int32
	Backoff time.Duration
	Message string
}

// ErrorKind is what an engine's refusal means for the caller. The set is closed.
type ErrorKind int

// The kinds. The zero value is Ambiguous: the safe reading of an error nobody classified.
const (
	// Ambiguous: the command may have taken effect; asking again is safe and tells.
	Ambiguous ErrorKind = iota
	// NotTaken: the command did not take effect (busy, no token, denied); ask again later.
	NotTaken
	// Gone: nobody waits for this answer any more.
	Gone
	// Refused: the engine will never take this command as it is.
	Refused
	// TooLarge: the jobs offered did not fit into one message; they stay locked until their time-out.
	TooLarge
)

// EngineError is a classified error of an Engine.
type EngineError struct {
	Kind ErrorKind
	Err  error
}

func (e *EngineError) Error() string { return e.Err.Error() }

// Unwrap returns the engine's own error.
func (e *EngineError) Unwrap() error { return e.Err }

// kindOf returns the kind of err, which is not nil.
func kindOf(err error) ErrorKind {
	if e, ok := errors.AsType[*EngineError](err); ok {
		return e.Kind
	}
	return Ambiguous
}

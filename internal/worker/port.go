// Package worker takes jobs from a process engine, decides what follows each job's failure, and answers.
//
// The way of a job: loop.go activates it, jobs.go gives it to the use case of its type, which returns a reply, and
// reply.go delivers that until the job's deadline. The engine is behind the Engine interface; nothing here depends on
// which engine it is.
package worker

import (
	"context"
	"errors"
	"time"
)

// Engine is a process engine. Its methods are safe for concurrent use, obey their context, and return nil or an error
// that holds an *EngineError. Adapters do not retry.
type Engine interface {
	// Activate waits up to r.PollTimeout for jobs and returns at most r.MaxJobs, each locked for r.JobTimeout. It may
	// return jobs together with an error; they are locked all the same.
	Activate(ctx context.Context, r ActivateRequest) ([]Job, error)
	// Complete ends the job; variables is a JSON object for the process.
	Complete(ctx context.Context, j *Job, variables string) error
	// Throw ends the job with a BPMN error. The process sees its variables even if the boundary event that catches it
	// maps none.
	Throw(ctx context.Context, j *Job, e BPMNError) error
	// Fail gives the job back. With retries left it is offered again after the back-off (0: at once). Otherwise the
	// engine raises an incident.
	Fail(ctx context.Context, j *Job, f Failure) error
	// Hold makes the engine offer an activated job again only after that time.
	Hold(ctx context.Context, j *Job, long time.Duration) error
	// Runs reports whether a process instance has not ended.
	Runs(ctx context.Context, processInstanceKey int64) (bool, error)
	// Ended reports whether a process instance is known to have ended. Its job is then not to be answered: an engine
	// that lost its data gives the job's key to another process.
	Ended(ctx context.Context, processInstanceKey int64) bool
}

// ActivateRequest asks for jobs of one type.
type ActivateRequest struct {
	JobType     string
	Worker      string        // identifies this process to the engine
	MaxJobs     int           // at least 1
	JobTimeout  time.Duration // when the engine offers an unanswered job again
	PollTimeout time.Duration // how long the engine waits for a job to appear
	Variables   []string      // to fetch; at least one
	TenantIDs   []string      // whose jobs are wanted; none means the engine's default tenant
}

// Job is one activated job.
type Job struct {
	Key                int64
	ProcessInstanceKey int64
	ElementInstanceKey int64
	Type               string
	TenantID           string
	// Retries that the engine still grants.
	Retries int32
	// Headers and Variables are JSON objects, unchanged.
	Headers, Variables string
	// LockedUntil is when the lock ends, in milliseconds of the engine's clock; 0 if the engine does not say. It
	// identifies a delivery and is not compared with any clock here.
	LockedUntil int64
	// Deadline is the latest time for an answer, on the local monotonic clock; the loop sets it.
	Deadline time.Time
}

// BPMNError is an error for the model to catch, by Code.
type BPMNError struct {
	Code, Message, Variables string
}

// Failure says how a job is given back. Retries is what the engine grants from now on.
type Failure struct {
	Retries int32
	Backoff time.Duration
	Message string
}

// ErrorKind says what an engine's error means for the caller. The set is closed.
type ErrorKind int

// The kinds. The zero value is Ambiguous, the safe reading of an unclassified error.
const (
	// Ambiguous: the command may have taken effect. Sending it again is safe and shows which.
	Ambiguous ErrorKind = iota
	// NotTaken: the command did not take effect (busy, no token, denied). Try again later.
	NotTaken
	// Gone: nobody waits for this answer.
	Gone
	// Refused: the engine will never take this command.
	Refused
	// TooLarge: the jobs did not fit into one message. They stay locked until their time-out.
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

package zeebe

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/worker"
)

var (
	_ worker.HoldingEngine = (*Client)(nil)
	_ worker.ReviewEngine  = (*Client)(nil)
)

// Activate implements worker.Engine.
func (c *Client) Activate(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
	jobs, err := c.gateway.activate(ctx, &r)
	return jobs, pollError(err)
}

// Complete implements worker.Engine.
func (c *Client) Complete(ctx context.Context, j *worker.Job, variables string) error {
	return replyError(c.gateway.complete(ctx, j, variables))
}

// Throw implements worker.Engine. The engine drops variables of an error that the boundary event does
// not map, so they are set on the task's element instance first, from where they reach the process.
func (c *Client) Throw(ctx context.Context, j *worker.Job, e worker.BPMNError) error {
	if !c.plainErrors {
		if err := c.gateway.setVariables(ctx, j.ElementInstanceKey, e.Variables); err != nil {
			return preparationError(err)
		}
	}
	return replyError(c.gateway.throw(ctx, j, &e))
}

// Fail implements worker.Engine.
func (c *Client) Fail(ctx context.Context, j *worker.Job, f worker.Failure) error {
	return replyError(c.gateway.fail(ctx, j, &f))
}

// Hold implements worker.HoldingEngine.
func (c *Client) Hold(ctx context.Context, j *worker.Job, long time.Duration) error {
	return replyError(c.gateway.setTimeout(ctx, j, long))
}

// Runs implements worker.ReviewEngine.
func (c *Client) Runs(ctx context.Context, processInstanceKey int64) (bool, error) {
	err := c.gateway.touch(ctx, processInstanceKey)
	if err != nil && kindOf(err) == worker.Gone {
		return false, nil
	}
	return err == nil, replyError(err)
}

// replyError classifies what the gateway said to an answer; nil stays nil.
func replyError(err error) error {
	if err == nil {
		return nil
	}
	return &worker.EngineError{Kind: kindOf(err), Err: err}
}

// preparationError is replyError for a command before the answer itself: whatever became of it, the
// job has not been answered.
func preparationError(err error) error {
	kind := kindOf(err)
	if kind == worker.Ambiguous {
		kind = worker.NotTaken
	}
	return &worker.EngineError{Kind: kind, Err: err}
}

// pollError classifies what the gateway said to an activation; nil stays nil.
func pollError(err error) error {
	if err == nil {
		return nil
	}
	kind := kindOf(err)
	// The receive limit is enforced on this side, with the code the gateway uses for being busy.
	if status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "received message") {
		kind = worker.TooLarge
	}
	return &worker.EngineError{Kind: kind, Err: err}
}

func kindOf(err error) worker.ErrorKind {
	if _, ok := errors.AsType[*tokenError](err); ok {
		return worker.NotTaken // nothing was sent
	}
	switch status.Code(err) {
	case codes.NotFound, codes.FailedPrecondition:
		return worker.Gone
	case codes.ResourceExhausted, codes.Unauthenticated, codes.PermissionDenied:
		return worker.NotTaken
	case codes.InvalidArgument, codes.Unimplemented, codes.OutOfRange, codes.AlreadyExists:
		return worker.Refused
	default: // UNAVAILABLE, DEADLINE_EXCEEDED, CANCELED, UNKNOWN, INTERNAL, ABORTED, DATA_LOSS
		return worker.Ambiguous
	}
}

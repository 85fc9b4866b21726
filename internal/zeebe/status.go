package zeebe

import (
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/worker"
)

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

package zeebe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxProblem bytes of what is told of an answer's detail; the engine cuts its own at as many.
const maxProblem = 10_000

// errTooLarge says what gRPC says of a message above the receive limit.
var errTooLarge = status.Errorf(codes.ResourceExhausted, "received message larger than max (%d)", maxReceiveBytes)

// restError is an error of the REST API.
type restError struct {
	status int    // 0: no answer, or none that can be understood
	title  string // of the engine's problem; empty where somebody else answered
	err    error
}

func (e *restError) Error() string { return e.err.Error() }
func (e *restError) Unwrap() error { return e.err }

// GRPCStatus returns the error as gRPC would have told it, so that both protocols are read alike.
func (e *restError) GRPCStatus() *status.Status { return status.New(e.code(), e.Error()) }

func (e *restError) code() codes.Code {
	switch {
	case errors.Is(e.err, context.DeadlineExceeded), e.status == http.StatusGatewayTimeout:
		return codes.DeadlineExceeded
	case errors.Is(e.err, context.Canceled):
		return codes.Canceled
	case e.status == http.StatusNotFound && e.title == "NOT_FOUND":
		return codes.NotFound
	case e.status == http.StatusConflict && e.title == "ALREADY_EXISTS":
		return codes.AlreadyExists
	case e.status == http.StatusConflict:
		return codes.FailedPrecondition
	case e.status == http.StatusTooManyRequests, e.status == http.StatusServiceUnavailable && e.title == busy,
		e.status == http.StatusInternalServerError && strings.Contains(e.Error(), busy):
		return codes.ResourceExhausted
	case e.status == http.StatusBadRequest, e.status == http.StatusRequestEntityTooLarge:
		return codes.InvalidArgument
	case e.status == http.StatusUnauthorized:
		return codes.Unauthenticated
	case e.status == http.StatusForbidden:
		return codes.PermissionDenied
	case e.status == http.StatusMethodNotAllowed, e.status == http.StatusNotImplemented:
		return codes.Unimplemented
	case e.status == http.StatusInternalServerError:
		return codes.Internal
	default: // another 503, and what is not the engine's: a proxy's 404, a redirection
		return codes.Unavailable
	}
}

// busy is how the engine names backpressure.
const busy = "RESOURCE_EXHAUSTED"

// problem reads an answer that is no success, whatever its content type says.
func problem(r *http.Response, text []byte) error {
	var said struct{ Title, Detail string }
	if err := json.Unmarshal(text, &said); err != nil || said.Title == "" {
		return &restError{r.StatusCode, "", fmt.Errorf("answered %s by %s, not as the engine does", r.Status,
			cmp.Or(r.Header.Get("Content-Type"), "nothing"))}
	}
	detail := said.Detail[:min(len(said.Detail), maxProblem)]
	return &restError{r.StatusCode, said.Title, fmt.Errorf("answered %d %s: %s", r.StatusCode, said.Title, detail)}
}

// transportError is an error of a call that was not answered as a whole.
func transportError(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		err = fmt.Errorf("%w (%w)", err, ended)
	}
	return &restError{0, "", err}
}

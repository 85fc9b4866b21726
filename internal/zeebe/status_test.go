package zeebe

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/worker"
)

// kinds is what each status code means to the loop: in answer to a poll or an answer, and to what has to
// be done before an answer.
var kinds = map[codes.Code][2]worker.ErrorKind{
	codes.Canceled:           {worker.Ambiguous, worker.NotTaken},
	codes.Unknown:            {worker.Ambiguous, worker.NotTaken},
	codes.InvalidArgument:    {worker.Refused, worker.Refused},
	codes.DeadlineExceeded:   {worker.Ambiguous, worker.NotTaken},
	codes.NotFound:           {worker.Gone, worker.Gone},
	codes.AlreadyExists:      {worker.Refused, worker.Refused},
	codes.PermissionDenied:   {worker.NotTaken, worker.NotTaken},
	codes.ResourceExhausted:  {worker.NotTaken, worker.NotTaken},
	codes.FailedPrecondition: {worker.Gone, worker.Gone},
	codes.Aborted:            {worker.Ambiguous, worker.NotTaken},
	codes.OutOfRange:         {worker.Refused, worker.Refused},
	codes.Unimplemented:      {worker.Refused, worker.Refused},
	codes.Internal:           {worker.Ambiguous, worker.NotTaken},
	codes.Unavailable:        {worker.Ambiguous, worker.NotTaken},
	codes.DataLoss:           {worker.Ambiguous, worker.NotTaken},
	codes.Unauthenticated:    {worker.NotTaken, worker.NotTaken},
}

// readings are the ways to read an error, in the order of kinds.
var readings = [2]struct {
	name string
	read func(error) error
}{{"answer", replyError}, {"preparation", preparationError}}

func TestEveryCode(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		want, known := kinds[code]
		if !known {
			t.Fatalf("%v has no place in the table", code)
		}
		for i, reading := range readings {
			plain := status.Error(code, "what the gateway says")
			for _, err := range []error{plain, fmt.Errorf("wrapped: %w", plain)} {
				WantKind(t, fmt.Sprintf("%v to a %s", code, reading.name), reading.read(err), want[i])
				if got := reading.read(err); !errors.Is(got, err) || got.Error() != err.Error() {
					t.Errorf("%v to a %s: %v lost what the gateway said", code, reading.name, got)
				}
			}
		}
	}
}

// WantKind fails unless err is an engine's, of that kind.
func WantKind(t *testing.T, what string, err error, want worker.ErrorKind) {
	t.Helper()
	refused, ok := errors.AsType[*worker.EngineError](err)
	if !ok {
		t.Errorf("%s: %v is no EngineError", what, err)
	} else if refused.Kind != want {
		t.Errorf("%s: kind %d, want %d (%v)", what, refused.Kind, want, err)
	}
}

// TestWhatIsNoStatus: a token that could not be had means that nothing was sent, whatever the reason; an
// error of unknown origin means that anything may have happened.
func TestWhatIsNoStatus(t *testing.T) {
	for _, inner := range []error{
		errors.New("identity provider is away"), context.Canceled, context.DeadlineExceeded, status.Error(codes.NotFound, "not of the engine"),
	} {
		for _, reading := range readings {
			WantKind(t, "no token, "+reading.name, reading.read(fmt.Errorf("call: %w", &tokenError{inner})), worker.NotTaken)
		}
	}
	WantKind(t, "an unknown error", replyError(errors.New("what is this")), worker.Ambiguous)
}

// TestTooLargeIsNotBusy: both have the same code.
func TestTooLargeIsNotBusy(t *testing.T) {
	for text, want := range map[string]worker.ErrorKind{
		"grpc: received message larger than max (17825792 vs. 16777216)":                       worker.TooLarge,
		"grpc: received message after decompression larger than max 16777216":                  worker.TooLarge,
		"partition 1 takes no more requests: writer buffer is full":                            worker.NotTaken,
		"Expected to activate jobs of type 'x', but no jobs available and at least one broker": worker.NotTaken,
	} {
		WantKind(t, text, replyError(status.Error(codes.ResourceExhausted, text)), want)
	}
	other := status.Error(codes.Internal, "grpc: received message larger than max (2 vs. 1)")
	WantKind(t, "the same words with another code", replyError(other), worker.Ambiguous)
}

package destination

import (
	"testing"

	"retry-worker/internal/classify"
)

func TestFailureEvent(t *testing.T) {
	for reason, want := range map[classify.Reason]Event{
		"TIMEOUT": Failed{"c", start}, "503": Failed{"c", start}, "RATE_LIMIT": RateLimited{"c", start, 0},
		"SERVER_ERROR": nil, "UNKNOWN": nil,
	} {
		if got := FailureEvent(&classify.Match{Reason: reason, Class: classify.Transient}, "c", start, 0); got != want {
			t.Errorf("%s is %#v, want %#v", reason, got, want)
		}
	}
	refused := classify.Match{Reason: "INVALID_PATIENT_DATA", Class: classify.Permanent}
	if got := FailureEvent(&refused, "c", start, 0); got != (Answered{"c", start}) {
		t.Errorf("a refusal is %#v", got)
	}
}

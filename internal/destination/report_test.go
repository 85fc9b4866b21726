package destination

import (
	"testing"
	"time"

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

func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		variable, text string
		want           time.Duration
	}{
		{"120", "", 2 * time.Minute},
		{"Mon, 02 Mar 2026 08:05:00 GMT", "", 5 * time.Minute},
		{"", `429 Too Many Requests {"retry-after": "30"}`, 30 * time.Second},
		{"", "HTTP 503, Retry-After: Mon, 02 Mar 2026 08:01:00 GMT", time.Minute},
		{"soon", "", 0},
		{"", "try again after 30 seconds", 0},
	} {
		if got := RetryAfter(tt.variable, tt.text, start); got != tt.want {
			t.Errorf("%q, %q: %s, want %s", tt.variable, tt.text, got, tt.want)
		}
	}
}

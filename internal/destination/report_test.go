package destination

import (
	"testing"
	"time"

	"retry-worker/internal/classify"
)

func TestTellsOf(t *testing.T) {
	for reason, want := range map[classify.Reason]Tells{
		"TIMEOUT": TellsFailed, "503": TellsFailed, "RATE_LIMIT": TellsRateLimited, "SERVER_ERROR": "", "UNKNOWN": "",
	} {
		if got := TellsOf(&classify.Match{Reason: reason, Class: classify.Transient}, 0); got != want {
			t.Errorf("%s tells %q, want %q", reason, got, want)
		}
	}
	refused := classify.Match{Reason: "INVALID_PATIENT_DATA", Class: classify.Permanent}
	if got := TellsOf(&refused, 0); got != TellsAnswered {
		t.Errorf("a refusal tells %q", got)
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

package destination

import (
	"testing"
	"time"

	"retry-worker/internal/classify"
)

func TestTellsOf(t *testing.T) {
	for reason, want := range map[classify.Reason]Tells{
		"TIMEOUT": TellsFailed, "CONNECTION_ERROR": TellsFailed, "NETWORK_ERROR": TellsFailed, "SERVICE_UNAVAILABLE": TellsFailed,
		"503": TellsFailed, "504": TellsFailed, "RATE_LIMIT": TellsRateLimited, "SERVER_ERROR": "", "UNKNOWN": "",
	} {
		if got := TellsOf(&classify.Match{Reason: reason, Class: classify.Transient}, 0); got != want {
			t.Errorf("%s tells %q, want %q", reason, got, want)
		}
	}
	for reason, want := range map[classify.Reason]Tells{"503": TellsFailed, "RATE_LIMIT": TellsRateLimited, "SERVER_ERROR": TellsRateLimited} {
		if got := TellsOf(&classify.Match{Reason: reason, Class: classify.Transient}, time.Minute); got != want {
			t.Errorf("%s with a Retry-After tells %q, want %q", reason, got, want)
		}
	}
	refused := classify.Match{Reason: "INVALID_PATIENT_DATA", Class: classify.Permanent}
	if got := TellsOf(&refused, 0); got != TellsAnswered {
		t.Errorf("a refusal tells %q", got)
	}
}

// The tests check the package against the business rules and RESOLUTIONS, by its public API alone. Statement
// coverage, at least 96 % (§13.1 of both rules), is checked by `make cover`, which is `go test -cover
// ./internal/decision`. `make fuzz` runs the fuzz targets.
package decision_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// analysed is the instant of RN-BIL-005 §9.1's example.
var analysed = time.Date(2025, 1, 12, 10, 40, 0, 0, time.UTC)

// claim returns a valid failure with that count (as JSON; empty: absent) and error text.
func claim(count, text string) decision.Variables {
	return decision.Variables{
		ID:         decision.Text("CLM-001-123"),
		Error:      decision.Text(text),
		RetryCount: decision.Value(count),
	}
}

// decide reads v and decides on it under p with nothing remembered, as the worker does.
func decide(p *decision.Policy, v decision.Variables) decision.Decision {
	return decideWith(p, v, decision.Past{}, analysed)
}

func decideWith(p *decision.Policy, v decision.Variables, past decision.Past, now time.Time) decision.Decision {
	f, rejection := p.Read(v)
	if rejection != nil {
		return decision.RejectedBy(p.Name, rejection)
	}
	return decision.Decide(&f, p, past, now)
}

// assumingTransient returns tiss-submission with RN-BIL-005 §8.1's wish for empty errors.
func assumingTransient() *decision.Policy {
	p := decisiontest.TISSSubmission()
	p.EmptyError = decision.AssumeTransient
	return p
}

// patient returns tiss-submission with so many retries that its backoff reaches the cap.
func patient(maxRetries int64) *decision.Policy {
	p := decisiontest.TISSSubmission()
	p.MaxRetries = maxRetries
	return p
}

// wantRetry fails unless d schedules the retry that follows analysis count+1.
func wantRetry(t *testing.T, d decision.Decision, class decision.ErrorClassification, count, least, most int64) {
	t.Helper()
	if d.Outcome != decision.Retry || !d.ShouldRetry() {
		t.Fatalf("outcome is %s (%v), want RETRY", d.Outcome, d.Rejection)
	}
	if d.ErrorClassification != class {
		t.Errorf("classification is %s, want %s", d.ErrorClassification, class)
	}
	if d.RetryCount != count {
		t.Errorf("retryCount is %d, want %d", d.RetryCount, count)
	}
	if m := decision.Minutes(d.Backoff.Delay); m < least || m > most {
		t.Errorf("backoff is %d minutes, want %d to %d", m, least, most)
	}
	if got := d.NextRetryTime.Sub(analysed); got != d.Backoff.Delay {
		t.Errorf("nextRetryTime is %s after the analysis, want the backoff %s", got, d.Backoff.Delay)
	}
}

// wantFinal fails unless d ends the retries without changing the count.
func wantFinal(t *testing.T, d decision.Decision, outcome decision.Outcome, count int64) {
	t.Helper()
	if d.Outcome != outcome || d.ShouldRetry() {
		t.Fatalf("outcome is %s (%v), want %s", d.Outcome, d.Rejection, outcome)
	}
	if d.RetryCount != count {
		t.Errorf("retryCount is %d, want it unchanged at %d", d.RetryCount, count)
	}
	if d.Backoff != (decision.Backoff{}) || !d.NextRetryTime.IsZero() {
		t.Errorf("a final decision carries a retry: %+v at %s", d.Backoff, d.NextRetryTime)
	}
	if d.Team == "" {
		t.Error("nobody is to act on a final decision (R21)")
	}
}

// TestMain makes rapid check each property 1,000 times unless -rapid.checks says otherwise.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "1000"); err != nil {
		panic(err)
	}
	os.Exit(m.Run()) // parses the command line, which overrides that
}

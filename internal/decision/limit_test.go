package decision_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// hourly waits exactly an hour between tries, so that a limit can be met to the second.
func hourly(limit time.Duration) *decision.Policy {
	p := patient(1000)
	p.Backoff = decision.BackoffRule{Base: time.Hour, Min: time.Hour, Max: time.Hour, Factor: 1, Rounding: time.Second}
	p.TotalLimit = limit
	return p
}

// TestDeadline: no retry is scheduled after the claim's own deadline (R29); at it, one is.
func TestDeadline(t *testing.T) {
	p := decisiontest.TISSSubmission()
	at := decide(p, decision.Variables{ID: `"CLM-1-1"`, Error: `"TIMEOUT"`}).NextRetryTime
	for _, test := range []struct {
		deadline time.Time
		outcome  decision.Outcome
	}{{at, decision.Retry}, {at.Add(-time.Second), decision.MaxRetriesExceeded}, {at.AddDate(-1, 0, 0), decision.MaxRetriesExceeded}} {
		d := decide(p, decision.Variables{ID: `"CLM-1-1"`, Error: `"TIMEOUT"`, Deadline: decision.Text(decision.Instant(test.deadline))})
		if d.Outcome != test.outcome {
			t.Errorf("a deadline at %s, the retry at %s: %s", test.deadline, at, d.Outcome)
		}
		if sentence := "Deadline " + decision.Instant(test.deadline) + " cannot be met"; d.Outcome != decision.Retry &&
			(d.Reason != decision.ReasonDeadline || d.RetryReason != sentence || d.RetryCount != 0) {
			t.Errorf("given up for %s: %q", d.Reason, d.RetryReason)
		}
	}
}

// TestR20TimeLimit: a retry at the limit is made, one later is not; the failure is then final.
func TestR20TimeLimit(t *testing.T) {
	tests := []struct {
		name    string
		limit   time.Duration
		age     time.Duration // of the first failure
		text    string
		outcome decision.Outcome
		reason  string
	}{
		{"long before", 48 * time.Hour, time.Hour, "TIMEOUT", "RETRY", "Transient error, retry 3 of 1000"},
		{"exactly at it", 48 * time.Hour, 47 * time.Hour, "TIMEOUT", "RETRY", "Transient error, retry 3 of 1000"},
		{"a second later", 48 * time.Hour, 47*time.Hour + time.Second, "TIMEOUT", "MAX_RETRIES_EXCEEDED", "Time limit of 48h reached"},
		{"a part of a second later", 48 * time.Hour, 47*time.Hour + time.Nanosecond, "TIMEOUT", "MAX_RETRIES_EXCEEDED", "Time limit of 48h reached"},
		{"an unknown error too", 48 * time.Hour, 100 * time.Hour, "?", "MAX_RETRIES_EXCEEDED", "Time limit of 48h reached"},
		{"a permanent error is one", 48 * time.Hour, 100 * time.Hour, "DUPLICATE_CLAIM", "PERMANENT_ERROR", "Permanent error, not retried"},
		{"a limit below the backoff", 59 * time.Minute, 0, "TIMEOUT", "MAX_RETRIES_EXCEEDED", "Time limit of 59m reached"},
		{"none", 0, 100_000 * time.Hour, "TIMEOUT", "RETRY", "Transient error, retry 3 of 1000"},
		{"the longest", math.MaxInt64, 100_000 * time.Hour, "TIMEOUT", "RETRY", "Transient error, retry 3 of 1000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			past := decision.Past{FirstFailure: analysed.Add(-tt.age)}
			d := decideWith(hourly(tt.limit), claim("2", tt.text), past, analysed)
			if d.Outcome != tt.outcome || d.RetryReason != tt.reason {
				t.Errorf("%s: %s; want %s: %s", d.Outcome, d.RetryReason, tt.outcome, tt.reason)
			}
			if d.Outcome == decision.MaxRetriesExceeded {
				wantFinal(t, d, decision.MaxRetriesExceeded, 2)
				if d.Reason != decision.ReasonTimeLimit || d.Team != "faturamento" {
					t.Errorf("for %s, %s's", d.Reason, d.Team)
				}
			}
		})
	}
	late := decideWith(hourly(48*time.Hour), claim("2", "HTTP 503"), decision.Past{FirstFailure: analysed.Add(-48 * time.Hour)}, analysed)
	if late.ErrorClassification != decision.Transient || late.MatchedRule != "503" || late.MatchedText != "503" {
		t.Errorf("the error is not told: %s by %q at %q", late.ErrorClassification, late.MatchedRule, late.MatchedText)
	}
	v := claim("0", "TIMEOUT") // the process's own word of when it began counts too (R23)
	v.LastSubmissionTime = decision.Text(analysed.Add(-48 * time.Hour).Format(time.RFC3339))
	if d := decide(decisiontest.TISSSubmission(), v); d.Reason != decision.ReasonTimeLimit {
		t.Errorf("submitted 48 hours ago: %s for %s", d.Outcome, d.Reason)
	}
}

// TestRebaseBeyondTheLimit: what was not answered in time is not retried beyond the limit either.
func TestRebaseBeyondTheLimit(t *testing.T) {
	p := hourly(48 * time.Hour)
	d := decideWith(p, claim("2", "HTTP 503"), decision.Past{FirstFailure: analysed.Add(-40 * time.Hour)}, analysed)
	d.SuccessProbability = 0.5
	if at := d.Rebase(p, &decision.Failure{}, analysed.Add(7*time.Hour)); at.Outcome != decision.Retry || at.RetryCount != 3 || !at.NextRetryTime.Equal(analysed.Add(8*time.Hour)) {
		t.Errorf("at the limit: %s, count %d, at %s", at.Outcome, at.RetryCount, at.NextRetryTime)
	}
	beyond := d.Rebase(p, &decision.Failure{}, analysed.Add(7*time.Hour+time.Second))
	wantFinal(t, beyond, decision.MaxRetriesExceeded, 2)
	if beyond.SuccessProbability != 0 || beyond.Reason != decision.ReasonTimeLimit || beyond.RetryReason != "Time limit of 48h reached" || beyond.MatchedRule != "503" {
		t.Errorf("for %s by %q: %s", beyond.Reason, beyond.MatchedRule, beyond.RetryReason)
	}
	p.TotalLimit = 0
	if at := d.Rebase(p, &decision.Failure{}, analysed.Add(1000*time.Hour)); at.Outcome != decision.Retry {
		t.Errorf("without a limit: %s", at.Outcome)
	}
}

// TestReasonsAreClosed: what a rule may give and what decisions give themselves, each once, fit to label a metric.
func TestReasonsAreClosed(t *testing.T) {
	seen := map[decision.Reason]bool{}
	for _, r := range decision.Reasons() {
		if seen[r] || r == "" || strings.ToUpper(string(r)) != string(r) {
			t.Errorf("reason %q", r)
		}
		seen[r] = true
	}
	for _, r := range decision.RuleReasons() {
		if !seen[r] {
			t.Errorf("%s is no reason", r)
		}
	}
}

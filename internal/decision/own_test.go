package decision_test

import (
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

var serverError = classify.Rule{Name: "5xx", Class: decision.Transient, Reason: "503", Statuses: []string{"5xx"}}

// jobQueue is UC-004's policy (R15): no retries but those a job brings itself.
func jobQueue() *decision.Policy {
	return &decision.Policy{
		Name: "job-queue", IDVariable: "jobId", ErrorVariable: "jobError", HTTPStatusVariable: "httpStatus",
		Own:       &decision.OwnVariables{MaxAttempts: "maxAttempts", Delay: "delayBetweenAttempts", NonRetryable: "nonRetryable"},
		IDPattern: regexp.MustCompile(`^.+$`), InvalidID: decision.InvalidID,
		Backoff:    decision.BackoffRule{Base: time.Second, Min: time.Second, Max: 30 * time.Second, Factor: 5, Rounding: time.Millisecond},
		Rules:      decisiontest.Rules(decisiontest.Permanent("BAD_INPUT", "ti"), decisiontest.Transient("TIMEOUT"), serverError),
		EmptyError: decision.AssumeTransient, LimitTeam: "ti",
	}
}

// job is a failure of jobQueue.
func job(count, text string) decision.Variables {
	return decision.Variables{ID: `"job-1"`, Error: decision.Text(text), RetryCount: decision.Value(count)}
}

// TestR15OwnRetryPolicy: what a job says of its own retries holds.
func TestR15OwnRetryPolicy(t *testing.T) {
	tests := []struct {
		name                      string
		maxAttempts, delay, final decision.Value
		count, text               string
		outcome                   decision.Outcome
		reason                    decision.Reason
		maxRetries                int64
		wait                      time.Duration
	}{
		{"no policy: the first failure is final (FA-004.1)", "", "", "", "0", "TIMEOUT", "MAX_RETRIES_EXCEEDED", "MAX_RETRIES", 0, 0},
		{"a delay alone is no policy", "", `"PT5S"`, "", "0", "TIMEOUT", "MAX_RETRIES_EXCEEDED", "MAX_RETRIES", 0, 0},
		{"one attempt is no retry", "1", "", "", "0", "TIMEOUT", "MAX_RETRIES_EXCEEDED", "MAX_RETRIES", 0, 0},
		{"two are one", "2", `"PT5S"`, "", "0", "TIMEOUT", "RETRY", "TIMEOUT", 1, 5 * time.Second},
		{"and no more", "2", `"PT5S"`, "", "1", "TIMEOUT", "MAX_RETRIES_EXCEEDED", "MAX_RETRIES", 1, 0},
		{"the delay is constant", "9", `"PT5S"`, "", "7", "TIMEOUT", "RETRY", "TIMEOUT", 8, 5 * time.Second},
		{"in milliseconds", "3", "1500", "", "1", "TIMEOUT", "RETRY", "TIMEOUT", 2, 1500 * time.Millisecond},
		{"longer than the policy's longest", "3", `"PT2H"`, "", "1", "TIMEOUT", "RETRY", "TIMEOUT", 2, 2 * time.Hour},
		{"shorter than its shortest", "3", "1", "", "1", "TIMEOUT", "RETRY", "TIMEOUT", 2, time.Millisecond},
		{"no delay is a second", "3", "0", "", "1", "TIMEOUT", "RETRY", "TIMEOUT", 2, time.Second},
		{"without a delay the policy's backoff", "4", "", "", "2", "TIMEOUT", "RETRY", "TIMEOUT", 3, 25 * time.Second},
		{"an unknown error is retried", "2", "0", "", "0", "?", "RETRY", "UNKNOWN", 1, time.Second},
		{"no error text too", "2", "0", "", "0", "", "RETRY", "EMPTY_ERROR", 1, time.Second},
		{"nonRetryable is final (FA-004.2)", "9", "0", "true", "0", "TIMEOUT", "PERMANENT_ERROR", "NON_RETRYABLE", 8, 0},
		{"false is not", "9", "0", "false", "0", "TIMEOUT", "RETRY", "TIMEOUT", 8, time.Second},
		{"a permanent rule says more than nonRetryable", "9", "0", "true", "0", "BAD_INPUT", "PERMANENT_ERROR", "BAD_INPUT", 8, 0},
		{"and is final without it", "9", "0", "", "0", "BAD_INPUT", "PERMANENT_ERROR", "BAD_INPUT", 8, 0},
		{"the limit comes first (R1)", "2", "0", "true", "1", "BAD_INPUT", "MAX_RETRIES_EXCEEDED", "MAX_RETRIES", 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := job(tt.count, tt.text)
			v.MaxAttempts, v.Delay, v.NonRetryable = tt.maxAttempts, tt.delay, tt.final
			d := decide(jobQueue(), v)
			if d.Outcome != tt.outcome || d.Reason != tt.reason || d.MaxRetries != tt.maxRetries || d.Backoff.Delay != tt.wait {
				t.Errorf("%s for %s, %d retries, %s (%v); want %s for %s, %d, %s",
					d.Outcome, d.Reason, d.MaxRetries, d.Backoff.Delay, d.Rejection, tt.outcome, tt.reason, tt.maxRetries, tt.wait)
			}
			if d.Backoff.AtMaximum {
				t.Error("a constant delay is at no maximum (R19)")
			}
			if d.Outcome == decision.PermanentError && (d.Team != "ti" || d.ErrorClassification != decision.Permanent) {
				t.Errorf("%s's by %s", d.Team, d.ErrorClassification)
			}
			if d.Reason == decision.ReasonNonRetryable && d.MatchedRule != "nonRetryable" {
				t.Errorf("matched by %q", d.MatchedRule)
			}
		})
	}
}

// TestR15Malformed: refused by name, in the order count, time, status, attempts, delay, nonRetryable.
func TestR15Malformed(t *testing.T) {
	const (
		attempts = ", expected a whole number from 1 to 1000, or none (no retry policy)"
		delay    = ", expected an ISO 8601 duration such as PT30S, or milliseconds as a whole number, at most 366 days, or none"
		final    = ", expected true, false, or none"
		status   = ", expected a whole number from 100 to 599, or none"
	)
	tests := []struct {
		v    decision.Variables
		want string
	}{
		{decision.Variables{MaxAttempts: "0"}, "INVALID_RETRY_POLICY: maxAttempts is 0" + attempts},
		{decision.Variables{MaxAttempts: "2.5"}, "INVALID_RETRY_POLICY: maxAttempts is 2.5" + attempts},
		{decision.Variables{MaxAttempts: `"3"`}, `INVALID_RETRY_POLICY: maxAttempts is "3" (text)` + attempts},
		{decision.Variables{MaxAttempts: "1001"}, "INVALID_RETRY_POLICY: maxAttempts is 1001" + attempts},
		{decision.Variables{MaxAttempts: "99999999999", Delay: "0"}, "INVALID_RETRY_POLICY: maxAttempts is 99999999999" + attempts},
		{decision.Variables{MaxAttempts: "0", Delay: "-1", NonRetryable: "1", HTTPStatus: "1"}, "INVALID_HTTP_STATUS: httpStatus is 1" + status},
		{decision.Variables{MaxAttempts: "0", Delay: "-1", NonRetryable: "1"}, "INVALID_RETRY_POLICY: maxAttempts is 0" + attempts},
		{decision.Variables{Delay: "-1", NonRetryable: "1"}, "INVALID_RETRY_POLICY: delayBetweenAttempts is -1" + delay},
		{decision.Variables{Delay: `"30s"`}, `INVALID_RETRY_POLICY: delayBetweenAttempts is "30s" (text)` + delay},
		{decision.Variables{Delay: "31622400001"}, "INVALID_RETRY_POLICY: delayBetweenAttempts is 31622400001" + delay},
		{decision.Variables{NonRetryable: "1"}, "INVALID_RETRY_POLICY: nonRetryable is 1" + final},
		{decision.Variables{NonRetryable: `"true"`}, `INVALID_RETRY_POLICY: nonRetryable is "true" (text)` + final},
		{decision.Variables{HTTPStatus: `"503"`}, `INVALID_HTTP_STATUS: httpStatus is "503" (text)` + status},
		{decision.Variables{HTTPStatus: "99"}, "INVALID_HTTP_STATUS: httpStatus is 99" + status},
		{decision.Variables{HTTPStatus: "600"}, "INVALID_HTTP_STATUS: httpStatus is 600" + status},
		{decision.Variables{HTTPStatus: "1", RetryCount: "-1"}, "INVALID_RETRY_COUNT: retryCount is -1, expected a whole number from 0 to 9223372036854775807, or none"},
	}
	for _, tt := range tests {
		tt.v.ID, tt.v.Error = `"job-1"`, `"TIMEOUT"`
		if d := decide(jobQueue(), tt.v); d.Rejection == nil || d.Rejection.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", d.Rejection, tt.want)
		}
	}
}

// TestHTTPStatusBeside: R13's variable; 0, null and nothing are none.
func TestHTTPStatusBeside(t *testing.T) {
	p := jobQueue()
	p.MaxRetries = 3
	p.Rules = decisiontest.Rules(serverError, classify.Rule{Name: "404", Class: decision.Permanent, Reason: "NOT_FOUND", Team: "ti", Statuses: []string{"404"}})
	rejecting := *p
	rejecting.EmptyError = decision.RejectEmptyError
	tests := []struct {
		policy  *decision.Policy
		status  decision.Value
		text    string
		outcome decision.Outcome
		reason  decision.Reason
		matched string
	}{
		{p, "503", "?", "RETRY", "503", "503"}, {p, "404", "HTTP 503", "PERMANENT_ERROR", "NOT_FOUND", "404"}, {p, "404.0", "?", "PERMANENT_ERROR", "NOT_FOUND", "404"},
		{p, "200", "HTTP 404", "RETRY", "UNKNOWN", ""}, {p, "100", "HTTP 404", "RETRY", "UNKNOWN", ""}, {p, "599", "HTTP 404", "RETRY", "503", "599"}, {p, "0", "HTTP 404", "PERMANENT_ERROR", "NOT_FOUND", "404"}, {p, "null", "HTTP 404", "PERMANENT_ERROR", "NOT_FOUND", "404"}, {p, "", "HTTP 404", "PERMANENT_ERROR", "NOT_FOUND", "404"},
		// No text: the status tells what failed, where the policy lets an error be empty (R1.3, R11).
		{p, "404", "", "PERMANENT_ERROR", "NOT_FOUND", "404"}, {p, "503", " ", "RETRY", "503", "503"}, {p, "418", "", "RETRY", "EMPTY_ERROR", ""}, {p, "0", "", "RETRY", "EMPTY_ERROR", ""}, {p, "", "", "RETRY", "EMPTY_ERROR", ""},
		{&rejecting, "404", "", "REJECTED", "", ""}, {&rejecting, "503", "\t", "REJECTED", "", ""}, {&rejecting, "", "", "REJECTED", "", ""}, {&rejecting, "404", "?", "PERMANENT_ERROR", "NOT_FOUND", "404"},
	}
	for _, tt := range tests {
		v := job("0", tt.text)
		v.HTTPStatus = tt.status
		d := decide(tt.policy, v)
		if d.Outcome != tt.outcome || d.Reason != tt.reason || d.MatchedText != tt.matched {
			t.Errorf("status %q, text %q: %s for %q at %q (%v), want %s for %q at %q", tt.status, tt.text, d.Outcome, d.Reason, d.MatchedText, d.Rejection, tt.outcome, tt.reason, tt.matched)
		}
		if tt.reason == "EMPTY_ERROR" && d.ErrorClassification != decision.Transient {
			t.Errorf("status %q, text %q: an empty error is %s", tt.status, tt.text, d.ErrorClassification)
		}
	}
	if d := decide(&rejecting, decision.Variables{ID: `"j"`, HTTPStatus: "404"}); d.Rejection == nil || d.Rejection.Code != decision.InvalidErrorMessage {
		t.Errorf("no error, status 404: %v", d.Rejection)
	}
}

// TestGiveUpUnknown: where the policy says so, an error that no rule knows is final.
func TestGiveUpUnknown(t *testing.T) {
	p := decisiontest.TISSSubmission()
	p.UnknownError, p.EmptyError = decision.GiveUpUnknown, decision.AssumeTransient
	d := decide(p, claim("1", "ORA-00001"))
	wantFinal(t, d, decision.PermanentError, 1)
	if d.ErrorClassification != decision.Unknown || d.Reason != decision.ReasonUnknown || d.Team != "faturamento" || d.RetryReason != "Unknown error, not retried" {
		t.Errorf("%s for %s, %s's: %s", d.ErrorClassification, d.Reason, d.Team, d.RetryReason)
	}
	wantRetry(t, decide(p, claim("1", "TIMEOUT")), decision.Transient, 2, 8, 12)
	wantRetry(t, decide(p, claim("1", "")), decision.Transient, 2, 8, 12) // empty is not unknown
	wantFinal(t, decide(p, claim("5", "ORA-00001")), decision.MaxRetriesExceeded, 5)
}

// TestVariablesOfAPolicy: only what it reads is asked for, each by its own name.
func TestVariablesOfAPolicy(t *testing.T) {
	var asked []string
	get := func(name string) decision.Value {
		asked = append(asked, name)
		return decision.Text(name)
	}
	got := jobQueue().Variables(get)
	want := decision.Variables{ID: `"jobId"`, Error: `"jobError"`, RetryCount: `"retryCount"`, LastSubmissionTime: `"lastSubmissionTime"`,
		HTTPStatus: `"httpStatus"`, MaxAttempts: `"maxAttempts"`, Delay: `"delayBetweenAttempts"`, NonRetryable: `"nonRetryable"`}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	p := decisiontest.TISSSubmission()
	asked = nil
	if got := p.Variables(get); got.HTTPStatus+got.MaxAttempts+got.Delay+got.NonRetryable != "" || got.Destination+got.RetryAfter+got.Deadline != `"operadora""retryAfter""submissionDeadline"` || len(asked) != 7 {
		t.Errorf("tiss-submission reads %+v: %v", got, asked)
	}
	p.Own = &decision.OwnVariables{NonRetryable: "final"}
	if got := p.Variables(get); got.NonRetryable != `"final"` || got.MaxAttempts+got.Delay != "" {
		t.Errorf("with one own variable: %+v", got)
	}
	policies := decision.Policies{"job-queue": jobQueue(), "tiss-submission": decisiontest.TISSSubmission()}
	all := []string{"claimId", "delayBetweenAttempts", "httpStatus", "jobError", "jobId", "lastSubmissionTime", "maxAttempts", "nonRetryable", "operadora", "retryAfter", "retryCount", "submissionDeadline", "submissionError"}
	if got := policies.Variables(); !slices.Equal(got, all) {
		t.Errorf("all read %v", got)
	}
}

// TestInputsOfAnIdentity: four for every policy, word for word as before there were others; more only where they came.
func TestInputsOfAnIdentity(t *testing.T) {
	read := func(p *decision.Policy, v decision.Variables) []decision.Value {
		f, rejection := p.Read(v)
		if rejection != nil {
			t.Fatal(rejection)
		}
		return f.Inputs()
	}
	four := claim("1", "TIMEOUT")
	if got := read(decisiontest.TISSSubmission(), four); !slices.Equal(got, []decision.Value{`"CLM-001-123"`, "1", "", `"TIMEOUT"`}) {
		t.Errorf("tiss-submission: %q", got)
	}
	v := job("1", "x")
	plain := []decision.Value{`"job-1"`, "1", "", `"x"`}
	if got := read(jobQueue(), v); !slices.Equal(got, plain) {
		t.Errorf("nothing of its own: %q", got)
	}
	v.HTTPStatus, v.MaxAttempts = "null", "null"
	if got := read(jobQueue(), v); !slices.Equal(got, plain) {
		t.Errorf("nulls: %q", got)
	}
	v.HTTPStatus, v.MaxAttempts, v.Delay, v.NonRetryable = "503", "3", `"PT5S"`, "false"
	want := append(slices.Clone(plain), "httpStatus", "503", "maxAttempts", "3", "delay", `"PT5S"`, "nonRetryable", "false")
	if got := read(jobQueue(), v); !slices.Equal(got, want) {
		t.Errorf("all: %q", got)
	}
	v.HTTPStatus, v.MaxAttempts, v.Delay = "", "", ""
	if got := read(jobQueue(), v); !slices.Equal(got, append(plain[:4:4], "nonRetryable", "false")) {
		t.Errorf("one: %q", got)
	}
}

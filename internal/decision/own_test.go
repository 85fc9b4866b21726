package decision_test

import (
	"reflect"
	"slices"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// job is a failure of jobQueue.
func job(count, text string) decision.Variables {
	return decision.Variables{ID: `"job-1"`, Error: decision.Text(text), RetryCount: decision.Value(count)}
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

package worker_test

import (
	"encoding/json"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"retry-worker/internal/worker"
)

// deadLetterAt is the dead letter's id that a job ends with when it is analysed at an instant.
func deadLetterAt(t *testing.T, j worker.Job, now time.Time) string {
	t.Helper()
	var outputs struct{ DeadLetterID string }
	h := handleAt(j, now, zapcore.DebugLevel)
	if err := json.Unmarshal([]byte(h.reply.Error.Variables), &outputs); err != nil || outputs.DeadLetterID == "" {
		t.Fatalf("no dead letter: %+v (%v)", h.reply, err)
	}
	return outputs.DeadLetterID
}

// TestDeadLetterID: the id is the analysis's identity: job, element instance, process instance,
// subject, and the redacted inputs as they came. Nothing else moves it.
func TestDeadLetterID(t *testing.T) {
	const inputs = `"retryCount":5,"submissionError":"TIMEOUT","lastSubmissionTime":"2025-01-12T10:00:00Z"`
	base := func() worker.Job { return job(worker.AnalyzeRetry, "{}", claim(inputs)) }
	want := deadLetterAt(t, base(), analysed)
	tests := []struct {
		name   string
		same   bool
		change func(j *worker.Job)
	}{
		{"the same again", true, func(*worker.Job) {}},
		{"delivered again after a lost retry", true, func(j *worker.Job) { j.Retries = 1 }},
		{"delivered again with another deadline", true, func(j *worker.Job) { j.Deadline = analysed }},
		{"the default policy named", true, func(j *worker.Job) { j.Headers = `{"retryPolicy":"tiss-submission"}` }},
		{"another header", true, func(j *worker.Job) { j.Headers = `{"x":"y"}` }},
		{"a variable that is not read", true, func(j *worker.Job) { j.Variables = claim(inputs + `,"other":1`) }},
		{"other order and white space", true, func(j *worker.Job) {
			j.Variables = ` { "submissionError" : "TIMEOUT" ,"lastSubmissionTime":"2025-01-12T10:00:00Z", "claimId":"CLM-001-123", "retryCount":5}`
		}},

		{"another job", false, func(j *worker.Job) { j.Key++ }},
		{"another element instance", false, func(j *worker.Job) { j.ElementInstanceKey++ }},
		{"another process instance", false, func(j *worker.Job) { j.ProcessInstanceKey++ }},
		{"another tenant", false, func(j *worker.Job) { j.TenantID = "hospital-b" }},
		{"another claim", false, func(j *worker.Job) { j.Variables = `{"claimId":"CLM-001-124",` + inputs + `}` }},
		{"another error", false, func(j *worker.Job) {
			j.Variables = claim(`"retryCount":5,"submissionError":"HTTP 503","lastSubmissionTime":"2025-01-12T10:00:00Z"`)
		}},
		{"another count", false, func(j *worker.Job) {
			j.Variables = claim(`"retryCount":6,"submissionError":"TIMEOUT","lastSubmissionTime":"2025-01-12T10:00:00Z"`)
		}},
		{"the same count as it came otherwise", false, func(j *worker.Job) {
			j.Variables = claim(`"retryCount":5.0,"submissionError":"TIMEOUT","lastSubmissionTime":"2025-01-12T10:00:00Z"`)
		}},
		{"another submission time", false, func(j *worker.Job) {
			j.Variables = claim(`"retryCount":5,"submissionError":"TIMEOUT","lastSubmissionTime":"2025-01-12T10:00:01Z"`)
		}},
		{"no submission time", false, func(j *worker.Job) { j.Variables = claim(`"retryCount":5,"submissionError":"TIMEOUT"`) }},
		{"another policy", false, func(j *worker.Job) {
			j.Headers = `{"retryPolicy":"quick"}`
			j.Variables = `{"messageId":"CLM-001-123","retryCount":5,"sendError":"TIMEOUT","lastSubmissionTime":"2025-01-12T10:00:00Z"}`
		}},
	}
	seen := map[string]string{want: "the first"}
	for _, tt := range tests {
		j := base()
		tt.change(&j)
		got := deadLetterAt(t, j, analysed)
		if tt.same && got != want {
			t.Errorf("%s: the id is %s, want %s as before", tt.name, got, want)
		}
		if !tt.same {
			if other, double := seen[got]; double {
				t.Errorf("%s has the id of %s", tt.name, other)
			}
			seen[got] = tt.name
		}
	}
	if later := deadLetterAt(t, base(), analysed.Add(26*time.Hour)); later != want {
		t.Errorf("analysed a day later, the id is %s, want %s", later, want)
	}
}

// TestDeadLetterIDOfPeople: the id is made of redacted inputs, so that it cannot be used to try out
// whose number it was; the same error about another person is the same input.
func TestDeadLetterIDOfPeople(t *testing.T) {
	of := func(text string) string {
		return deadLetterAt(t, job(worker.AnalyzeRetry, "{}", claim(`"submissionError":"`+text+`"`)), analysed)
	}
	if of("INVALID_PATIENT_DATA CPF 529.982.247-25") != of("INVALID_PATIENT_DATA CPF 111.444.777-35") {
		t.Error("the id tells two CPFs apart")
	}
	if of("INVALID_PATIENT_DATA CPF 529.982.247-25") == of("DUPLICATE_CLAIM CPF 529.982.247-25") {
		t.Error("the id does not tell two errors apart")
	}
}

// TestDeadLetterIDIsFixed: an id that was given out is found again by any later version.
func TestDeadLetterIDIsFixed(t *testing.T) {
	got := deadLetterAt(t, job(worker.AnalyzeRetry, "{}", claim(`"submissionError":"TIMEOUT","retryCount":5`)), analysed)
	if want := "33d3604d-23e7-5b99-b49a-9876b6a5a245"; got != want {
		t.Errorf("the id is %s, want %s: a change here orphans every dead letter there is", got, want)
	}
}

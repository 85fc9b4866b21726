package worker_test

import (
	"encoding/json"
	"testing"
	"time"

	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// TestDeadLetterID: an id that was given out is found again by any later version, and whenever the job comes again. It is
// made of the job, its inputs and the journal's key (journal.IdentityKey).
func TestDeadLetterID(t *testing.T) {
	const inputs = `"submissionError":"TIMEOUT","retryCount":5`
	seen := map[string]string{}
	for name, tt := range map[string]struct {
		same   bool
		change func(j *worker.Job)
	}{
		"the first":                 {true, func(*worker.Job) {}},
		"again, after a lost retry": {true, func(j *worker.Job) { j.Retries, j.Deadline = 1, analysed }},
		"the default policy named":  {true, func(j *worker.Job) { j.Headers = `{"retryPolicy":"tiss-submission","x":"y"}` }},
		"another variable, more space": {true, func(j *worker.Job) {
			j.Variables = `{ "x":1 , "retryCount" : 5,"claimId":"CLM-001-123",` + inputs + `}`
		}},
		"another job":              {false, func(j *worker.Job) { j.Key++ }},
		"another element instance": {false, func(j *worker.Job) { j.ElementInstanceKey++ }},
		"another process instance": {false, func(j *worker.Job) { j.ProcessInstanceKey++ }},
		"another tenant":           {false, func(j *worker.Job) { j.TenantID = "hospital-b" }},
		"another claim":            {false, func(j *worker.Job) { j.Variables = `{"claimId":"CLM-001-124",` + inputs + `}` }},
		"another error":            {false, func(j *worker.Job) { j.Variables = claim(`"submissionError":"HTTP 503","retryCount":5`) }},
		"an error with a CPF":      {false, func(j *worker.Job) { j.Variables = claim(`"submissionError":"TIMEOUT 111.444.777-35","retryCount":5`) }},
		"with another CPF":         {false, func(j *worker.Job) { j.Variables = claim(`"submissionError":"TIMEOUT 123.456.789-09","retryCount":5`) }},
		"another count":            {false, func(j *worker.Job) { j.Variables = claim(`"submissionError":"TIMEOUT","retryCount":6`) }},
		"a submission time": {false, func(j *worker.Job) {
			j.Variables = claim(inputs + `,"lastSubmissionTime":"2025-01-12T10:00:00Z"`)
		}},
		"another policy": {false, func(j *worker.Job) {
			j.Headers, j.Variables = `{"retryPolicy":"quick"}`, `{"messageId":"CLM-001-123","retryCount":5,"sendError":"TIMEOUT"}`
		}},
	} {
		j := job(worker.AnalyzeRetry, "{}", claim(inputs))
		tt.change(&j)
		h := handleRemembering(testkit.NewMemory(), j, analysed.Add(26*time.Hour))
		var outputs struct{ DeadLetterID string }
		testkit.Must(t, json.Unmarshal([]byte(h.reply.Error.Variables), &outputs))
		got := outputs.DeadLetterID
		if tt.same != (got == "a4c9c3f6-f889-5ef9-8ea4-b587ac9d6e8a") {
			t.Errorf("%s: the id is %s; a change here orphans every dead letter there is", name, got)
		}
		if other, known := seen[got]; known && !tt.same {
			t.Errorf("%s has the id of %s", name, other)
		}
		seen[got] = name
	}
}

package scenarios

import (
	"maps"
	"slices"
	"testing"

	"retry-worker/internal/worker"
)

// The outputs of the contract.
var (
	completionOutputs = []string{
		"shouldRetry", "retryCount", "maxRetries", "backoffMinutes", "backoffDuration", "nextRetryTime", "retryReason",
		"errorClassification", "originalError", "retryPolicy", "possiblyAccepted",
	}
	errorOutputs = []string{
		"shouldRetry", "retryCount", "maxRetries", "retryReason", "errorClassification", "originalError", "retryPolicy", "possiblyAccepted",
		"deadLetterId", "responsibleTeam",
	}
)

// end is one way that an analysis ends in a process of another author.
type end struct {
	name, text string
	made       int // retries before
	endedBy    string
	outputs    []string
	want       map[string]string
}

var ends = []end{
	{"completed", "HTTP 503", 0, "scheduled", completionOutputs, map[string]string{
		"shouldRetry": "true", "retryCount": "1", "maxRetries": "5", "retryReason": `"Transient error, retry 1 of 5"`,
		"errorClassification": `"TRANSIENT"`, "originalError": `"HTTP 503"`, "retryPolicy": `"tiss-submission"`,
	}},
	{"limit", "HTTP 503", 5, "limit_reached", errorOutputs, map[string]string{
		"shouldRetry": "false", "retryCount": "5", "maxRetries": "5", "retryReason": `"Maximum of 5 retries reached"`,
		"errorClassification": `"TRANSIENT"`, "originalError": `"HTTP 503"`, "retryPolicy": `"tiss-submission"`, "responsibleTeam": `"faturamento"`,
	}},
	{"permanent", "INSURANCE_EXPIRED", 2, "given_up", errorOutputs, map[string]string{
		"shouldRetry": "false", "retryCount": "2", "maxRetries": "5", "retryReason": `"Permanent error, not retried"`,
		"errorClassification": `"PERMANENT"`, "originalError": `"INSURANCE_EXPIRED"`, "retryPolicy": `"tiss-submission"`, "responsibleTeam": `"cadastro"`,
	}},
}

var analyses = []string{worker.AnalyzeRetry, worker.RetrySubmissionBackoff}

// analysisCounts are the counts after each of the ends, once for each job type.
func analysisCounts() counts {
	c := counts{"processes completed": len(ends) * len(analyses)}
	for _, t := range analyses {
		c[t+" completed"], c[t+" error thrown"] = 1, 2
	}
	return c
}

// A model whose task has no header and no mapping, and whose boundary events map nothing.
func TestProcessOfAnotherAuthorSeesAllOutputs(t *testing.T) {
	withEverybody(t, byGRPC, func(t *testing.T, s *world) {
		for n, analysis := range analyses {
			for _, e := range ends {
				claimID := s.claimID(n)
				key := s.create("UNMAPPED", map[string]any{"analysis": analysis, "claimId": claimID, "submissionError": e.text, "retryCount": e.made})
				s.awaitEnded(key)
				i := s.instance(key)
				s.expectVariables(i, e.want)
				s.expectNames(i, slices.Concat([]string{"analysis", "claimId", "submissionError"}, e.outputs))
				if i.endedBy != e.endedBy {
					s.t.Errorf("%s %s: the process ended at %s, expected %s", analysis, e.name, i.endedBy, e.endedBy)
				}
				if e.endedBy != "scheduled" {
					expectUUID(s.t, i.variables["deadLetterId"])
				}
				s.expectEvent(key, analysis, e)
			}
		}
		s.expectCounts(analysisCounts())
		s.done("another author's model, no mapping", "%d instances", len(ends)*len(analyses))
	})
}

// expectNames holds the names of a process's variables against what they should be. The chance of a retry is there as well
// once the worker knows of others.
func (s *scenario) expectNames(i instance, want []string) {
	s.t.Helper()
	slices.Sort(want)
	got := slices.Sorted(maps.Keys(i.variables))
	got = slices.DeleteFunc(got, func(name string) bool { return name == "successProbability" })
	if !slices.Equal(got, want) {
		s.t.Errorf("the process %s has the variables %v, expected %v", i.process, got, want)
	}
}

// expectEvent holds the worker's log against R16.
func (s *scenario) expectEvent(key int64, analysis string, e end) {
	s.t.Helper()
	want := map[string]string{"completed": "retry_scheduled", "limit": "max_retries_exceeded", "permanent": "permanent_error_detected"}[e.name]
	if analysis == worker.RetrySubmissionBackoff && e.name == "completed" {
		want = "submission_retry_scheduled"
	}
	lines := s.worker.Log.About(s.t, key, 1)
	if len(lines) != 1 || lines[0].Text("event") != want {
		s.t.Errorf("%s %s: the worker's log has %v, expected one line with the event %s", analysis, e.name, lines, want)
	}
}

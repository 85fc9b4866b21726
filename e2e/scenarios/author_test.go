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

// ends are the ways that an analysis ends in a process of another author. What the outputs are internal/worker tells.
var ends = []struct {
	text    string
	made    int // retries before
	endedBy string
	outputs []string
}{
	{"HTTP 503", 0, "scheduled", completionOutputs}, {"HTTP 503", 5, "limit_reached", errorOutputs}, {"INSURANCE_EXPIRED", 2, "given_up", errorOutputs},
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
				s.expectNames(i, slices.Concat([]string{"analysis", "claimId", "submissionError"}, e.outputs))
				if i.endedBy != e.endedBy {
					s.t.Errorf("%s: the process ended at %s, expected %s", analysis, i.endedBy, e.endedBy)
				}
				if e.endedBy != "scheduled" {
					expectUUID(s.t, i.variables["deadLetterId"])
				}
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

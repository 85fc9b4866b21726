package scenarios

import (
	"fmt"
	"maps"
	"strings"

	"retry-worker/e2e/harness/engine"
	"retry-worker/internal/worker"
)

// counts are what was done: "analyze-retry completed", "timers triggered", "incidents pending", "processes completed". What is
// not named is 0.
type counts map[string]int

var (
	jobTypes = []string{
		submitClaim, checkSubmission, sendMessage, runJob, checkDependencies, runQueuedJob,
		worker.AnalyzeRetry, worker.RetrySubmissionBackoff, worker.RetryReview, worker.RecordRetryOutcome, worker.SubmissionGate,
	}
	// jobActions are the engine's words, by its records' intents.
	jobActions = map[string]string{"COMPLETED": "completed", "ERROR_THROWN": "error thrown", "CANCELED": "canceled"}
)

// countsOf are what an engine counted since it was started.
func countsOf(c engine.Counters) counts {
	all := counts{
		"timers triggered":    c.Elements("INTERMEDIATE_CATCH_EVENT", "completed"), // messages that came are counted with them
		"incidents pending":   c.PendingIncidents(),
		"processes completed": c.Elements("PROCESS", "completed"),
		"timed out":           c.Jobs("", "timed out"),
	}
	for _, t := range jobTypes {
		for _, a := range []string{"created", "completed", "error thrown", "failed", "timed out", "canceled"} {
			all[t+" "+a] = c.Jobs(t, a)
		}
	}
	return all
}

// differences from other counts, in words; empty where there are none.
func (c counts) differences(want counts) string {
	all := maps.Clone(c)
	maps.Copy(all, want)
	var wrong []string
	for what := range all {
		if c[what] != want[what] {
			wrong = append(wrong, fmt.Sprintf("%s: %d, expected %d", what, c[what], want[what]))
		}
	}
	return strings.Join(wrong, "; ")
}

// How jobs are given back unanswered, retries unchanged, which the engine counts as failed.
const (
	// unsentMark: by the gateway, when the poll that they were for is over.
	unsentMark = "Failed to send activated jobs to client"
	// handedBackMark: by a worker that stops.
	handedBackMark = "handed back: worker "
)

// countInto adds what happened to an instance, with the jobs that were given back unanswered or without.
func (i *instance) countInto(c counts, givenBack bool) {
	c["timers triggered"] += i.caught
	for _, x := range i.incidents {
		if !x.resolved {
			c["incidents pending"]++
		}
	}
	if i.completed {
		c["processes completed"]++
	}
	for _, j := range i.jobs {
		c[j.kind+" created"]++
		for _, a := range j.answers {
			c[j.kind+" "+jobActions[a.intent]]++
		}
		for _, f := range j.failures {
			back := f.retries > 0 && (f.message == unsentMark || strings.HasPrefix(f.message, handedBackMark))
			if givenBack || !back {
				c[j.kind+" failed"]++
			}
		}
		c[j.kind+" timed out"] += len(j.timeouts)
		c["timed out"] += len(j.timeouts)
	}
}

// expectCounts holds what the engine did for the scenario against what it should; whether its own counters agree with that, the
// fixture sees to at the end. How many jobs were created follows from how they ended, and how many gates were passed from how
// many claims were submitted.
func (s *scenario) expectCounts(want counts) {
	s.t.Helper()
	if _, said := want["submission-gate completed"]; !said {
		want["submission-gate completed"] = want["submit-claim completed"] + want["submit-claim error thrown"] + want["submit-claim canceled"]
	}
	for _, t := range jobTypes {
		if _, said := want[t+" created"]; !said {
			want[t+" created"] = want[t+" completed"] + want[t+" error thrown"] + want[t+" canceled"]
		}
	}
	wrong := ""
	defer func() {
		if wrong != "" {
			s.t.Logf("the engine did %s", wrong)
		}
	}()
	s.await("the engine to have done what it should", func() bool {
		got := make(counts)
		for _, key := range s.keys {
			if i := s.history.instances[key]; i != nil {
				i.countInto(got, false)
			}
		}
		wrong = got.differences(want)
		return wrong == ""
	})
}

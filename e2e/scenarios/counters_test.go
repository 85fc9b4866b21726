package scenarios

import (
	"context"
	"fmt"
	"strings"
	"time"

	"retry-worker/e2e/harness/zeebe"
	"retry-worker/internal/worker"
)

// counts are what the broker counted in a scenario: "analyze-retry completed", "timers triggered",
// "incidents pending", "processes completed". What is not named is to be 0.
type counts map[string]int

var (
	jobTypes = []string{
		submitClaim, sendMessage, runJob, checkDependencies, runQueuedJob,
		worker.AnalyzeRetry, worker.RetrySubmissionBackoff, worker.RetryReview, worker.RecordRetryOutcome,
	}
	jobActions = []string{"created", "completed", "error thrown", "failed", "timed out", "canceled"}
)

const (
	// askEvery is the pause between two looks at the counters.
	askEvery = 50 * time.Millisecond
	// askFor is how long they may take to be what they should: they lag a moment behind.
	askFor = 10 * time.Second
)

func (s *scene) counters() zeebe.Counters {
	s.t.Helper()
	c, err := s.Counters(s.t.Context())
	s.must(err)
	return c
}

// since are the counts from one look to another.
func since(before, now zeebe.Counters) counts {
	c := counts{
		// Messages that came are counted with them.
		"timers triggered":    now.Elements("INTERMEDIATE_CATCH_EVENT", "completed") - before.Elements("INTERMEDIATE_CATCH_EVENT", "completed"),
		"incidents pending":   now.PendingIncidents() - before.PendingIncidents(),
		"processes completed": now.Elements("PROCESS", "completed") - before.Elements("PROCESS", "completed"),
	}
	for _, t := range jobTypes {
		for _, a := range jobActions {
			c[t+" "+a] = now.Jobs(t, a) - before.Jobs(t, a)
		}
	}
	c["timed out"] = now.Jobs("", "timed out") - before.Jobs("", "timed out")
	return c
}

// expectCounts holds the broker's own counters against what they should be since the scenario began. How
// many jobs were created follows from how they ended.
func (s *scene) expectCounts(want counts) {
	s.t.Helper()
	for _, t := range jobTypes {
		if _, said := want[t+" created"]; !said {
			want[t+" created"] = want[t+" completed"] + want[t+" error thrown"] + want[t+" canceled"]
		}
	}
	var wrong []string
	s.eventually(func() bool {
		wrong = nil
		back := s.givenBack()
		for what, got := range since(s.before, s.counters()) {
			if got != want[what]+back[what] {
				wrong = append(wrong, fmt.Sprintf("%s: %d, expected %d, and %d given back unanswered", what, got, want[what], back[what]))
			}
		}
		return wrong == nil
	})
	if wrong != nil {
		s.t.Errorf("the broker's counters:\n%s", strings.Join(wrong, "\n"))
	}
}

// How jobs are given back unanswered, retries unchanged, which the broker counts as failed.
const (
	// unsentMark: by the gateway, when the poll that they were for is over. Moving the broker's clock ends
	// all polls at once, so it happens here where elsewhere it is rare.
	unsentMark = "Failed to send activated jobs to client"
	// handedBackMark: by a worker that stops.
	handedBackMark = "handed back: worker "
)

// givenBack are the jobs of this scenario that were given back unanswered.
func (s *scene) givenBack() counts {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	c := make(counts)
	for _, j := range s.history.jobs {
		for _, f := range j.failures {
			if f.position > s.first && f.retries > 0 && (f.message == unsentMark || strings.HasPrefix(f.message, handedBackMark)) {
				c[j.kind+" failed"]++
			}
		}
	}
	return c
}

// eventually asks until met, for a while.
func (s *scene) eventually(met func() bool) {
	s.t.Helper()
	s.eventuallyWithin(askFor, met)
}

func (s *scene) eventuallyWithin(d time.Duration, met func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for !met() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

package bulk_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/bulk"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
)

const (
	tiss  = "tiss-submission"
	runID = "0190c7a0-0000-7000-8000-000000000001"
)

// shelf is what a Service reads and writes: sums of dead letters, and one run.
type shelf struct {
	tallies []journal.DeadLetterTally
	later   []journal.DeadLetterTally // came after the record 100
	asked   []journal.DeadLetterFilter
	recent  time.Time
	run     *journal.BulkRun
	steps   []journal.BulkStep
	groups  error
	err     error
}

func (s *shelf) DeadLetterTallies(_ context.Context, f journal.DeadLetterFilter, through int64, recent time.Time) ([]journal.DeadLetterTally, int64, error) {
	s.asked, s.recent = append(s.asked, f), recent
	if through == 0 && len(s.later) > 0 {
		return append(s.tallies[:len(s.tallies):len(s.tallies)], s.later...), 200, s.err
	}
	return s.tallies, 100, s.err
}

func (s *shelf) DeadLetterGroups(context.Context, journal.DeadLetterFilter, string, int) ([]journal.DeadLetterGroup, string, error) {
	return []journal.DeadLetterGroup{{N: 7}}, "", s.groups
}

func (s *shelf) BulkRun(_ context.Context, id string) (journal.BulkRun, bool, error) {
	if s.run == nil || s.run.ID != id {
		return journal.BulkRun{}, false, s.err
	}
	return *s.run, true, s.err
}

func (s *shelf) BulkRuns(_ context.Context, cursor string, limit int) ([]journal.BulkRun, string, error) {
	if cursor != "" {
		return nil, "", journal.ErrBadCursor
	}
	return make([]journal.BulkRun, limit), "more", s.err
}

func (s *shelf) BulkItems(_ context.Context, _ string, _ journal.BulkOutcome, after int64, limit int) ([]journal.BulkItem, error) {
	return []journal.BulkItem{{Number: after + int64(limit)}}, s.err
}

func (s *shelf) Bulk(_ context.Context, step *journal.BulkStep) (journal.BulkRun, error) {
	s.steps = append(s.steps, *step)
	switch {
	case s.err != nil:
		return journal.BulkRun{}, s.err
	case step.Verb == journal.BulkStart:
		r := step.Run
		r.State = journal.BulkPreparing
		return r, nil
	case s.run == nil || s.run.ID != step.Run.ID:
		return journal.BulkRun{}, journal.ErrBulkRunUnknown
	case s.run.State == journal.BulkDone || s.run.State == journal.BulkCancelled || s.run.State == journal.BulkPaused && step.Verb == journal.BulkPause:
		return journal.BulkRun{}, &journal.BulkStateError{State: s.run.State}
	}
	return *s.run, nil
}

// service over s, with an engine that answers since so long; below 0: not at all.
func (s *shelf) service(engine time.Duration) *bulk.Service {
	up := func() time.Time {
		if engine < 0 {
			return time.Time{}
		}
		return time.Now().Add(-engine)
	}
	return bulk.New(s, s, func() decision.Policies { return catalogue.Default().Policies }, time.Now, up)
}

func retry(f journal.DeadLetterFilter) bulk.Command {
	return bulk.Command{Action: journal.BulkRetry, Filter: f, Reason: "senha corrigida", By: "maria"}
}

func refused(t *testing.T, what string, err error, code review.Code) string {
	t.Helper()
	r := review.Refused(err)
	if r == nil || r.Code != code || r.Message == "" || strings.Contains(r.Message, "\n") {
		t.Fatalf("%s: %v, want one line of the refusal %s", what, err, code)
	}
	return r.Message
}

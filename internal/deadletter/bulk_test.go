package deadletter_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// TestTooManyForOneRun: a plan of more than a run may have is refused.
func TestTooManyForOneRun(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := deadletter.New(crowded{f.Store}, f.Journal, func() decision.Policies { return nil }, time.Now, f.EngineUp)
		_, err := s.Plan(f.t.Context(), retryAll(journal.DeadLetterFilter{}))
		if r := refused(f.t, "a plan", err, deadletter.InvalidFilter); !strings.Contains(r.Message, "more than 10000") {
			f.t.Error(r)
		}
	})
}

// crowded is a store with more dead letters than a run may have.
type crowded struct{ deadletter.Store }

func (crowded) DeadLettersOpen(_ context.Context, _ journal.DeadLetterFilter, _ int64, limit int) ([]deadletter.Item, int64, error) {
	return make([]deadletter.Item, min(limit, 20_000)), 1, nil
}

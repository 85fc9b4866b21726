package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/kpi"
)

// UnknownPolicyError is why there are no KPIs: nobody knows a policy of that name, nor was anything recorded of one.
type UnknownPolicyError struct {
	Policy string
	Known  []string
}

func (e *UnknownPolicyError) Error() string {
	return fmt.Sprintf("the policy is %q, expected one of %s", e.Policy, strings.Join(e.Known, ", "))
}

// KPIs returns R19's figures at instant now (RN-BIL-005 §6, RN-BIL-004 §6) of one policy, or of all where it is empty:
// the known ones and those that something was recorded of lately. A policy that the catalogue no longer has keeps its
// figures, without values once their window is over. It reads sums, not records. Its errors are a *UnknownPolicyError
// and those of s.
func KPIs(ctx context.Context, s journal.Statistics, known []string, policy string, now time.Time) ([]kpi.KPI, error) {
	figures, err := s.Sums(ctx, kpi.FirstSlot(now))
	if err != nil {
		return nil, fmt.Errorf("read the figures: %w", err)
	}
	if policy == "" {
		return kpi.All(figures, known, now), nil
	}
	figures = slices.DeleteFunc(figures, func(f journal.Sum) bool { return f.Policy != policy })
	if len(figures) == 0 && !slices.Contains(known, policy) {
		causes, err := s.Causes(ctx, journal.CauseFilter{Policy: policy}, nil, 1) // of whatever was ever decided (R24)
		if err != nil {
			return nil, fmt.Errorf("read the causes: %w", err)
		}
		if len(causes) == 0 {
			return nil, &UnknownPolicyError{policy, known}
		}
	}
	return kpi.All(figures, []string{policy}, now), nil
}

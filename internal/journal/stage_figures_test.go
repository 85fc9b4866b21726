package journal_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
)

// many has new claims fail, so many times each, and succeed that long after their first failure, all at the same time.
func (s *stage) many(a *arguments) (string, error) {
	began := s.now
	n, err := strconv.Atoi(a.First)
	if err != nil {
		return "", err
	}
	for range n {
		s.claims++
		of := fmt.Sprintf("CLM-MANY-%d", s.claims)
		for n := range max(1, a.Number("failures")) {
			s.job++
			_, err := s.analyze(&arguments{First: of, Named: map[string]string{"job": fmt.Sprint(s.job), "instance": fmt.Sprint(s.claims), "error": cmp.Or(a.Named["error"], "TIMEOUT"),
				"count": fmt.Sprint(a.Number("count") + n), "lastSubmissionTime": a.Named["lastSubmissionTime"]}})
			if err != nil {
				return "", err
			}
		}
		if after := a.Named["recover"]; after != "" {
			d, err := time.ParseDuration(after)
			if err != nil {
				return "", err
			}
			s.now = began.Add(d)
			_, err = s.outcome(&arguments{First: of, Words: map[string]bool{"success": true}})
			if s.now = began; err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// figures tells those of R19 that have a value, with their goals: all, or the named ones. Through the next day the mean and the
// median of the time to success are of the same recoveries.
func (s *stage) figures(a *arguments) (string, error) {
	sums, err := s.memory.Sums(s.t.Context(), 0)
	text := ""
	for ahead := time.Duration(0); ahead < 25*time.Hour; ahead += 7 * time.Minute {
		samples := map[string]int64{}
		for _, k := range statistics.All(sums, []string{decision.DefaultPolicy}, s.now.Add(ahead)) {
			samples[k.Name] = k.Samples
		}
		if n := samples["time_to_success_mean"]; n != samples["time_to_success_median"] {
			text += fmt.Sprintf("in %s the mean is of %d recoveries, the median of %d\n", ahead, n, samples["time_to_success_median"])
		}
	}
	for _, k := range statistics.All(sums, []string{decision.DefaultPolicy}, s.now) {
		if k.Value == nil || len(a.Words) > 0 && !a.Words[k.Name] || k.Policy != decision.DefaultPolicy {
			continue
		}
		text += fmt.Sprintf("%s %.6g (%d)", k.Name, *k.Value, k.Samples)
		for _, g := range k.Goals {
			if g.Holds != nil {
				text += fmt.Sprintf(", %s %s %s %g: %t", strings.TrimPrefix(string(g.Rule), "RN-BIL-"), g.Kind, g.Compare, g.Limit, *g.Holds)
			}
		}
		text += "\n"
	}
	return cmp.Or(text, "none\n"), err
}

// causes tells what became of the failures of each cause, and what is learnt from them.
func (s *stage) causes(*arguments) (string, error) {
	all, err := s.memory.Causes(s.t.Context(), journal.CauseFilter{}, nil, 99)
	if err != nil {
		return "", err
	}
	slices.SortFunc(all, func(a, b journal.Cause) int { return strings.Compare(a.Pattern, b.Pattern) })
	text := ""
	for _, c := range all {
		text += fmt.Sprintf("%s %q since %s: %d failures, %d retried, %d permanent, %d exhausted, %d recovered\n", c.Reason, c.Pattern, clock(c.FirstSeen), c.Failures, c.Retried,
			c.Permanent, c.Exhausted, c.Recovered)
	}
	cases, err := s.memory.Cases(s.t.Context(), []int64{journal.WeekOf(s.now)}, 9)
	for _, c := range cases {
		text += fmt.Sprintf("learnt: %d recovered in %s, %d lost\n", c.Recovered, c.Took, c.Lost)
	}
	return cmp.Or(text, "none\n"), err
}

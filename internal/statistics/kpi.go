// Package statistics evaluates what was recorded: the figures of R19, how the retries of a cause ended and how likely
// its claims recover (R26), and which causes are new (R34).
package statistics

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// The windows of R19: "diária" and "semanal".
const (
	Daily  = 24 * time.Hour
	Weekly = 7 * 24 * time.Hour
)

// KPI is one figure of R19 for one policy over a window that ends now.
type KPI struct {
	Policy string `json:"policy"`
	// Name is the figure's. Unit is ratio, minutes, retries, claims or seconds.
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Window is in hours.
	Window float64 `json:"windowHours"`
	// Value is nil if there are no samples.
	Value *float64 `json:"value"`
	// Samples is how many events or episodes Value is made of.
	Samples int64 `json:"samples"`
	// Goals are the targets and alerts of the rules.
	Goals []Goal `json:"goals"`
}

// Goal is a target or an alert of one of the rules.
type Goal struct {
	Rule decision.BusinessRule `json:"rule"`
	// Kind is target or alert.
	Kind string `json:"kind"`
	// Compare is the operator between Value and Limit. If it holds, a target is met, or an alert raised.
	Compare string  `json:"compare"`
	Limit   float64 `json:"limit"`
	// Holds is nil if there is no value.
	Holds *bool `json:"holds"`
}

// Kinds of goals.
const (
	Target = "target"
	Alert  = "alert"
)

// measure says how to make one KPI from the sums of a window.
type measure struct {
	name, unit string
	window     time.Duration
	of         func(s sums) (value float64, samples int64)
	goals      []Goal
}

func target(rule decision.BusinessRule, compare string, limit float64) Goal {
	return Goal{Rule: rule, Kind: Target, Compare: compare, Limit: limit}
}

func alert(rule decision.BusinessRule, limit float64) Goal {
	return Goal{Rule: rule, Kind: Alert, Compare: ">", Limit: limit}
}

// SuccessRate is the KPI that retry_success_rate shows.
const SuccessRate = "success_rate"

// measures is the table of R19 (RN-BIL-005 §6, RN-BIL-004 §6).
var measures = []measure{
	{SuccessRate, "ratio", Daily,
		share(journal.SumRecoveredRetried, 1, journal.SumRecoveredRetried, journal.SumExhaustedRetried),
		[]Goal{target(decision.RNBIL005, ">=", 0.80), target(decision.RNBIL004, ">=", 0.85)}},
	{"time_to_success_mean", "minutes", Daily,
		share(journal.SumRecoveryTime, 60_000, journal.SumRecoveredRetried),
		[]Goal{target(decision.RNBIL005, "<=", 120)}},
	{"time_to_success_median", "minutes", Daily, median(journal.SumRecoveryTimeBucket, 60),
		[]Goal{target(decision.RNBIL004, "<=", 60)}},
	{"retries_to_success", "retries", Daily, share(journal.SumRecoveryRetries, 1, journal.SumRecoveredRetried),
		[]Goal{target(decision.RNBIL004, "<=", 1.2)}},
	{"permanent_rate", "ratio", Weekly, share(journal.SumPermanent, 1, journal.SumDecisions),
		[]Goal{target(decision.RNBIL005, "<", 0.10), alert(decision.RNBIL005, 0.15), alert(decision.RNBIL004, 0.10)}},
	{"exhausted_rate", "ratio", Weekly, share(journal.SumExhausted, 1, journal.SumClosed),
		[]Goal{target(decision.RNBIL005, "<", 0.05), target(decision.RNBIL004, "<=", 0.03),
			alert(decision.RNBIL005, 0.05)}},
	{"at_maximum_rate", "ratio", Weekly, share(journal.SumAtMaximum, 1, journal.SumScheduled),
		[]Goal{alert(decision.RNBIL004, 0.05)}},
	{"backoff_mean", "minutes", Daily, share(journal.SumBackoff, 60_000, journal.SumScheduled),
		[]Goal{alert(decision.RNBIL004, 30)}},
	{"already_accepted", "claims", Weekly, number(journal.SumAccepted), nil}, // R33: in no figure above
	{"processing_time_p99", "seconds", Daily, quantile(0.99, journal.SumTook, 1e6),
		[]Goal{alert(decision.RNBIL005, 1)}},
}

// share measures a sum, divided by unit and by the total of the sums each, which are its samples.
func share(of journal.SumName, unit float64, each ...journal.SumName) func(sums) (float64, int64) {
	return func(s sums) (value float64, samples int64) {
		for _, name := range each {
			samples += s.total(name)
		}
		if samples > 0 {
			value = float64(s.total(of)) / float64(samples) / unit
		}
		return value, samples
	}
}

// number measures how often something happened.
func number(of journal.SumName) func(sums) (float64, int64) {
	return func(s sums) (float64, int64) { return float64(s.total(of)), s.total(of) }
}

// quantile measures the q-quantile of a distribution, as its bucket divided by unit.
func quantile(q float64, of journal.SumName, unit float64) func(sums) (float64, int64) {
	return func(s sums) (value float64, samples int64) {
		samples = s.total(of)
		return s.ranked(of, int64(math.Ceil(q*float64(samples)))) / unit, samples
	}
}

// median measures the median of a distribution, divided by unit: the mean of the middle two if the size is even.
func median(of journal.SumName, unit float64) func(sums) (float64, int64) {
	return func(s sums) (value float64, samples int64) {
		samples = s.total(of)
		return (s.ranked(of, (samples+1)/2) + s.ranked(of, samples/2+1)) / 2 / unit, samples
	}
}

// ranked returns the bucket of the sample with that rank, from 1 on.
func (s sums) ranked(of journal.SumName, rank int64) (value float64) {
	for _, bucket := range slices.Sorted(maps.Keys(s[of])) {
		value = float64(bucket)
		if rank -= s[of][bucket]; rank <= 0 {
			break
		}
	}
	return value
}

// sums holds one policy's sums over one window, by name and bucket.
type sums map[journal.SumName]map[int64]int64

func (s sums) add(f *journal.Sum) {
	if s[f.Name] == nil {
		s[f.Name] = make(map[int64]int64)
	}
	s[f.Name][f.Bucket] += f.N
}

func (s sums) total(name journal.SumName) (n int64) {
	for _, v := range s[name] {
		n += v
	}
	return n
}

// All returns R19's figures of each policy at now, from the sums since FirstSlot. Policies come in alphabetical order,
// including those named in policies that have no sums.
func All(figures []journal.Sum, policies []string, now time.Time) []KPI {
	names := slices.Clone(policies)
	for i := range figures {
		names = append(names, figures[i].Policy)
	}
	slices.Sort(names)
	var all []KPI
	for _, policy := range slices.Compact(names) {
		for i := range measures {
			m := &measures[i]
			all = append(all, m.kpi(policy, windowOf(figures, policy, m.window, now)))
		}
	}
	return all
}

// slotsPerHour is how many slots share the sum of a distribution.
const slotsPerHour = int64(time.Hour / journal.Slot)

// FirstSlot returns the first slot whose sums All needs at now.
func FirstSlot(now time.Time) int64 { return journal.SlotOf(now.Add(-Weekly)) - slotsPerHour }

// within reports whether a sum belongs to the window that ends at now. A distribution's hour may lie in it partly. A
// sum that a fast clock stamped later than now is not in it.
func within(f *journal.Sum, window time.Duration, now time.Time) bool {
	begins := journal.SlotOf(now.Add(-window))
	if f.Name == journal.SumTook {
		begins -= slotsPerHour
	}
	return f.Slot > begins && f.Slot <= journal.SlotOf(now.Add(journal.ClockTolerance))
}

// windowOf adds up the sums of a policy over the window that ends at now.
func windowOf(figures []journal.Sum, policy string, window time.Duration, now time.Time) sums {
	s := make(sums)
	for i := range figures {
		f := &figures[i]
		if f.Policy == policy && within(f, window, now) {
			s.add(f)
		}
	}
	return s
}

func (m *measure) kpi(policy string, s sums) KPI {
	value, samples := m.of(s)
	k := KPI{Policy: policy, Name: m.name, Unit: m.unit, Window: m.window.Hours(), Samples: samples,
		Goals: slices.Clone(m.goals)}
	if samples == 0 {
		return k
	}
	k.Value = &value
	for i := range k.Goals {
		holds := k.Goals[i].compare(value)
		k.Goals[i].Holds = &holds
	}
	return k
}

func (g *Goal) compare(value float64) bool {
	switch g.Compare {
	case ">=":
		return value >= g.Limit
	case "<=":
		return value <= g.Limit
	case "<":
		return value < g.Limit
	default:
		return value > g.Limit
	}
}

// UnknownPolicyError says that the catalogue has no policy of that name, and the journal no record of one.
type UnknownPolicyError struct {
	Policy string
	Known  []string
}

func (e *UnknownPolicyError) Error() string {
	return fmt.Sprintf("the policy is %q, expected one of %s", e.Policy, strings.Join(e.Known, ", "))
}

// KPIs returns R19's figures (RN-BIL-005 §6, RN-BIL-004 §6) at now, of one policy or, if policy is empty, of all known
// ones and those with recent records. A policy that left the catalogue keeps its figures, without values once their
// window is over. Its errors are a *UnknownPolicyError and those of s.
func KPIs(ctx context.Context, s journal.Statistics, known []string, policy string, now time.Time) ([]KPI, error) {
	figures, err := s.Sums(ctx, FirstSlot(now))
	if err != nil {
		return nil, fmt.Errorf("read the figures: %w", err)
	}
	if policy == "" {
		return All(figures, known, now), nil
	}
	figures = slices.DeleteFunc(figures, func(f journal.Sum) bool { return f.Policy != policy })
	if len(figures) == 0 && !slices.Contains(known, policy) {
		causes, err := s.Causes(ctx, journal.CauseFilter{Policy: policy}, nil, 1) // these outlive purges (R24)
		if err != nil {
			return nil, fmt.Errorf("read the causes: %w", err)
		}
		if len(causes) == 0 {
			return nil, &UnknownPolicyError{policy, known}
		}
	}
	return All(figures, []string{policy}, now), nil
}

// Package statistics says what recorded outcomes come to: the figures of R19, what came of the retries of a cause and how
// likely a claim of it recovers (R26), and which causes are new (R34).
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

// KPI is one figure of R19 of one policy over a window that ends now.
type KPI struct {
	Policy string `json:"policy"`
	// Name of the figure; Unit of its value: ratio, minutes, retries, claims or seconds.
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Window in hours.
	Window float64 `json:"windowHours"`
	// Value is nil where nothing happened that it could be made of.
	Value *float64 `json:"value"`
	// Samples it is made of.
	Samples int64 `json:"samples"`
	// Targets and alerts of the rules.
	Goals []Goal `json:"goals"`
}

// Goal is a target or an alert of one of the rules.
type Goal struct {
	Rule decision.BusinessRule `json:"rule"`
	// Kind is target or alert.
	Kind string `json:"kind"`
	// Compare says how the value is held against Limit: a target is met where it holds, an alert raised.
	Compare string  `json:"compare"`
	Limit   float64 `json:"limit"`
	// Holds is nil where there is no value.
	Holds *bool `json:"holds"`
}

// Kinds of goals.
const (
	Target = "target"
	Alert  = "alert"
)

// measure is how one KPI comes from the sums of a window.
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

// measures are the table of R19 (RN-BIL-005 §6, RN-BIL-004 §6).
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

// share measures a figure's sum, divided by unit, over what the figures each add up to, which are its samples.
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

// quantile measures the bucket, divided by unit, that the q-th part of a distribution lies in or below; its samples are
// the distribution's size.
func quantile(q float64, of journal.SumName, unit float64) func(sums) (float64, int64) {
	return func(s sums) (value float64, samples int64) {
		samples = s.total(of)
		return s.ranked(of, int64(math.Ceil(q*float64(samples)))) / unit, samples
	}
}

// median measures the middle of a distribution, divided by unit: the mean of the two where there are two.
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

// sums of one policy over one window, by figure and bucket.
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

// All returns R19's figures of each policy at instant now, made of the figures of the last Weekly. Policies come
// in alphabetical order; policies names those to show that have no figures.
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

// slotsPerHour that a distribution is kept by.
const slotsPerHour = int64(time.Hour / journal.Slot)

// FirstSlot returns the first slot whose figures All needs at instant now.
func FirstSlot(now time.Time) int64 { return journal.SlotOf(now.Add(-Weekly)) - slotsPerHour }

// since reports whether a figure belongs to a window that begins at t: a part of a distribution's hour suffices.
func since(f *journal.Sum, t time.Time) bool {
	begins := journal.SlotOf(t)
	if f.Name == journal.SumTook {
		begins -= slotsPerHour
	}
	return f.Slot > begins
}

// windowOf adds the figures of a policy up over the window that ends at now.
func windowOf(figures []journal.Sum, policy string, window time.Duration, now time.Time) sums {
	s := make(sums)
	for i := range figures {
		f := &figures[i]
		if f.Policy == policy && since(f, now.Add(-window)) {
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
		causes, err := s.Causes(ctx, journal.CauseFilter{Policy: policy}, nil, 1) // of whatever was ever decided (R24)
		if err != nil {
			return nil, fmt.Errorf("read the causes: %w", err)
		}
		if len(causes) == 0 {
			return nil, &UnknownPolicyError{policy, known}
		}
	}
	return All(figures, []string{policy}, now), nil
}

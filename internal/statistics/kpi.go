// Package statistics evaluates what was recorded: the figures of R19, how the retries of a cause ended and how likely
// its claims recover (R26), and which causes are new (R34).
package statistics

import (
	"context"
	_ "embed"
	"encoding/json"
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
	Name    string   `json:"name"`
	Unit    string   `json:"unit"`
	Window  float64  `json:"windowHours"`
	Value   *float64 `json:"value"`   // nil if there are no samples
	Samples int64    `json:"samples"` // events or episodes that Value is made of
	Goals   []Goal   `json:"goals"`
}

// Goal is a target or an alert of one of the rules.
type Goal struct {
	Rule decision.BusinessRule `json:"rule"`
	Kind string                `json:"kind"` // target or alert
	// Compare is the operator between Value and Limit. If it holds, a target is met, or an alert raised.
	Compare string  `json:"compare"`
	Limit   float64 `json:"limit"`
	Holds   *bool   `json:"holds"` // nil if there is no value
}

// SuccessRate is the KPI that retry_success_rate shows.
const SuccessRate = "success_rate"

// measure says how to make one KPI from the sums of a window.
type measure struct {
	KPI
	Per []journal.SumName // which count the samples
	// Of is what is measured of them, in units of 1/Divisor: a sum, or a distribution, of which Quantile is taken. It is
	// empty if their number is the KPI.
	Of       journal.SumName
	Quantile float64
	Divisor  float64
}

//go:embed kpis.json
var table []byte

// measures is the table of R19 (RN-BIL-005 §6, RN-BIL-004 §6). Claims that were accepted already (R33) are in no other
// figure.
var measures = func() (all []measure) {
	if err := json.Unmarshal(table, &all); err != nil {
		panic(err) // cannot be: the tests read the table
	}
	return all
}()

// value returns the KPI by the sums of its window, and the number of its samples. The median of an even number is the
// mean of the middle two.
func (m *measure) value(s sums) (value float64, samples int64) {
	for _, name := range m.Per {
		samples += s.total(name)
	}
	rank := int64(math.Ceil(m.Quantile * float64(samples)))
	switch {
	case m.Of == "" || samples == 0:
		return float64(samples), samples
	case m.Quantile == 0:
		return float64(s.total(m.Of)) / float64(samples) / m.Divisor, samples
	case 2*rank == samples:
		return (s.ranked(m.Of, rank) + s.ranked(m.Of, rank+1)) / 2 / m.Divisor, samples
	}
	return s.ranked(m.Of, rank) / m.Divisor, samples
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
			window := time.Duration(m.Window) * time.Hour
			s := make(sums)
			for j := range figures {
				if f := &figures[j]; f.Policy == policy && within(f, window, now) {
					s.add(f)
				}
			}
			all = append(all, m.kpi(policy, s))
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

func (m *measure) kpi(policy string, s sums) KPI {
	k := m.KPI
	value, samples := m.value(s)
	k.Policy, k.Samples, k.Goals = policy, samples, slices.Clone(m.Goals)
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
func KPIs(ctx context.Context, s journal.Reader, known []string, policy string, now time.Time) ([]KPI, error) {
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

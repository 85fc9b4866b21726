package catalogue

import (
	"encoding/json"
	"math"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/text"
)

// Plan is a policy's ladder: every retry of a failure that recurs at once after each of them. It is safe for concurrent
// use once it is made.
type Plan struct {
	Policy      string `json:"policy"`
	Description string `json:"description"`
	// Destination and FirstFailure are those that the plan was made for; empty if none were given.
	Destination  string     `json:"destination,omitempty"`
	FirstFailure *time.Time `json:"firstFailure,omitempty"`
	// MaxRetries is the number of retries after the first try (R12).
	MaxRetries int64 `json:"maxRetries"`
	// TotalLimit is the time from the first failure (R20); 0 means no limit.
	TotalLimit Duration `json:"totalLimit"`
	// Retries in their order; never nil.
	Retries []PlannedRetry `json:"retries"`
	// NeverScheduled counts the retries that could only come after TotalLimit (R20).
	NeverScheduled int64 `json:"neverScheduled"`
}

// Duration is a length of time, in JSON in seconds.
type Duration time.Duration

// String returns d as a catalogue has it.
func (d Duration) String() string { return text.Duration(time.Duration(d)) }

// MarshalJSON returns d in seconds.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).Seconds()) }

// PlannedRetry is one step of the ladder.
type PlannedRetry struct {
	// Number counts from 1.
	Number int64 `json:"retry"`
	// Wait is the time before the retry.
	Wait Range `json:"wait"`
	// FromFirst is the time since the first failure.
	FromFirst Range `json:"fromFirstFailure"`
	// MayPassLimit reports whether long jitter would carry the retry past the total limit. It is then not scheduled.
	MayPassLimit bool `json:"mayPassLimit"`
	// At is the nominal time of the retry. Why says why it waits for the destination to open; empty if it does not.
	At  *time.Time `json:"at,omitempty"`
	Why string     `json:"closed,omitempty"`
}

// Range is what the jitter may draw: the earliest, the nominal and the latest.
type Range struct {
	Earliest Duration `json:"earliest"`
	Nominal  Duration `json:"nominal"`
	Latest   Duration `json:"latest"`
}

// PlanAt returns the plan of policy for a first failure at an instant (zero: any time) of a job that brings own (zero:
// nothing) and goes to the destination of that name (empty: the policy's default). A retry that falls into its closed
// hours is made when it opens (R29). Closed hours do not count toward the total limit (R27).
func PlanAt(policy *decision.Policy, own decision.OwnPolicy, name string, first time.Time) *Plan {
	maxRetries, backoff := policy.Limits(own)
	p := &Plan{
		Policy: policy.Name, Description: policy.Description, MaxRetries: maxRetries,
		TotalLimit: Duration(policy.TotalLimit), Retries: []PlannedRetry{},
	}
	switch {
	case policy.Destination == nil:
		name = ""
	case name == "":
		name = policy.Destination.Default
	}
	var to destination.Settings
	if !first.IsZero() {
		if to = policy.Destinations.Of(name); to.Calendar != nil {
			first = first.In(to.Calendar.Zone())
		}
		p.Destination, p.FirstFailure = name, &first
		if p.TotalLimit > 0 {
			p.TotalLimit = Duration(policy.TimeLimit(name, first).Sub(first))
		}
	}
	p.climb(&backoff, &to, first)
	p.NeverScheduled = maxRetries - int64(len(p.Retries))
	return p
}

// climb adds the retries that the total limit allows (R20).
func (p *Plan) climb(backoff *decision.BackoffRule, to *destination.Settings, first time.Time) {
	var sum Range
	var limit time.Time
	if p.TotalLimit > 0 {
		limit = first.Add(time.Duration(p.TotalLimit))
	}
	for n := range p.MaxRetries {
		wait := func(draw float64) Duration { return Duration(backoff.After(draw, n).Delay) }
		r := PlannedRetry{Number: n + 1, Wait: Range{wait(0), wait(0.5), wait(math.Nextafter(1, 0))}}
		after := func(sum, wait Duration) time.Time { return first.Add(time.Duration(sum)).Add(time.Duration(wait)) }
		wanted := after(sum.Nominal, r.Wait.Nominal)
		at := to.Open(wanted, limit, 0.5)
		sum = Range{
			Duration(to.Open(after(sum.Earliest, r.Wait.Earliest), limit, 0).Sub(first)), Duration(at.Sub(first)),
			Duration(to.Open(after(sum.Latest, r.Wait.Latest), limit, 1).Sub(first)),
		}
		if p.TotalLimit > 0 && sum.Earliest > p.TotalLimit {
			return
		}
		r.FromFirst, r.MayPassLimit = sum, p.TotalLimit > 0 && sum.Latest > p.TotalLimit
		if p.FirstFailure != nil {
			r.At, r.Why = &at, to.Calendar.Why(wanted)
		}
		p.Retries = append(p.Retries, r)
	}
}

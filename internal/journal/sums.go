package journal

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"retry-worker/internal/decision"
)

// SumName names a sum that the journal keeps up to date, so that KPIs and gauges need no scan (R19). The set
// is closed.
type SumName string

// Sums of what happened in a slot.
const (
	SumDecisions          SumName = "decisions"         // fresh ones
	SumPermanent          SumName = "permanent"         // of them, the permanent errors
	SumScheduled          SumName = "scheduled"         // of them, the retries
	SumAtMaximum          SumName = "at_maximum"        // retries whose raw backoff reached the policy's max
	SumHeld               SumName = "held"              // claims that began to wait at a gate
	SumBackoff            SumName = "backoff_ms"        // sum over the retries
	SumTook               SumName = "took"              // decisions, by the bucket of their time, in µs
	SumClosed             SumName = "closed"            // episodes at their first end: recovered, dead, superseded, abandoned
	SumExhausted          SumName = "exhausted"         // of them, dead by the limit
	SumExhaustedRetried   SumName = "exhausted_retried" // of them, with retries
	SumRecoveredRetried   SumName = "recovered_retried" // recovered with retries
	SumRecoveryTime       SumName = "recovery_ms"       // sum over those, first failure to recovery
	SumRecoveryRetries    SumName = "recovery_retries"  // sum over those
	SumAccepted           SumName = "accepted"          // episodes that ended because the other side had it already (R33)
	SumRecoveryTimeBucket SumName = "recovery_time"     // those, by their time in s

	// What is learnt from, by the week, of a cause and destination (R26): episodes with retries that recovered, the sum of
	// their times from the first failure to the recovery, and those that were lost.
	SumCaseRecovered SumName = "case_recovered"
	SumCaseTime      SumName = "case_ms"
	SumCaseLost      SumName = "case_lost"

	// Of a cause, in slot 0: a Fingerprint's counts.
	SumCauseFailures  SumName = "cause_failures"
	SumCauseExhausted SumName = "cause_exhausted"
	SumCausePermanent SumName = "cause_permanent"
	SumCauseRecovered SumName = "cause_recovered"
)

// Slot is the length of time whose sums are kept together; a window begins at a slot's begin.
const Slot = 10 * time.Minute

// SlotOf returns the number of the slot that t lies in.
func SlotOf(t time.Time) int64 { return t.Unix() / int64(Slot/time.Second) }

// slotsPerHour are kept together where a sum has many buckets.
const slotsPerHour = int64(time.Hour / Slot)

// Sum is one sum, or what is to be added to it: N, by all the other fields.
type Sum struct {
	Slot int64   `json:"slot,omitempty"`
	Name SumName `json:"name"`
	// Policy, Cause (Fingerprint.ID) and Destination are empty of sums that are not kept by them.
	Policy      string `json:"policy,omitempty"`
	Cause       string `json:"cause,omitempty"`
	Destination string `json:"destination,omitempty"`
	// Bucket tells the parts of a distribution apart; 0 where there is none.
	Bucket int64 `json:"bucket,omitempty"`
	N      int64 `json:"n"`
}

// sums are added up by all but N, which is 0 in the keys.
type sums map[Sum]int64

// add adds to the sum of that kind.
func (all sums) add(s Sum) {
	n := s.N
	s.N = 0
	all[s] += n
}

// list returns the sums that are not 0, in a fixed order.
func (all sums) list() []Sum {
	list := make([]Sum, 0, len(all))
	for s, n := range all {
		if s.N = n; n != 0 {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b Sum) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Policy, b.Policy),
			cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.Bucket, b.Bucket))
	})
	return list
}

// count adds n to a sum of the slot of the record that is being folded.
func (p *projection) count(policy string, name SumName, n int64) {
	p.sums.add(Sum{Slot: SlotOf(p.at), Name: name, Policy: policy, N: n})
}

// countCause adds one to a sum of the attempt's cause.
func (p *projection) countCause(policy string, name SumName, a *Attempt) {
	p.cause(policy, a)
	p.sums.add(Sum{Name: name, Cause: a.Fingerprint, N: 1})
}

// tookBuckets are upper bounds in µs; what took longer than the last is in its bucket.
var tookBuckets = []int64{100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
	2_500_000, 10_000_000}

func tookBucket(d time.Duration) int64 {
	i, _ := slices.BinarySearch(tookBuckets, d.Microseconds())
	return tookBuckets[min(i, len(tookBuckets)-1)]
}

// countDecision adds a fresh decision on an analysis.
func (p *projection) countDecision(policy string, a *Attempt) {
	d, slot := &a.Decision, SlotOf(p.at)
	p.count(policy, SumDecisions, 1)
	p.sums.add(Sum{Slot: slot - slot%slotsPerHour, Name: SumTook, Policy: policy, Bucket: tookBucket(a.Took), N: 1})
	p.countCause(policy, SumCauseFailures, a)
	if d.ErrorClassification == decision.Permanent {
		p.count(policy, SumPermanent, 1)
	}
	switch {
	case d.ShouldRetry():
		p.count(policy, SumScheduled, 1)
		p.count(policy, SumBackoff, d.Backoff.Delay.Milliseconds())
		if d.Backoff.AtMaximum {
			p.count(policy, SumAtMaximum, 1)
		}
	case d.Outcome == decision.PermanentError:
		p.countCause(policy, SumCausePermanent, a)
	default:
		p.countCause(policy, SumCauseExhausted, a)
	}
}

// countEnd adds an episode that ended, or died, at the moment it did (R19): it is closed once, whatever people make of it
// afterwards.
func (p *projection) countEnd(policy string, e *Episode, byLimit bool) {
	retried, first := e.Scheduled > 0, !e.Counted
	if e.Counted = true; first {
		p.count(policy, SumClosed, 1)
	}
	switch {
	case e.State == Dead && byLimit:
		if first {
			p.count(policy, SumExhausted, 1)
		}
		if retried {
			p.count(policy, SumExhaustedRetried, 1)
		}
	case e.State == Accepted:
		p.count(policy, SumAccepted, 1)
	case e.State == Recovered && retried:
		took := max(e.ClosedAt.Sub(e.FirstFailure), 0)
		p.count(policy, SumRecoveredRetried, 1)
		p.count(policy, SumRecoveryTime, took.Milliseconds())
		p.count(policy, SumRecoveryRetries, e.Retries)
		seconds := int64((took + time.Second - 1) / time.Second) // a goal of whole minutes is judged as if by took itself
		p.sums.add(Sum{Slot: SlotOf(p.at), Name: SumRecoveryTimeBucket, Policy: policy, Bucket: seconds, N: 1})
	}
}

// cause takes over what a tells of its cause. Where a's Fingerprint is not what this version makes of it, an
// older one made it, and it stays.
func (p *projection) cause(policy string, a *Attempt) {
	f := p.causes[a.Fingerprint]
	if f == nil {
		f = CauseOf(policy, a.MatchedRule, a.Error)
		f.ID, f.Classification, f.FirstSeen, f.LastSeen, f.Began = a.Fingerprint, a.ErrorClassification, p.at, p.at, p.at
		p.causes[f.ID] = f
	}
	if f.Pattern == "" { // an erasure took it
		f.Pattern = pattern(a.Error)
	}
	f.Add(&Fingerprint{FirstSeen: p.at, LastSeen: p.at, Classification: a.Decision.ErrorClassification})
}

// grow gives the changes what was added up.
func (p *projection) grow(c *Changes) {
	c.Sums = p.sums.list()
	for _, id := range slices.Sorted(maps.Keys(p.causes)) {
		c.Fingerprints = append(c.Fingerprints, *p.causes[id])
	}
	c.Items = p.items
}

package journal

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"retry-worker/internal/decision"
)

// SumName names a sum that the journal keeps, so that KPIs and gauges scan no records (R19). The set is closed.
type SumName string

// Sums over a slot.
const (
	SumDecisions          SumName = "decisions"         // fresh decisions
	SumPermanent          SumName = "permanent"         // of them, the permanent errors
	SumScheduled          SumName = "scheduled"         // of them, the retries
	SumAtMaximum          SumName = "at_maximum"        // retries whose raw backoff reached the policy's max
	SumBackoff            SumName = "backoff_ms"        // sum over the retries
	SumTook               SumName = "took"              // decisions, by the bucket of their time, in µs
	SumClosed             SumName = "closed"            // episodes at their first end, whichever it is
	SumExhausted          SumName = "exhausted"         // of them, dead by the limit
	SumExhaustedRetried   SumName = "exhausted_retried" // of them, with retries
	SumRecoveredRetried   SumName = "recovered_retried" // recovered with retries
	SumRecoveryTime       SumName = "recovery_ms"       // sum over those, first failure to recovery
	SumRecoveryRetries    SumName = "recovery_retries"  // sum over those
	SumAccepted           SumName = "accepted"          // episodes ended by an acceptance (R33)
	SumRecoveryTimeBucket SumName = "recovery_time"     // those, by their time in s

	// Sums over a week, by cause and destination, to learn from (R26): retried episodes that recovered, their times
	// from first failure to recovery, and those that were lost.
	SumCaseRecovered SumName = "case_recovered"
	SumCaseTime      SumName = "case_ms"
	SumCaseLost      SumName = "case_lost"

	// A Fingerprint's counts, in slot 0.
	SumCauseFailures  SumName = "cause_failures"
	SumCauseExhausted SumName = "cause_exhausted"
	SumCausePermanent SumName = "cause_permanent"
	SumCauseRecovered SumName = "cause_recovered"
)

// Slot is the length of time over which sums are kept. Windows begin with a slot.
const Slot = 10 * time.Minute

// SlotOf returns the number of the slot that t lies in.
func SlotOf(t time.Time) int64 { return t.Unix() / int64(Slot/time.Second) }

// slotsPerHour are kept as one where a sum has many buckets.
const slotsPerHour = int64(time.Hour / Slot)

// Sum is a sum, or an addend to it. N is the value, the other fields are the key.
type Sum struct {
	Slot int64   `json:"slot,omitempty"`
	Name SumName `json:"name"`
	// Policy, Cause (Fingerprint.ID) and Destination are empty in sums that are not kept by them.
	Policy      string `json:"policy,omitempty"`
	Cause       string `json:"cause,omitempty"`
	Destination string `json:"destination,omitempty"`
	// Bucket tells the parts of a distribution apart; 0 where there is none.
	Bucket int64 `json:"bucket,omitempty"`
	N      int64 `json:"n"`
}

// sums maps a Sum with N = 0 to its value.
type sums map[Sum]int64

// add adds s.N to the sum with s's key.
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
func (p *projection) count(name SumName, n int64) {
	p.sums.add(Sum{Slot: SlotOf(p.at), Name: name, Policy: p.policy, N: n})
}

// countCause adds one to a sum of the attempt's cause.
func (p *projection) countCause(name SumName, a *Attempt) {
	p.cause(a)
	p.sums.add(Sum{Name: name, Cause: a.Fingerprint, N: 1})
}

// tookBuckets are upper bounds in µs; longer times are in the last bucket.
var tookBuckets = []int64{100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
	2_500_000, 10_000_000}

func tookBucket(d time.Duration) int64 {
	i, _ := slices.BinarySearch(tookBuckets, d.Microseconds())
	return tookBuckets[min(i, len(tookBuckets)-1)]
}

// countDecision counts a fresh decision.
func (p *projection) countDecision(a *Attempt) {
	d, slot := &a.Decision, SlotOf(p.at)
	p.count(SumDecisions, 1)
	p.sums.add(Sum{Slot: slot - slot%slotsPerHour, Name: SumTook, Policy: p.policy, Bucket: tookBucket(a.Took), N: 1})
	p.countCause(SumCauseFailures, a)
	if d.ErrorClassification == decision.Permanent {
		p.count(SumPermanent, 1)
	}
	switch {
	case d.ShouldRetry():
		p.count(SumScheduled, 1)
		p.count(SumBackoff, d.Backoff.Delay.Milliseconds())
		if d.Backoff.AtMaximum {
			p.count(SumAtMaximum, 1)
		}
	case d.Outcome == decision.PermanentError:
		p.countCause(SumCausePermanent, a)
	default:
		p.countCause(SumCauseExhausted, a)
	}
}

// mostRetries and longestRecovery bound what one episode adds to a sum. A process may say any count and time, and a sum
// that overflows cannot be recorded.
const (
	mostRetries     = 1000 // the most that a policy allows
	longestRecovery = 10 * 366 * 24 * time.Hour
)

// tookUntil returns the time since the first failure.
func (e *Episode) tookUntil(end time.Time) time.Duration {
	return min(max(end.Sub(e.FirstFailure), 0), longestRecovery)
}

// countEnd counts an episode that ended or died (R19). It counts as closed once, whatever people decide afterwards.
func (p *projection) countEnd(e *Episode, byLimit bool) {
	retried, first := e.Scheduled > 0, !e.Counted
	if e.Counted = true; first {
		p.count(SumClosed, 1)
	}
	switch {
	case e.State == Dead && byLimit:
		if first {
			p.count(SumExhausted, 1)
		}
		if retried {
			p.count(SumExhaustedRetried, 1)
		}
	case e.State == Accepted:
		p.count(SumAccepted, 1)
	case e.State == Recovered && retried:
		took := e.tookUntil(e.ClosedAt)
		p.count(SumRecoveredRetried, 1)
		p.count(SumRecoveryTime, took.Milliseconds())
		p.count(SumRecoveryRetries, min(e.Retries, mostRetries))
		seconds := int64((took + time.Second - 1) / time.Second) // rounded up: goals are whole minutes
		p.sums.add(Sum{Slot: SlotOf(p.at), Name: SumRecoveryTimeBucket, Policy: p.policy, Bucket: seconds, N: 1})
	}
}

// cause merges what a says about its cause. A Fingerprint that this version would not make is an older version's and
// stays.
func (p *projection) cause(a *Attempt) {
	f := p.causes[a.Fingerprint]
	if f == nil {
		f = CauseOf(p.policy, a.MatchedRule, a.Error)
		f.ID, f.Classification, f.FirstSeen, f.LastSeen, f.Began = a.Fingerprint, a.ErrorClassification, a.At, a.At, a.At
		p.causes[f.ID] = f
	}
	if f.Pattern == "" { // removed by an erasure
		f.Pattern = pattern(a.Error)
	}
	f.Add(&Fingerprint{FirstSeen: a.At, LastSeen: a.At, Began: a.At, Classification: a.Decision.ErrorClassification})
}

// grow moves what was collected into the changes.
func (p *projection) grow(c *Changes) {
	c.Sums = p.sums.list()
	for _, id := range slices.Sorted(maps.Keys(p.causes)) {
		c.Fingerprints = append(c.Fingerprints, *p.causes[id])
	}
	c.Items = p.items
}

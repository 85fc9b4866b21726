package journal

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"retry-worker/internal/decision"
)

// FigureName names a sum that the journal keeps up to date, so that KPIs and gauges need no scan (R19). The set
// is closed.
type FigureName string

// The figures: sums of what happened in a slot.
const (
	FigureDecisions          FigureName = "decisions"         // fresh ones
	FigurePermanent          FigureName = "permanent"         // of them, the permanent errors
	FigureScheduled          FigureName = "scheduled"         // of them, the retries
	FigureAtMaximum          FigureName = "at_maximum"        // retries whose raw backoff reached the policy's max
	FigureHeld               FigureName = "held"              // claims that began to wait at a gate
	FigureBackoff            FigureName = "backoff_ms"        // sum over the retries
	FigureTook               FigureName = "took"              // decisions, by the bucket of their time, in µs
	FigureClosed             FigureName = "closed"            // episodes at their first end: recovered, dead, superseded, abandoned
	FigureExhausted          FigureName = "exhausted"         // of them, dead by the limit
	FigureExhaustedRetried   FigureName = "exhausted_retried" // of them, with retries
	FigureRecoveredRetried   FigureName = "recovered_retried" // recovered with retries
	FigureRecoveryTime       FigureName = "recovery_ms"       // sum over those, first failure to recovery
	FigureRecoveryRetries    FigureName = "recovery_retries"  // sum over those
	FigureRecoveryTimeBucket FigureName = "recovery_time"     // those, by their time in s

	// What is learnt from, by the week, of a cause and destination (R26): episodes with retries that recovered, the sum of
	// their times from the first failure to the recovery, and those that were lost.
	FigureCaseRecovered FigureName = "case_recovered"
	FigureCaseTime      FigureName = "case_ms"
	FigureCaseLost      FigureName = "case_lost"
)

// Slot is the length of time whose sums are kept together; a window begins at a slot's begin.
const Slot = 10 * time.Minute

// SlotOf is the number of the slot that t lies in.
func SlotOf(t time.Time) int64 { return t.Unix() / int64(Slot/time.Second) }

// SlotTime returns when a slot begins.
func SlotTime(slot int64) time.Time { return time.Unix(slot*int64(Slot/time.Second), 0) }

// Figure is one sum, or what is to be added to it.
type Figure struct {
	Policy string `json:"policy"`
	Slot   int64  `json:"slot,omitempty"`
	// Cause and Destination are those of a figure that is learnt from; empty of the others.
	Cause       string     `json:"cause,omitempty"`
	Destination string     `json:"destination,omitempty"`
	Name        FigureName `json:"name"`
	// Bucket tells the parts of a distribution apart; 0 where there is none.
	Bucket int64 `json:"bucket,omitempty"`
	Value  int64 `json:"value"`
}

// tally adds figures up. Its keys are figures with nothing in Value.
type tally map[Figure]int64

// slotsPerHour are kept together where a figure has many buckets.
const slotsPerHour = int64(time.Hour / Slot)

// add adds to a figure that has no buckets.
func (t tally) add(policy string, now time.Time, name FigureName, value int64) {
	t[Figure{Policy: policy, Slot: SlotOf(now), Name: name}] += value
}

// addTo adds one to a bucket of a distribution, which is kept by the hour.
func (t tally) addTo(policy string, now time.Time, name FigureName, bucket int64) {
	slot := SlotOf(now)
	t[Figure{Policy: policy, Slot: slot - slot%slotsPerHour, Name: name, Bucket: bucket}]++
}

// figures are the sums that are not 0, in a fixed order.
func (t tally) figures() []Figure {
	all := make([]Figure, 0, len(t))
	for f, v := range t {
		if f.Value = v; v != 0 {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, compareFigures)
	return all
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
	d := &a.Decision
	add := func(name FigureName, value int64) { p.tally.add(policy, p.at, name, value) }
	add(FigureDecisions, 1)
	p.tally.addTo(policy, p.at, FigureTook, tookBucket(a.Took))
	if d.ErrorClassification == decision.Permanent {
		add(FigurePermanent, 1)
	}
	if !d.ShouldRetry() {
		return
	}
	add(FigureScheduled, 1)
	add(FigureBackoff, d.Backoff.Delay.Milliseconds())
	if d.Backoff.AtMaximum {
		add(FigureAtMaximum, 1)
	}
}

// countEnd adds an episode that ended, or died, at the moment it did (R19): it is closed once, whatever people make of it
// afterwards.
func (p *projection) countEnd(policy string, e *Episode, byLimit bool) {
	add := func(name FigureName, value int64) { p.tally.add(policy, p.at, name, value) }
	retried, first := e.Scheduled > 0, !e.Counted
	if e.Counted = true; first {
		add(FigureClosed, 1)
	}
	switch {
	case e.State == Dead && byLimit:
		if first {
			add(FigureExhausted, 1)
		}
		if retried {
			add(FigureExhaustedRetried, 1)
		}
	case e.State == Recovered && retried:
		took := max(e.ClosedAt.Sub(e.FirstFailure), 0)
		add(FigureRecoveredRetried, 1)
		add(FigureRecoveryTime, took.Milliseconds())
		seconds := int64((took + time.Second - 1) / time.Second) // a goal of whole minutes is judged as if by took itself
		p.tally[Figure{Policy: policy, Slot: SlotOf(p.at), Name: FigureRecoveryTimeBucket, Bucket: seconds}]++
		add(FigureRecoveryRetries, e.Retries)
	}
}

// countFailure adds one failure to its cause.
func (p *projection) countFailure(policy string, a *Attempt) {
	f := p.cause(policy, a)
	f.Failures++
	switch a.Decision.Outcome {
	case decision.Retry:
		f.Retried++
	case decision.PermanentError:
		f.Permanent++
	default:
		f.Exhausted++
	}
}

// cause is the projection's own count of a's cause. Where a's Fingerprint is not what this version makes of it, an
// older one made it, and it stays.
func (p *projection) cause(policy string, a *Attempt) *Fingerprint {
	f := p.causes[a.Fingerprint]
	if f == nil {
		f = new(FingerprintOf(policy, a))
		f.ID, f.FirstSeen, f.LastSeen = a.Fingerprint, p.at, p.at
		p.causes[f.ID] = f
	}
	if f.Pattern == "" { // an erasure took it
		f.Pattern = pattern(a.Error)
	}
	f.Add(&Fingerprint{FirstSeen: p.at, LastSeen: p.at, Classification: a.Decision.ErrorClassification})
	return f
}

// sums gives the changes what the sums grow by.
func (p *projection) sums(c *Changes) {
	c.Figures = p.tally.figures()
	for _, id := range slices.Sorted(maps.Keys(p.causes)) {
		c.Fingerprints = append(c.Fingerprints, *p.causes[id])
	}
	for _, n := range p.counts {
		if n.N != 0 || n.Cents != 0 {
			c.Counts = append(c.Counts, n)
		}
	}
	slices.SortFunc(c.Counts, compareCounts)
	c.Items = p.items
}

func compareCounts(a, b CauseCount) int {
	return cmp.Or(cmp.Compare(a.Fingerprint, b.Fingerprint), cmp.Compare(a.Policy, b.Policy),
		cmp.Compare(a.State, b.State),
		cmp.Compare(a.Team, b.Team), cmp.Compare(a.Reason, b.Reason))
}

func compareFigures(a, b Figure) int {
	return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Cause, b.Cause),
		cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Bucket, b.Bucket))
}

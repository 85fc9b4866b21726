package journal

import (
	"slices"
	"strconv"
	"time"

	"retry-worker/internal/decision"
)

// MaxLearntRetries of an episode that are told apart; with more it counts as one with as many.
const MaxLearntRetries = 8

// retryBounds are the upper bounds, in minutes, of the RetryBuckets but for the last.
var retryBounds = []float64{10, 30, 60, 120, 240, 480, 1440}

// RetryBuckets is how many there are.
const RetryBuckets = 8

// RetryBucket tells retries apart by the time since the first failure: from 0, within ten minutes, to RetryBuckets-1,
// above a day.
func RetryBucket(since time.Duration) int {
	i, _ := slices.BinarySearch(retryBounds, since.Minutes())
	return i
}

// tries notes a retry that is scheduled.
func (e *Episode) tries(d *decision.Decision) {
	if len(e.Tried) < MaxLearntRetries {
		e.Tried += strconv.Itoa(RetryBucket(d.NextRetryTime.Sub(d.FirstFailure)))
	}
}

// WeekSlots is how many slots a week has.
const WeekSlots = 7 * 24 * slotsPerHour

// WeekOf returns the slot by which what happened at t is kept where it is learnt from.
func WeekOf(t time.Time) int64 {
	slot := SlotOf(t)
	return slot - slot%WeekSlots
}

// countCase counts an episode that recovered by a retry, or died of the failure a though it was retried. What was given
// up for other reasons than its error, or for what was learnt, tells nothing of retries.
func (p *projection) countCase(policy string, e *Episode, a *Attempt, recovered bool) {
	tried, d := e.Tried, &a.Decision
	if e.Tried = ""; tried == "" || e.State == Dead ||
		!recovered && (d.Reason == decision.ReasonNoRecovery || d.Reason == decision.ReasonDeadline) {
		return
	}
	of := Figure{Policy: policy, Slot: WeekOf(p.at), Cause: a.Fingerprint, Destination: a.Destination}
	add := func(name FigureName, bucket int64) {
		f := of
		f.Name, f.Bucket = name, bucket
		p.tally[f]++
	}
	for _, digit := range tried {
		add(FigureRetryMade, int64(digit-'0'))
	}
	if !recovered {
		add(FigureCaseLost, int64(len(tried)))
	} else {
		add(FigureCaseRecovered, int64(len(tried)))
		add(FigureRetrySucceeded, int64(tried[len(tried)-1]-'0'))
	}
	if d.Learnt.Explored {
		p.countLearning(policy, FigureExplored, 0, 1)
		if recovered {
			p.countLearning(policy, FigureExploredRecovered, 0, 1)
		}
	}
}

// countForetold holds what was foretold of the last retry against what came of it: a is the failure that came instead of
// its success, or, where it succeeded, the one before.
func (p *projection) countForetold(l *life, a *Attempt, succeeded bool) {
	last, e := l.last, &l.Episode
	if last == nil || last.Decision.SuccessProbability == 0 || e.State != Scheduled ||
		!succeeded && (a.Episode != e.Number || a.AnalysedCount != last.Decision.RetryCount) {
		return
	}
	chance, wrong := last.Decision.SuccessProbability, last.Decision.SuccessProbability
	tenth := int64(chance * 10)
	p.countLearning(l.subject.Policy, FigureForetold, tenth, 1)
	if succeeded {
		p.countLearning(l.subject.Policy, FigureForetoldSucceeded, tenth, 1)
		wrong = 1 - chance
	}
	p.countLearning(l.subject.Policy, FigureForetoldError, 0, int64(wrong*wrong*1e4+0.5))
}

// countHandedOver counts a claim that was given up early for what was learnt, and the retries that were left.
func (p *projection) countHandedOver(policy string, d *decision.Decision) {
	if d.Reason == decision.ReasonNoRecovery {
		p.countLearning(policy, FigureHandedOver, 0, 1)
		p.countLearning(policy, FigureSavedRetries, 0, d.MaxRetries-d.RetryCount)
	}
}

// countLearning adds to what came of learning, which is kept by the week.
func (p *projection) countLearning(policy string, name FigureName, bucket, value int64) {
	p.tally[Figure{Policy: policy, Slot: WeekOf(p.at), Name: name, Bucket: bucket}] += value
}

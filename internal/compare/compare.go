// Package compare replays recorded failures through two catalogues and estimates how many of each one's retries would
// have succeeded, by the retries that were made.
//
// It is pure: records in, figures out. What was learnt and what a destination's gate expects are left out of both
// replays, so that ladders and rules are compared; what a person taught holds in both.
package compare

import (
	"hash/fnv"
	"strconv"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/learning"
)

// Comparison takes records in their order and replays the failures among them. It is not safe for concurrent use.
type Comparison struct {
	policies [2]*decision.Policy
	// open is the latest failure of each subject that was retried and of which nothing has come yet, presumed how many
	// of its open episode's were presumed permanent (R25), and down which destinations are not up.
	open     map[journal.Subject]*failure
	presumed map[journal.Subject]int64
	down     map[string]bool
	failures []*failure
	omitted  int64
	// learnt are figures of two halves of the claims: each is foretold by what the other one says.
	learnt [2]*learning.Figures
}

// New compares policies a and b, which have the same name and take no retries from the job (Policy.Own).
func New(a, b *decision.Policy) *Comparison {
	c := &Comparison{policies: [2]*decision.Policy{a, b}, open: map[journal.Subject]*failure{},
		presumed: map[journal.Subject]int64{}, down: map[string]bool{}}
	for i := range c.learnt {
		const most = 100_000
		c.learnt[i] = learning.New(nil, most)
	}
	return c
}

// failure that was recorded, and what each policy makes of it.
type failure struct {
	claim uint64 // its subject's hash
	cause learning.Cause
	at    time.Time
	first time.Time
	down  bool
	took  answer
	// propensity of what was chosen.
	propensity float64
	sides      [2]answer
	result     result
}

// result of the retry that was made.
type result int8

const (
	unknown result = iota
	failed
	succeeded
)

// answer to a failure.
type answer struct {
	decision.Decision
	// rule of the backoff and retries made before; nil where the decision was not replayed.
	rule *decision.BackoffRule
	made int64
}

// plain reports whether the retry is made after the backoff, and not moved by a calendar or an outage.
func (a *answer) plain() bool { return a.ShouldRetry() && a.Wait() == a.Backoff.Delay }

// within reports whether every backoff of a may be chosen by b.
func (a *answer) within(b *answer) bool {
	return a.rule.After(0, a.made).Delay >= b.rule.After(0, b.made).Delay &&
		a.rule.After(1, a.made).Delay <= b.rule.After(1, b.made).Delay
}

// draws stand for all of a jitter.
const draws = 8

// delays are the backoffs that the answer's rule draws.
func (a *answer) delays() (all [draws]time.Duration) {
	for i := range all {
		all[i] = a.rule.After((float64(i)+0.5)/draws, a.made).Delay
	}
	return all
}

// since returns the time from the first failure to the retry.
func (a *answer) since() time.Duration { return a.NextRetryTime.Sub(a.FirstFailure) }

// Add takes the next record.
func (c *Comparison) Add(r *journal.Record) {
	switch {
	case r.Attempt != nil && r.Subject.Policy == c.policies[0].Name:
		c.attempt(r.Subject, r.Attempt)
	case r.Attempt != nil:
	case r.Entry.Kind == journal.OutcomeEntry:
		if f := c.open[r.Subject]; f != nil {
			if success, err := journal.ReadOutcome(r.Entry); err == nil && success {
				c.settle(f, succeeded, true)
			}
		}
		delete(c.open, r.Subject)
	case r.Entry.Kind == journal.DestinationEntry:
		if b, err := journal.BodyOf[journal.DestinationBody](r.Entry); err == nil && b.State != nil {
			c.down[r.Subject.ID] = b.State.Phase != destination.Up
		}
	}
}

func (c *Comparison) attempt(s journal.Subject, a *journal.Attempt) {
	before := c.open[s]
	delete(c.open, s)
	if a.Revision > 0 { // the same answer later: what comes of it is not of the retry that was planned
		return
	}
	if before != nil && before.took.RetryCount == a.AnalysedCount && a.Ends == "" {
		c.settle(before, failed, !a.ShouldRetry())
	}
	if a.Ends != "" || a.AnalysedCount == 0 {
		delete(c.presumed, s)
	}
	f, ok := c.replay(a, c.presumed[s])
	if !ok {
		c.omitted++
		return
	}
	c.failures = append(c.failures, f)
	if a.ShouldRetry() {
		c.open[s] = f
	}
	if a.Presumes() {
		c.presumed[s]++
	}
}

// settle notes what came of a failure's retry, and learns from it. last tells that no other follows.
func (c *Comparison) settle(f *failure, r result, last bool) {
	f.result = r
	of, n := c.learnt[f.claim%2], min(f.took.RetryCount, journal.MaxLearntRetries)
	bucket := int64(journal.RetryBucket(f.took.since()))
	of.AddSum(f.cause, f.at, journal.FigureRetryMade, bucket, 1)
	switch {
	case r == succeeded:
		of.AddSum(f.cause, f.at, journal.FigureRetrySucceeded, bucket, 1)
		of.AddSum(f.cause, f.at, journal.FigureCaseRecovered, n, 1)
	case last:
		of.AddSum(f.cause, f.at, journal.FigureCaseLost, n, 1)
	}
}

// replay has both policies decide. It reports false where one cannot, for what is not recorded: an HTTP status that
// classified the error.
func (c *Comparison) replay(a *journal.Attempt, presumed int64) (*failure, bool) {
	d := &a.Decision
	h := fnv.New64a()
	_, _ = h.Write([]byte(d.SubjectID))
	f := &failure{
		claim: h.Sum64() >> 7, at: d.AnalysedAt, first: d.FirstFailure, down: c.down[a.Destination], propensity: d.Propensity,
		cause: learning.Cause{Policy: d.Policy, Reason: string(d.Reason), Fingerprint: a.Fingerprint, Destination: a.Destination},
		took:  answer{Decision: *d},
	}
	if f.propensity == 0 {
		f.propensity = 1
	}
	v := decision.Variables{ID: decision.Text(d.SubjectID), Error: decision.Text(a.Error),
		RetryCount: decision.Value(strconv.FormatInt(a.AnalysedCount, 10))}
	if a.Destination != "" {
		v.Destination = decision.Text(a.Destination)
	}
	if !a.Deadline.IsZero() {
		v.Deadline = decision.Text(decision.Instant(a.Deadline))
	}
	for i, p := range c.policies {
		read, rejection := p.Read(v)
		if rejection != nil {
			return nil, false
		}
		if d.Taught > 0 {
			read.Teach(d.ErrorClassification, d.Team, d.Taught)
		}
		past := decision.Past{FirstFailure: d.FirstFailure, Presumed: presumed, Remembers: true}
		side := answer{decision.Decide(&read, p, past, d.AnalysedAt), &p.Backoff, a.AnalysedCount}
		if side.Outcome == decision.Rejected || p.Catalogue == d.Catalogue && side.ErrorClassification != d.ErrorClassification {
			return nil, false
		}
		f.sides[i] = side
	}
	return f, true
}

package audit

import (
	"context"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Differences counts failures by how two catalogues decide them.
type Differences struct {
	Failures int64 `json:"failures"`
	Alike    int64 `json:"decidedAlike"`
	// Otherwise counts failures that only one retries, or that both give up with different outcomes or teams. Earlier
	// and Later count those that the second catalogue retries earlier or later than the first.
	Otherwise int64 `json:"decidedOtherwise"`
	Earlier   int64 `json:"earlier"`
	Later     int64 `json:"later"`
	// NotComparable counts failures of which the journal lacks something that a decision needs.
	NotComparable int64 `json:"notComparable"`
}

// Add adds other to d.
func (d *Differences) Add(other *Differences) {
	d.Failures += other.Failures
	d.Alike += other.Alike
	d.Otherwise += other.Otherwise
	d.Earlier += other.Earlier
	d.Later += other.Later
	d.NotComparable += other.NotComparable
}

// Replay decides anew, with two catalogues, on each failure recorded since an instant, and counts by policy how they
// differ. Teachings hold in both; outages of destinations are ignored in both. progress counts the replayed failures.
func Replay(
	ctx context.Context, archive journal.Reader, since time.Time, a, b decision.Policies, progress Progress,
) (map[string]*Differences, error) {
	r := replay{a, b, map[journal.Subject]presumption{}, map[string]*Differences{}}
	failures := int64(0)
	for record, err := range archived(ctx, archive, journal.RecordFilter{Since: since}, progress, &failures) {
		if err != nil {
			return nil, err
		}
		// A revision only repeats its attempt's decision at a later time.
		if failed := record.Attempt; failed != nil && failed.Revision == 0 {
			r.failure(record.Subject, failed)
			failures++
		}
	}
	return r.differences, nil
}

type replay struct {
	a, b        decision.Policies
	presumed    map[journal.Subject]presumption
	differences map[string]*Differences
}

// presumption is how many failures of a subject's latest episode were presumed permanent (R25).
type presumption struct{ episode, failures int64 }

func (r *replay) failure(s journal.Subject, failed *journal.Attempt) {
	count := r.differences[s.Policy]
	if count == nil {
		count = &Differences{}
		r.differences[s.Policy] = count
	}
	count.Failures++
	before := r.presumed[s]
	if before.episode != failed.Episode {
		before = presumption{episode: failed.Episode}
	}
	a, knownA := decideAnew(r.a[s.Policy], failed, before.failures)
	b, knownB := decideAnew(r.b[s.Policy], failed, before.failures)
	switch {
	case !knownA || !knownB:
		count.NotComparable++
	case a.Outcome != b.Outcome || a.Team != b.Team:
		count.Otherwise++
	case b.NextRetryTime.Before(a.NextRetryTime):
		count.Earlier++
	case b.NextRetryTime.After(a.NextRetryTime):
		count.Later++
	default:
		count.Alike++
	}
	if failed.Presumes() {
		r.presumed[s] = presumption{failed.Episode, before.failures + 1}
	}
}

// decideAnew returns p's decision on a recorded failure. It reports false if p is nil or the record lacks something.
func decideAnew(p *decision.Policy, failed *journal.Attempt, presumed int64) (decision.Decision, bool) {
	d := &failed.Decision
	if p == nil || p.Own != nil { // a job's own retry policy is not recorded
		return decision.Decision{}, false
	}
	v := decision.Variables{ID: decision.Text(d.SubjectID), Error: decision.Text(failed.Error),
		RetryCount: decision.Value(strconv.FormatInt(failed.AnalysedCount, 10))}
	if failed.Destination != "" {
		v.Destination = decision.Text(failed.Destination)
	}
	if !failed.Deadline.IsZero() {
		v.Deadline = decision.Text(decision.Instant(failed.Deadline))
	}
	if p.HTTPStatusVariable != "" {
		if d.MatchedRule == "" {
			return decision.Decision{}, false // a status that matched no rule is not recorded
		}
		if !strings.Contains(failed.Error, d.MatchedText) {
			v.HTTPStatus = decision.Value(d.MatchedText)
		}
	}
	f, rejection := p.Read(v)
	if rejection != nil {
		return decision.Decision{}, false
	}
	if d.Taught > 0 {
		f.Teach(d.ErrorClassification, d.Team, d.Taught)
	}
	anew := decision.Decide(&f, p, decision.Past{FirstFailure: d.FirstFailure, Presumed: presumed, Remembers: true,
		PossiblyAccepted: d.PossiblyAccepted},
		d.AnalysedAt)
	return anew, anew.Outcome != decision.Rejected
}

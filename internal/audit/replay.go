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
	// Otherwise counts those that one retries and the other gives up, or that both give up in another way or to another
	// team. Of those that both retry, the second catalogue retries Earlier or Later.
	Otherwise int64 `json:"decidedOtherwise"`
	Earlier   int64 `json:"earlier"`
	Later     int64 `json:"later"`
	// NotComparable counts those of which the journal does not hold all that a decision needs.
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

// Replay has two catalogues decide anew on each failure that was recorded since an instant, and counts by policy how
// they differ. What a person taught holds in both; that a destination was down is left out of both. progress is called
// after each page of records with the last one's number, that of the journal's last record, and how many failures were
// replayed.
func Replay(
	ctx context.Context, archive journal.Archive, since time.Time, a, b decision.Policies, progress Progress,
) (map[string]*Differences, error) {
	r := replay{a, b, map[journal.Subject]presumption{}, map[string]*Differences{}}
	failures := int64(0)
	for record, err := range archived(ctx, archive, journal.RecordFilter{Since: since}, progress, &failures) {
		if err != nil {
			return nil, err
		}
		// A revision is the same answer at a later time.
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

// decideAnew returns what p decides on a recorded failure. It reports false where the catalogue has no such policy, or
// what the journal holds does not suffice.
func decideAnew(p *decision.Policy, failed *journal.Attempt, presumed int64) (decision.Decision, bool) {
	d := &failed.Decision
	if p == nil || p.Own != nil { // a retry policy that a job brings is not recorded
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
			return decision.Decision{}, false // a status that no rule knew is not recorded
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

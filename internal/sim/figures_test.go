package sim

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// tally is what the journal's sums are to be (R19): what is recorded, counted anew.
type tally struct {
	sums     map[journal.FigureName]int64
	episodes map[string]*episode // the last of each claim
	soon     int64               // recovered as soon as that
	early    int64               // retries within an hour of their first failure that something is learnt of
}

type episode struct {
	number, retries int64
	presumed        int             // errors that look permanent and were retried
	state           journal.State   // what became of it
	died            bool            // once, whatever people made of it since
	failed, retried bool            // since it began; before it failed first, too
	first           time.Time       // its first failure, as it was recorded last, or when it began without one
	opened          time.Time       // when it was recorded that it began
	attempt         int64           // the last of it
	process         int64           // the instance that asked last
	tried           []time.Duration // its retries, from its first failure on, since a person had it sent again
}

// of returns the episode of a claim; it ends the one before.
func (t *tally) of(claim string, number int64, ends journal.State, at time.Time) *episode {
	e := t.episodes[claim]
	if e == nil || e.number != number {
		if e != nil && ends != "" && !e.died {
			t.sums[journal.FigureClosed]++
		}
		e = &episode{number: number, opened: at}
		t.episodes[claim] = e
	}
	return e
}

// dies counts that an episode is given up, or ends.
func (t *tally) dies(e *episode, byLimit bool) {
	if !e.died {
		t.sums[journal.FigureClosed]++
		if byLimit {
			t.sums[journal.FigureExhausted]++
		}
	}
	if e.died = true; byLimit && e.retried {
		t.sums[journal.FigureExhaustedRetried]++
	}
}

// learns counts an episode that recovered by a retry, or is given up though it was retried.
func (t *tally) learns(e *episode, how journal.FigureName) {
	for _, after := range e.tried {
		t.sums[journal.FigureRetryMade]++
		if after <= time.Hour {
			t.early++
		}
	}
	if len(e.tried) > 0 {
		t.sums[how]++
	}
}

func (t *tally) attempt(a *journal.Attempt, open bool) {
	if last := t.episodes[a.Decision.SubjectID]; a.Revision > 0 && (!open || last != nil && last.number > a.Episode) {
		return // the episode went on, or another began
	}
	e := t.of(a.Decision.SubjectID, a.Episode, a.Ends, a.At)
	e.retried = e.retried || a.ShouldRetry() || !e.failed && a.AnalysedCount > 0
	e.failed = true
	made := a.NextRetryTime.Sub(a.FirstFailure)
	switch {
	case a.Revision == 0 && a.ShouldRetry():
		if len(e.tried) < journal.MaxLearntRetries {
			e.tried = append(e.tried, made)
		}
	case a.Revision == 0:
		if e.state == journal.Scheduled && a.Reason != decision.ReasonNoRecovery && a.Reason != decision.ReasonDeadline {
			t.learns(e, journal.FigureCaseLost)
		}
		e.tried = nil
	case e.state == journal.Scheduled && e.attempt == a.Number && a.ShouldRetry() && len(e.tried) > 0:
		e.tried[len(e.tried)-1] = made
	}
	if a.Revision == 0 {
		e.first, e.attempt, e.process = a.FirstFailure, a.Number, a.ProcessInstanceKey
		t.sums[journal.FigureDecisions]++
		if a.ErrorClassification == decision.Permanent {
			t.sums[journal.FigurePermanent]++
		}
		if a.Reason == decision.ReasonNoRecovery {
			t.sums[journal.FigureHandedOver]++
			t.sums[journal.FigureSavedRetries] += a.MaxRetries - a.RetryCount
		}
		if a.ShouldRetry() {
			if strings.HasPrefix(a.Error, presumedError) {
				e.presumed++
			}
			t.sums[journal.FigureScheduled]++
			t.sums[journal.FigureBackoff] += a.Backoff.Delay.Milliseconds()
		}
	}
	if a.Revision == 0 || !a.ShouldRetry() { // else it may be of an earlier one
		e.retries = a.RetryCount
	}
	switch {
	case !a.ShouldRetry() && e.state != journal.Dead:
		t.dies(e, a.Outcome == decision.MaxRetriesExceeded)
		e.state = journal.Dead
	case a.Revision == 0 && a.ShouldRetry():
		e.state = journal.Scheduled
	}
}

func (t *tally) gate(claim string, b *journal.GateBody, at time.Time) {
	switch b.Action {
	case journal.GateHeld:
		t.sums[journal.FigureHeld]++
	case journal.GateGivenUp:
		e := t.of(claim, b.Episode, "", at)
		if b.Opens {
			e.first = b.Since
		}
		e.retries, e.state, e.process = b.Retries, journal.Dead, b.ProcessInstanceKey
		t.dies(e, true)
	}
}

func (t *tally) entry(e *journal.Entry) {
	var b struct {
		Episode, RetryCount int64
		State               journal.State
		Decision            journal.DeadLetterState
		Fresh               bool
		At                  time.Time
	}
	_ = json.Unmarshal([]byte(e.Body), &b)
	switch is := t.episodes[e.Subject.ID]; {
	case is == nil:
	case e.Kind == journal.OutcomeEntry:
		if is.state == journal.Scheduled && b.State == journal.Recovered {
			t.learns(is, journal.FigureCaseRecovered)
		}
		is.state = b.State
		if t.dies(is, false); b.State == journal.Recovered && is.retried {
			took := max(b.At.Sub(is.first), 0)
			t.sums[journal.FigureRecoveredRetried]++
			t.sums[journal.FigureRecoveryRetries] += is.retries
			t.sums[journal.FigureRecoveryTime] += took.Milliseconds()
			if took <= soon {
				t.soon++
			}
		}
	case e.Kind == journal.ReviewEntry && b.Decision == journal.DeadLetterDiscarded:
		is.state = journal.Discarded
	case e.Kind == journal.ReviewEntry:
		if is.state, is.retries, is.tried = journal.Reprocessing, b.RetryCount, nil; b.Fresh {
			*is = episode{number: is.number + 1, state: is.state, retries: is.retries, died: is.died, first: e.At, opened: e.At, process: is.process}
		}
	}
}

// soon is a time to recovery that a bucket ends at.
const soon = 20 * time.Minute

// checkFigures: the sums are what was recorded, those of buckets and of causes what they are of.
func (s *sim) checkFigures() {
	all, err := s.memory.Figures(context.Background(), 0)
	_, _ = s.memory.Learnt(context.Background(), []int64{journal.WeekOf(s.began)}, func(f *journal.LearntFigure) { all = append(all, f.Figure) })
	sums, early, recovered := map[journal.FigureName]int64{}, int64(0), int64(0)
	for _, f := range all {
		sums[f.Name] += f.Value
		switch {
		case f.Name == journal.FigureRetryMade && f.Bucket < 3:
			early += f.Value
		case f.Name == journal.FigureRecoveryTimeBucket && f.Bucket <= int64(soon.Seconds()):
			recovered += f.Value
		}
	}
	if recovered != s.tally.soon || early != s.tally.early {
		s.fail("%d are counted that recovered soon, not %d, and %d retries within an hour, not %d", recovered, s.tally.soon, early,
			s.tally.early)
	}
	causes, _ := s.memory.Causes(context.Background(), journal.CauseFilter{}, nil, 1000)
	failures := sums[journal.FigureDecisions]
	for i := range causes {
		c := &causes[i]
		if failures -= c.Failures; c.Retried+c.Exhausted+c.Permanent != c.Failures {
			s.fail("of a cause are counted: %+v", c.Fingerprint)
		}
		if taught, is := s.taught[c.ID]; is != (c.Taught != nil) || is && *c.Taught != taught {
			s.fail("of a cause was taught %+v, and is shown %+v", taught, c.Taught)
		}
	}
	if failures != 0 {
		s.fail("%d failures more were decided on than are counted of causes", failures)
	}
	is := func(name journal.FigureName, want int64) {
		if err != nil || sums[name] != want {
			s.fail("the sum %s is %d, and is to be %d", name, sums[name], want)
		}
	}
	for name, want := range s.tally.sums {
		is(name, want)
	}
	is(journal.FigureTook, sums[journal.FigureDecisions])
	is(journal.FigureRecoveryTimeBucket, sums[journal.FigureRecoveredRetried])
	is(journal.FigureRetrySucceeded, sums[journal.FigureCaseRecovered])
}

// counted: it is recorded of a portal what went, waited and failed, once, and all of it after a while.
func (s *sim) counted(name string, all bool) {
	w, went, kept, failed := s.portals[name], 0, 0, 0
	for t := range w.counts {
		went, kept, failed = went+t.Admitted+t.Released, kept+t.Held, failed+t.Failed
	}
	for i, n := range []int{went, kept, failed} {
		of := [][]time.Time{w.paces, w.kept, w.failures}[i]
		if n > len(of) || all && n < len(of)-since(of, countedWithin) {
			s.fail("%s counts %d that went, %d that waited and %d failures of %d, %d and %d", name, went, kept, failed, len(w.paces), len(w.kept), len(w.failures))
		}
	}
}

// countedWithin is how soon what goes to a portal is recorded by number.
const countedWithin = 17 * time.Minute

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
}

type episode struct {
	number, retries int64
	presumed        int           // errors that look permanent and were retried
	state           journal.State // what became of it
	died            bool          // once, whatever people made of it since
	failed, retried bool          // since it began; before it failed first, too
	first           time.Time     // its first failure, as it was recorded last, or when it began without one
	opened          time.Time     // when it was recorded that it began
	process         int64         // the instance that asked last
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

func (t *tally) attempt(a *journal.Attempt, open bool) {
	if last := t.episodes[a.Decision.SubjectID]; a.Revision > 0 && (!open || last != nil && last.number > a.Episode) {
		return // the episode went on, or another began
	}
	e := t.of(a.Decision.SubjectID, a.Episode, a.Ends, a.At)
	e.retried = e.retried || a.ShouldRetry() || !e.failed && a.AnalysedCount > 0
	e.failed = true
	if a.Revision == 0 {
		e.first, e.process = a.FirstFailure, a.ProcessInstanceKey
		t.sums[journal.FigureDecisions]++
		if a.ErrorClassification == decision.Permanent {
			t.sums[journal.FigurePermanent]++
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
		is.state = b.State
		if t.dies(is, false); b.State == journal.Recovered && is.retried {
			took := max(b.At.Sub(is.first), 0)
			t.sums[journal.FigureRecoveredRetried]++
			t.sums[journal.FigureRecoveryRetries] += is.retries
			t.sums[journal.FigureRecoveryTime] += took.Milliseconds()
		}
	case e.Kind == journal.ReviewEntry && b.Decision == journal.DeadLetterDiscarded:
		is.state = journal.Discarded
	case e.Kind == journal.ReviewEntry:
		if is.state, is.retries = journal.Reprocessing, b.RetryCount; b.Fresh {
			*is = episode{number: is.number + 1, state: is.state, retries: is.retries, died: is.died, first: e.At, opened: e.At, process: is.process}
		}
	}
}

// checkFigures: the sums are what was recorded.
func (s *sim) checkFigures() {
	all, err := s.memory.Figures(context.Background(), 0)
	sums := map[journal.FigureName]int64{}
	for _, f := range all {
		sums[f.Name] += f.Value
	}
	for name, want := range s.tally.sums {
		if err != nil || sums[name] != want {
			s.fail("the sum %s is %d, and is to be %d", name, sums[name], want)
		}
	}
}

package journal

import (
	"time"

	"retry-worker/internal/decision"
)

// How is how the answer to an analysis came about. The set is closed.
type How string

// The ways. Fresh: decided now. Replayed: the recorded decision, unchanged. Rebased: the recorded decision with a new
// time, as its own has passed, or the episode's end if the new time is beyond the policy's total limit (R20). Stale: no
// answer, as a later delivery of the job was answered.
const (
	Fresh    How = "fresh"
	Replayed How = "replayed"
	Rebased  How = "rebased"
	Stale    How = "stale"
)

// rule applies the rules in the table of docs/architecture.md, "The journal", to an analysis at now. It is pure.
func rule(a *Analysis, h *History, now time.Time) Recorded {
	e, l := &h.Episode, h.Last
	ends, floor := e.ends(a, now), e.Retries
	switch {
	case stale(a, h):
		return Recorded{How: Stale}
	case h.Same != nil && replays(h):
		return recorded(a, h, now)
	case h.Same != nil, ends != Superseded: // an answered job came again: the engine reused its keys
		return begin(a, h, now, ends)
	case e.ProcessInstanceKey != a.ProcessInstanceKey:
		return another(a, h, now)
	case l != nil && l.Episode == e.Number && l.of(a):
		floor = l.AnalysedCount // same job, other inputs: the last decision was not carried out
	}
	return join(a, h, now, floor)
}

// stale reports whether this delivery of the job is no later than one that was answered or had other inputs: its
// process was frozen meanwhile. An answered job that is delivered later is a new failure.
func stale(a *Analysis, h *History) bool {
	switch l := h.Last; {
	case a.LockedUntil == 0:
		return false
	case h.Same != nil:
		return h.SameAnswered && a.LockedUntil <= max(h.SameUntil, h.Same.LockedUntil)
	default:
		return l != nil && l.of(a) && a.LockedUntil <= l.LockedUntil
	}
}

// of reports whether the attempt belongs to the analysis's job.
func (a *Attempt) of(n *Analysis) bool {
	return a.JobKey == n.JobKey && a.ElementInstanceKey == n.ElementInstanceKey
}

// replays reports whether the recorded decision of the same identity stands: its answer was not taken yet, or its dead
// letter is open (an error that the process did not catch comes back as the same job).
func replays(h *History) bool {
	return !h.SameAnswered || h.SameDeadLetter == DeadLetterOpen
}

// recorded repeats the decision on the same inputs: unchanged while its time lies ahead, otherwise with the same
// backoff from now, or as the end if that is too late (R20).
func recorded(a *Analysis, h *History, now time.Time) Recorded {
	r := Recorded{How: Replayed, Attempt: h.Same, Decision: h.Same.Decision}
	switch {
	case r.Decision.ShouldRetry() && !r.Decision.NextRetryTime.After(now):
		r.How, r.Decision = Rebased, r.Decision.Rebase(a.Policy, a.Failure, now)
	case !h.SameAnswered:
		r.mark = one(h.Same)
		if a.LockedUntil > h.Same.LockedUntil {
			r.mark.Until = a.LockedUntil
		}
	}
	return r
}

// one returns the run of the attempt's record alone.
func one(a *Attempt) Run { return Run{First: a.Record, Last: a.Record} }

// join decides on a new failure in the open episode. A retryCount below floor, the journal's, is raised to it, or a
// model that forgets to carry it would retry for ever.
func join(a *Analysis, h *History, now time.Time, floor int64) Recorded {
	f := *a.Failure
	if f.HasRetryCount {
		f.RetryCount = max(f.RetryCount, floor)
	}
	past := decision.Past{Retries: floor, FirstFailure: h.Episode.FirstFailure, Presumed: h.Episode.Presumed,
		Remembers: true, PossiblyAccepted: h.PossiblyAccepted}
	return Recorded{How: Fresh, Decision: decision.Decide(&f, a.Policy, past, now)}
}

// another decides on a failure in a process other than the open episode's (R18): the next count joins the episode, the
// count decided last gets the same decision, and any other begins a new episode.
func another(a *Analysis, h *History, now time.Time) Recorded {
	e := &h.Episode
	given := a.Failure.RetryCount
	if !a.Failure.HasRetryCount {
		given = e.Retries // R9
	}
	if e.State != Dead && given == e.Retries {
		return join(a, h, now, e.Retries)
	}
	own := begin(a, h, now, Superseded)
	if l := h.Last; l != nil && e.State == Scheduled && given == l.AnalysedCount && l.Decision.NextRetryTime.After(now) &&
		own.Decision.ShouldRetry() && own.Decision.ErrorClassification == l.Decision.ErrorClassification &&
		own.Decision.PossiblyAccepted == l.Decision.PossiblyAccepted { // or else the doubt would be forgotten (R33)
		return Recorded{How: Replayed, Attempt: l, Decision: l.Decision}
	}
	return own
}

// begin decides on a failure that opens an episode; ends is how the open one ends.
func begin(a *Analysis, h *History, now time.Time, ends State) Recorded {
	past := decision.Past{Remembers: true, PossiblyAccepted: h.PossiblyAccepted}
	if ends == Superseded && !a.Failure.HasRetryCount {
		past.Retries = h.Episode.Retries // R9
	}
	return Recorded{How: Fresh, Decision: decision.Decide(a.Failure, a.Policy, past, now), ends: ends, opens: true}
}

// ends returns how the episode ends when another begins; empty if it has ended.
func (e *Episode) ends(a *Analysis, now time.Time) State {
	switch {
	case !e.State.Open():
		return ""
	case e.abandoned(a.Policy, a.Failure.Destination, now):
		return Abandoned
	default:
		return Superseded
	}
}

// abandoned reports whether nothing was heard for longer than the policy's total limit since the retry's time, without
// closed hours. A limit of 0 is none.
func (e *Episode) abandoned(p *decision.Policy, destination string, now time.Time) bool {
	limit := p.TimeLimit(destination, e.NextRetryTime)
	return e.waits() && !limit.IsZero() && now.After(limit)
}

// waits reports whether a retry of the episode is under way.
func (e *Episode) waits() bool { return e.State == Scheduled || e.State == Reprocessing }

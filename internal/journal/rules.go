package journal

import (
	"time"

	"retry-worker/internal/decision"
)

// How tells what an analysis turned out to be. The set is closed.
type How string

// The ways. Fresh: decided now. Replayed: the recorded decision, word for word. Rebased: the recorded
// decision with a new time, because its own has passed; or its end, where the new time would lie beyond the
// policy's total limit (R20). Stale: nothing, for the job was given to another since.
const (
	Fresh    How = "fresh"
	Replayed How = "replayed"
	Rebased  How = "rebased"
	Stale    How = "stale"
)

// ruling is what the rules of identity and episodes make of one analysis.
type ruling struct {
	how How
	// attempt that is replayed or re-based.
	attempt *Attempt
	// decision made now.
	decision decision.Decision
	// ends is what becomes of the open episode, because another begins; empty where it is joined, or none
	// is open.
	ends State
	// opens tells that the decision begins an episode.
	opens bool
}

// rule applies the rules of architecture.md, "Identity and episodes, exactly", to an analysis at instant
// now. It is pure.
func rule(a *Analysis, h *History, now time.Time) ruling {
	e := &h.Episode
	ends := e.ends(a, now)
	switch {
	case h.Same != nil && replays(h):
		return recorded(h.Same, a, now)
	case h.Same != nil, ends != Superseded: // whoever asks for a job that was answered got its keys anew
		return begin(a, h, now, ends)
	case e.ProcessInstanceKey == a.ProcessInstanceKey:
		return join(a, h, now)
	default:
		return another(a, h, now)
	}
}

// stale reports whether the engine gave the job out no later than when its answer was taken, or when it asked something
// else: who asks stood still meanwhile. A job that was answered and comes later is another failure.
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

// of reports whether the attempt was asked for by the same job.
func (a *Attempt) of(n *Analysis) bool {
	return a.JobKey == n.JobKey && a.ElementInstanceKey == n.ElementInstanceKey
}

// replays reports whether the recorded decision of the same identity stands: nobody took it yet, or it is a
// dead letter that nobody has dealt with (an error that the process did not catch comes back as the same job).
func replays(h *History) bool {
	return !h.SameAnswered || h.SameDeadLetter == DeadLetterOpen
}

// recorded gives a recorded decision again: as it is while its time lies ahead, later with the same backoff
// from now on, or as the end where that is too late (R20).
func recorded(a *Attempt, again *Analysis, now time.Time) ruling {
	d := a.Decision
	if !d.ShouldRetry() || d.NextRetryTime.After(now) {
		return ruling{how: Replayed, attempt: a, decision: d}
	}
	return ruling{how: Rebased, attempt: a, decision: d.Rebase(again.Policy, again.Failure, now)}
}

// mark is the record of a replayed attempt that is to be marked answered.
func (r *ruling) mark(a *Analysis, h *History) Run {
	if r.attempt != h.Same || h.SameAnswered {
		return Run{}
	}
	m := one(r.attempt)
	if a.LockedUntil > r.attempt.LockedUntil {
		m.Until = a.LockedUntil
	}
	return m
}

// one is the run of the attempt's record alone.
func one(a *Attempt) Run { return Run{First: a.Record, Last: a.Record} }

// join is a new failure in the process that the open episode belongs to: a count below the journal's is
// raised to it, or a model that forgets to carry it would retry for ever.
func join(a *Analysis, h *History, now time.Time) ruling {
	e := &h.Episode
	floor := e.Retries
	if l := h.Last; l != nil && l.Episode == e.Number && l.of(a) {
		floor = l.AnalysedCount // the same job with other inputs: the last decision was not carried out
	}
	f := *a.Failure
	if f.HasRetryCount {
		f.RetryCount = max(f.RetryCount, floor)
	}
	d := decision.Decide(&f, a.Policy,
		decision.Past{Retries: floor, FirstFailure: e.FirstFailure, Presumed: e.Presumed, Remembers: true,
			PossiblyAccepted: h.PossiblyAccepted}, now)
	return ruling{how: Fresh, decision: d}
}

// another is a failure in another process than the open episode's (R18): it goes on where that stands, is
// told the same where it asks the same, and otherwise begins anew.
func another(a *Analysis, h *History, now time.Time) ruling {
	e := &h.Episode
	given := a.Failure.RetryCount
	if !a.Failure.HasRetryCount {
		given = e.Retries // R9
	}
	if e.State != Dead && given == e.Retries {
		d := decision.Decide(a.Failure, a.Policy,
			decision.Past{Retries: e.Retries, FirstFailure: e.FirstFailure, Presumed: e.Presumed, Remembers: true,
				PossiblyAccepted: h.PossiblyAccepted}, now)
		return ruling{how: Fresh, decision: d}
	}
	own := begin(a, h, now, Superseded)
	if l := h.Last; l != nil && e.State == Scheduled && given == l.AnalysedCount && l.Decision.NextRetryTime.After(now) &&
		own.decision.ShouldRetry() && own.decision.ErrorClassification == l.Decision.ErrorClassification {
		return ruling{how: Replayed, attempt: l, decision: l.Decision}
	}
	return own
}

// begin opens an episode; ends is what becomes of the one that is open.
func begin(a *Analysis, h *History, now time.Time, ends State) ruling {
	past := decision.Past{Remembers: true, PossiblyAccepted: h.PossiblyAccepted}
	if ends == Superseded && !a.Failure.HasRetryCount {
		past.Retries = h.Episode.Retries // R9: what the open episode holds
	}
	return ruling{how: Fresh, decision: decision.Decide(a.Failure, a.Policy, past, now), ends: ends, opens: true}
}

// ends is what becomes of the episode when another begins; empty where it has ended.
func (e *Episode) ends(a *Analysis, now time.Time) State {
	switch {
	case !e.State.Open():
		return ""
	case e.abandoned(a, now):
		return Abandoned
	default:
		return Superseded
	}
}

// abandoned reports whether nothing was heard of the retry for longer after its time than the policy's total limit, closed
// hours not counted; 0 is no limit.
func (e *Episode) abandoned(a *Analysis, now time.Time) bool {
	waits := e.State == Scheduled || e.State == Reprocessing
	limit := a.Policy.TimeLimit(a.Failure.Destination, e.NextRetryTime)
	return waits && !limit.IsZero() && now.After(limit)
}

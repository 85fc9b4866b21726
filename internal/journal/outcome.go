package journal

import (
	"time"

	"retry-worker/internal/decision"
)

// Outcome tells how the retried work of a subject ended.
type Outcome struct {
	Subject Subject
	// Success closes the open episode; a failure ends it dead unless a retry lies ahead.
	Success bool
	// Team that must act where a failure ends the episode dead: the policy's LimitTeam (R21).
	Team decision.Team
	// At is when it happened; the zero time means now.
	At time.Time
	// JobKey, ElementInstanceKey and ProcessInstanceKey of the job that reports it; 0 where none does.
	JobKey, ElementInstanceKey, ProcessInstanceKey int64
}

// Concluded says what an outcome changed.
type Concluded struct {
	// Episode as it stands now; its Number is 0 where the subject has none.
	Episode Episode
	// Changed tells whether the outcome ended it.
	Changed bool
}

type outcomeBody struct {
	Outcome            string `json:"outcome"`
	Episode            int64  `json:"episode"`
	State              State  `json:"state"`
	At                 string `json:"at"`
	ProcessInstanceKey int64  `json:"processInstanceKey,omitempty"`
}

// conclude applies an outcome. One for a subject without an open episode, or one told twice, changes nothing.
func (b *batch) conclude(o *Outcome, h *History) Concluded {
	e := h.Episode
	at := o.At.UTC().Truncate(time.Millisecond)
	if o.At.IsZero() || at.After(b.milli()) {
		at = b.milli()
	}
	h.reported(o.ProcessInstanceKey)
	switch {
	case !e.State.Open(), !o.At.IsZero() && h.Last != nil && at.Before(h.Last.Decision.AnalysedAt): // of an earlier try
		return Concluded{Episode: e}
	case o.Success:
		if e.DeadLetter != "" {
			b.settle(h, DeadLetterRecovered)
		}
		e.State, e.ClosedAt, e.DeadLetter, e.NextRetryTime = Recovered, at, "", time.Time{}
		b.countEnd(o.Subject.Policy, &e, h.Episode.DeadLetter == "", false)
		if h.Last != nil {
			b.fingerprint(o.Subject.Policy, h.Last).Recovered++
		}
	case e.State == Dead, e.NextRetryTime.After(b.now):
		return Concluded{Episode: e}
	default:
		b.fail(o, h, &e)
	}
	b.changes.Episodes = append(b.changes.Episodes, KeyedEpisode{h.Key, e})
	body := outcomeBody{outcomeWord(o.Success), e.Number, e.State, decision.Instant(at), o.ProcessInstanceKey}
	b.entry(OutcomeEntry, body, Happening{Subject: o.Subject, Episode: e, Outcome: o})
	return Concluded{Episode: e, Changed: true}
}

// fail ends the episode dead: the process gave up by itself.
func (b *batch) fail(o *Outcome, h *History, e *Episode) {
	asked := Analysis{Subject: o.Subject, JobKey: o.JobKey, ElementInstanceKey: o.ElementInstanceKey,
		ProcessInstanceKey: o.ProcessInstanceKey, Failure: &decision.Failure{}}
	if e.DeadLetter != "" {
		b.settle(h, DeadLetterSuperseded)
	}
	d := DeadLetter{
		ID: deadLetterID(&asked, e.Number, e.Retries, h.Attempts), State: DeadLetterOpen, Episode: e.Number, Record: b.record(),
		Outcome: decision.MaxRetriesExceeded, Reason: decision.ReasonReported, Team: o.Team, RetryCount: e.Retries,
		ProcessInstanceKey: e.ProcessInstanceKey, CreatedAt: b.milli(), ChangedAt: b.milli(),
	}
	if l := h.Last; l != nil {
		d.MaxRetries = l.Decision.MaxRetries
	}
	e.State, e.DeadLetter, e.NextRetryTime = Dead, d.ID, time.Time{}
	b.bear(h.Key, o.Subject, d, h.Last)
	b.countEnd(o.Subject.Policy, e, h.Episode.DeadLetter == "", false)
}

func outcomeWord(success bool) string {
	if success {
		return "success"
	}
	return "failure"
}

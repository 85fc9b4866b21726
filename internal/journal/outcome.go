package journal

import (
	"fmt"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/redact"
)

// Outcome says how the retried work of a subject ended.
type Outcome struct {
	Subject Subject
	// Success and Accepted close the open episode. A failure ends it dead unless a retry lies ahead.
	Success bool
	// Accepted is set if nothing was sent because the other side had it already.
	Accepted *Acceptance
	// Team must act if a failure ends the episode dead: the policy's LimitTeam (R21).
	Team decision.Team
	// At is when it happened; the zero time means now.
	At time.Time
	// JobKey, ElementInstanceKey and ProcessInstanceKey are those of the job that reports it; 0 for none.
	JobKey, ElementInstanceKey, ProcessInstanceKey int64
	// LockedUntil is the job's, as in an Analysis.
	LockedUntil int64
	// By is the person who reports it; empty for a job. If the episode has a dead letter, a person's report counts only
	// if DeadLetter names it, so that the caller has seen its team.
	By, DeadLetter string
}

// Acceptance says that the other side already has what was to be sent again (R33). It does not count as a successful
// retry.
type Acceptance struct {
	// Protocol is the other side's number for it (decision.IsProtocol); empty if unknown.
	Protocol string `json:"protocolNumber,omitempty"`
}

// check returns an error if Protocol is not a protocol's number.
func (a *Acceptance) check() error {
	if a != nil && a.Protocol != "" && !decision.IsProtocol(a.Protocol) {
		return fmt.Errorf("%w: protocolNumber is no number of a protocol", ErrInvalid)
	}
	return nil
}

// Ended sets how the work ended. protocol is the number of an acceptance.
func (o *Outcome) Ended(as decision.Result, protocol string) {
	if o.Success = as == decision.Success; as == decision.Accepted {
		o.Accepted = &Acceptance{protocol}
	}
}

// Concluded is the result of an outcome.
type Concluded struct {
	// Episode is as it stands then; its Number is 0 if the subject has none.
	Episode Episode
	// Changed reports whether the outcome ended it.
	Changed bool
}

type outcomeBody struct {
	Outcome            string        `json:"outcome"`
	Accepted           *Acceptance   `json:"accepted,omitempty"`
	Episode            int64         `json:"episode"`
	State              State         `json:"state"`
	At                 time.Time     `json:"at"`
	ProcessInstanceKey int64         `json:"processInstanceKey,omitempty,string"`
	By                 string        `json:"by,omitempty"`
	Delivered          *DeliveredJob `json:"delivered,omitempty"`
	// DeadLetter is the id of the dead letter that a failure creates, Team who must act on it.
	DeadLetter string        `json:"deadLetterId,omitempty"`
	Team       decision.Team `json:"responsibleTeam,omitempty"`
	// Sent is the claim, if a destination's gate let it through and it succeeded. Destination is that of one that passed
	// no gate and succeeded at At.
	Sent        SentJob `json:"sent,omitzero"`
	Destination string  `json:"dest,omitempty"`
	// Left is an expired episode, opened at Opened, as its own records will be purged.
	Left   *Episode  `json:"left,omitempty"`
	Opened time.Time `json:"opened,omitzero"`
}

// DeliveredJob is one delivery of a job that reported an outcome.
type DeliveredJob struct {
	JobKey      int64 `json:"jobKey,string"`
	LockedUntil int64 `json:"lockedUntil"`
}

// stale reports whether the job's outcome is recorded already, from this delivery or a later one.
func (o *Outcome) stale(h *History) bool {
	d := h.Concluded
	return d != nil && o.JobKey == d.JobKey && o.LockedUntil != 0 && o.LockedUntil <= d.LockedUntil
}

const (
	outcomeSuccess  = string(decision.Success)
	outcomeFailure  = string(decision.Failed)
	outcomeAccepted = string(decision.Accepted)
	outcomeExpired  = "expired"
)

// conclude records an outcome. It changes nothing if the subject has no open episode or the outcome is known.
func (b *batch) conclude(o *Outcome, h *History) Concluded {
	e := &h.Episode
	at := o.At.UTC().Truncate(time.Millisecond)
	if o.At.IsZero() || at.After(b.milli()) {
		at = b.milli()
	}
	body := &outcomeBody{Outcome: outcomeSuccess, Episode: e.Number, State: Recovered, At: at,
		ProcessInstanceKey: o.ProcessInstanceKey, By: o.By}
	if o.Accepted != nil {
		body.Outcome, body.State, body.Accepted = outcomeAccepted, Accepted, o.Accepted
	}
	if o.LockedUntil != 0 {
		body.Delivered = &DeliveredJob{o.JobKey, o.LockedUntil}
	}
	earlier := func(than time.Time) bool { return !o.At.IsZero() && at.Before(than) } // the outcome is an earlier try's
	if h.Sent != nil && (o.Success || o.Accepted != nil) && !earlier(h.Sent.At) {
		body.Sent = *h.Sent
	}
	switch {
	case o.stale(h), o.By != "" && e.State.Open() && e.DeadLetter != o.DeadLetter:
		return Concluded{Episode: *e}
	case !e.State.Open() && body.Sent != SentJob{}: // released by a gate, with no failure before
		b.entry(h, o.Subject, GateEntry, &GateBody{Action: GateAnswered, Sent: body.Sent})
		return Concluded{Episode: *e}
	case !e.State.Open(), o.Accepted == nil && h.Last != nil && earlier(h.Last.Decision.AnalysedAt):
		return Concluded{Episode: *e}
	case o.Success, o.Accepted != nil:
		if (body.Sent == SentJob{}) && h.Last != nil {
			body.Destination = h.Last.Destination
		}
	case e.State == Dead, e.NextRetryTime.After(b.now):
		return Concluded{Episode: *e}
	default: // the process gave up by itself
		asked := Analysis{Subject: o.Subject, JobKey: o.JobKey, ElementInstanceKey: o.ElementInstanceKey,
			ProcessInstanceKey: o.ProcessInstanceKey, Failure: &decision.Failure{}}
		body.Outcome, body.State, body.Team = outcomeFailure, Dead, o.Team
		body.DeadLetter = b.identities.Identity(&asked).deadLetterID(e.Number, e.Retries, h.Attempts)
	}
	b.entry(h, o.Subject, OutcomeEntry, body)
	return Concluded{Episode: h.Episode, Changed: true}
}

// RejectedJob is a job whose input was rejected (R11). It is recorded, but not as an attempt.
type RejectedJob struct {
	// Subject lacks what the job did not say; it may be zero.
	Subject                    Subject
	Rule                       decision.BusinessRule
	JobKey, ProcessInstanceKey int64
	Rejection                  *decision.Rejection
}

// rejectionBody is the body of a RejectedJob's record.
type rejectionBody struct {
	Code               decision.RejectionCode `json:"rejection"`
	Message            string                 `json:"message"`
	Rule               decision.BusinessRule  `json:"rule,omitempty"`
	JobKey             int64                  `json:"jobKey,string"`
	ProcessInstanceKey int64                  `json:"processInstanceKey,string"`
}

func (b *batch) reject(r *RejectedJob, h *History) {
	body := rejectionBody{r.Rejection.Code, storable(RejectionMessage(r.Rejection)), r.Rule, r.JobKey, r.ProcessInstanceKey}
	b.entry(h, r.Subject, RejectionEntry, body)
}

// maxFoundBytes bounds a refused value in a message, as the text after it says what was expected.
const maxFoundBytes = 300

// RejectionMessage returns one line that says what was refused, with nothing personal in it.
func RejectionMessage(r *decision.Rejection) string {
	clean := *r
	clean.Found = redact.Line(r.Found, maxFoundBytes) // only this comes from the process
	return clean.Error()
}

// Due is the state of a scheduled episode whose time has come (PENDING). It is derived, never stored.
const Due State = "due"

// Status is a subject's state as other systems, such as a CRM, show it. The set is closed.
type Status string

// The statuses.
const (
	StatusPending   Status = "pendente"
	StatusResending Status = "reenviando"
	StatusFailed    Status = "falha"
	StatusDelivered Status = "entregue"
	StatusDiscarded Status = "descartada"
)

// StateAt returns the episode's state at now, where scheduled may be due.
func (e *Episode) StateAt(now time.Time) State {
	if e.State == Scheduled && !e.NextRetryTime.After(now) {
		return Due
	}
	return e.State
}

// Status returns what the state means to other systems. Abandoned and superseded claims did not arrive.
func (s State) Status() Status {
	switch s {
	case Scheduled:
		return StatusPending
	case Due, Reprocessing:
		return StatusResending
	case Recovered, Accepted:
		return StatusDelivered
	case Discarded:
		return StatusDiscarded
	default:
		return StatusFailed
	}
}

// Views returns the view of each element. It is never nil, which would be null in JSON.
func Views[T, V any](all []T, of func(*T) V) []V {
	views := make([]V, len(all))
	for i := range all {
		views[i] = of(&all[i])
	}
	return views
}

// OrNull returns nil, which is null in JSON, for an empty string.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// InstantOrNull returns decision.Instant of t, or nil for the zero time.
func InstantOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return OrNull(decision.Instant(t))
}

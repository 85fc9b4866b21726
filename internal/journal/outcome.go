package journal

import (
	"fmt"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/redact"
)

// Outcome tells how the retried work of a subject ended.
type Outcome struct {
	Subject Subject
	// Success and Accepted close the open episode; a failure ends it dead unless a retry lies ahead.
	Success bool
	// Accepted tells that nothing was sent, because the other side has it already; nil where that is not so.
	Accepted *Acceptance
	// Team that must act where a failure ends the episode dead: the policy's LimitTeam (R21).
	Team decision.Team
	// At is when it happened; the zero time means now.
	At time.Time
	// JobKey, ElementInstanceKey and ProcessInstanceKey of the job that reports it; 0 where none does.
	JobKey, ElementInstanceKey, ProcessInstanceKey int64
	// LockedUntil is the job's, as of an Analysis.
	LockedUntil int64
	// By is the person who tells it; empty where a job does. An episode that has a dead letter is ended by a person's
	// word only where DeadLetter names it, so that the caller has seen its team.
	By, DeadLetter string
}

// Acceptance tells that the other side has already what was to be sent again (R33). It is no success of a retry.
type Acceptance struct {
	// Protocol is the number that the other side gave it (decision.IsProtocol); empty where nobody knows it.
	Protocol string `json:"protocolNumber,omitempty"`
}

// check refuses a number that is none.
func (a *Acceptance) check() error {
	if a != nil && a.Protocol != "" && !decision.IsProtocol(a.Protocol) {
		return fmt.Errorf("%w: protocolNumber is no number of a protocol", ErrInvalid)
	}
	return nil
}

// Ended says that the work ended so; protocol is the number of what was accepted.
func (o *Outcome) Ended(as decision.Result, protocol string) {
	if o.Success = as == decision.Success; as == decision.Accepted {
		o.Accepted = &Acceptance{protocol}
	}
}

// Concluded says what an outcome changed.
type Concluded struct {
	// Episode as it stands now; its Number is 0 where the subject has none.
	Episode Episode
	// Changed tells whether the outcome ended it.
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
	// DeadLetter is the id of the one that is born where a failure ends the episode, Team who must act on it.
	DeadLetter string        `json:"deadLetterId,omitempty"`
	Team       decision.Team `json:"responsibleTeam,omitempty"`
	// Sent is what a destination's gate let through and has succeeded.
	Sent SentJob `json:"sent,omitzero"`
	// Left is an episode that has expired, which was opened at Opened: its own records go.
	Left   *Episode  `json:"left,omitempty"`
	Opened time.Time `json:"opened,omitzero"`
}

// DeliveredJob is a job by which an outcome was reported, as the engine gave it out.
type DeliveredJob struct {
	JobKey      int64 `json:"jobKey,string"`
	LockedUntil int64 `json:"lockedUntil"`
}

// stale reports whether the job was given out no later than when what it reports was recorded.
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

// conclude records an outcome. One for a subject without an open episode, or one told twice, changes nothing.
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
	earlier := func(than time.Time) bool { return !o.At.IsZero() && at.Before(than) } // it is of an earlier try
	if h.Sent != nil && (o.Success || o.Accepted != nil) && !earlier(h.Sent.At) {
		body.Sent = *h.Sent
	}
	switch {
	case o.stale(h), o.By != "" && e.State.Open() && e.DeadLetter != o.DeadLetter:
		return Concluded{Episode: *e}
	case !e.State.Open() && body.Sent != SentJob{}: // what a gate let through had no failure to recover from
		b.entry(h, o.Subject, GateEntry, &GateBody{Action: GateAnswered, Sent: body.Sent}, Happening{})
		return Concluded{Episode: *e}
	case !e.State.Open(), h.Last != nil && earlier(h.Last.Decision.AnalysedAt):
		return Concluded{Episode: *e}
	case o.Success, o.Accepted != nil:
	case e.State == Dead, e.NextRetryTime.After(b.now):
		return Concluded{Episode: *e}
	default: // the process gave up by itself
		asked := Analysis{Subject: o.Subject, JobKey: o.JobKey, ElementInstanceKey: o.ElementInstanceKey,
			ProcessInstanceKey: o.ProcessInstanceKey, Failure: &decision.Failure{}}
		body.Outcome, body.State, body.Team = outcomeFailure, Dead, o.Team
		body.DeadLetter = b.identities.Identity(&asked).deadLetterID(e.Number, e.Retries, h.Attempts)
	}
	b.entry(h, o.Subject, OutcomeEntry, body, Happening{Outcome: o})
	return Concluded{Episode: h.Episode, Changed: true}
}

// Refusal is a job whose input was rejected (R11): the audit knows it, the attempts do not.
type Refusal struct {
	// Subject is the zero value, or lacks what the job did not say.
	Subject                    Subject
	Rule                       decision.BusinessRule
	JobKey, ProcessInstanceKey int64
	Rejection                  *decision.Rejection
}

// refusal is a Refusal as the audit keeps it.
type refusal struct {
	Code               decision.RejectionCode `json:"rejection"`
	Message            string                 `json:"message"`
	Rule               decision.BusinessRule  `json:"rule,omitempty"`
	JobKey             int64                  `json:"jobKey,string"`
	ProcessInstanceKey int64                  `json:"processInstanceKey,string"`
}

func (b *batch) reject(r *Refusal, h *History) {
	body := refusal{r.Rejection.Code, storable(RejectionMessage(r.Rejection)), r.Rule, r.JobKey, r.ProcessInstanceKey}
	b.entry(h, r.Subject, RejectionEntry, body, Happening{})
}

// maxFoundBytes of a refused value in a message: what was expected is to be read behind it.
const maxFoundBytes = 300

// RejectionMessage returns one line that says what was refused, with nothing personal in it.
func RejectionMessage(r *decision.Rejection) string {
	clean := *r
	clean.Found = redact.Line(r.Found, maxFoundBytes) // nothing else of it comes from the process
	return clean.Error()
}

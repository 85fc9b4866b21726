package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/redact"
)

// HeldJob is a process that waits at a destination's gate, with its claim. It has made no attempt (R27).
type HeldJob struct {
	JobKey             int64     `json:"jobKey,string"`
	ElementInstanceKey int64     `json:"elementInstanceKey,string"`
	ProcessInstanceKey int64     `json:"processInstanceKey,string"`
	Destination        string    `json:"destination"`
	Since              time.Time `json:"since"`
	// Deadline is the claim's own, Limit the end of the policy's total limit (R20, R29); zero for none.
	Deadline time.Time `json:"deadline,omitzero"`
	Limit    time.Time `json:"limit,omitzero"`
	// Context of the claim, with nothing personal in it.
	Context decision.Context `json:"context,omitempty"`
	// Retries were made, of at most MaxRetries. Team acts if the claim is given up.
	Retries    int64         `json:"retryCount"`
	MaxRetries int64         `json:"maxRetries"`
	Team       decision.Team `json:"responsibleTeam"`
}

// Arrival is a process that asks whether its claim may go.
type Arrival struct {
	Subject                                        Subject
	JobKey, ElementInstanceKey, ProcessInstanceKey int64
	Destination                                    string
	Deadline                                       time.Time
	Context                                        decision.Context
	Policy                                         *decision.Policy
}

// Departure releases a held claim, or gives it up.
type Departure struct {
	Subject Subject
	JobKey  int64
	// Kind and Reason say why it may go. GiveUp is why it is given up; empty if it goes.
	Kind   destination.Kind
	Reason string
	GiveUp decision.Reason
	// Before bounds when it goes; the zero time is no bound.
	Before time.Time
}

// GateAction is what a gate's record is about. The set is closed.
type GateAction string

// The actions.
const (
	GateHeld     GateAction = "held"
	GateReleased GateAction = "released"
	GateGivenUp  GateAction = "given_up"
	GateAnswered GateAction = "answered" // a claim that was let through succeeded, its subject had not failed before
)

// GateBody is the body of a gate's record.
type GateBody struct {
	Action GateAction `json:"action"`
	HeldJob
	Kind   destination.Kind `json:"kind,omitempty"`
	Reason string           `json:"reason,omitempty"`
	// Sent is the claim that was let through and succeeded.
	Sent SentJob `json:"sent,omitzero"`
	// Episode and DeadLetter are those of a claim that was given up, Opens says that the episode is new, GiveUp why.
	Episode    int64           `json:"episode,omitempty"`
	Opens      bool            `json:"opens,omitempty"`
	DeadLetter string          `json:"deadLetterId,omitempty"`
	GiveUp     decision.Reason `json:"giveUp,omitempty"`
	// PossiblyAccepted is of a claim that was given up: an earlier failure left that open (R33).
	PossiblyAccepted bool `json:"possiblyAccepted,omitempty"`
}

// SentJob is a claim that a gate let through and whose outcome it wants to know.
type SentJob struct {
	JobKey      int64     `json:"jobKey,string"`
	Destination string    `json:"destination"`
	At          time.Time `json:"at"`
}

// DepartedJob is a job that a gate let go or gave up.
type DepartedJob struct {
	JobKey int64     `json:"jobKey,string"`
	At     time.Time `json:"at"`
}

const (
	// departedFor is how long a departure is remembered: longer than most outages of an engine, but not for ever, as a
	// wiped broker hands out its keys again.
	departedFor = 3 * time.Hour
	// mostDeparted is how many departures of a subject are remembered.
	mostDeparted = 16
)

// ErrDeparted is why a process is not held: a gate let it go or gave it up. The engine handed its job out twice, or did
// not get the answer.
var ErrDeparted = errors.New("a gate let it go, or gave it up")

// Hold records that a process waits, unless it is recorded already. Its errors are ErrDeparted and those of Analyze.
func (j *Journal) Hold(ctx context.Context, a *Arrival) error {
	return j.submit(ctx, &item{lookup: Lookup{Subject: a.Subject}, apply: func(b *batch, h *History) error {
		return b.hold(a, h)
	}})
}

func (b *batch) hold(a *Arrival, h *History) error {
	if slices.ContainsFunc(h.Departed, func(d DepartedJob) bool { return d.JobKey == a.JobKey && b.now.Sub(d.At) < departedFor }) {
		return ErrDeparted
	}
	if h.held(a.JobKey) >= 0 {
		return nil
	}
	held := HeldJob{JobKey: a.JobKey, ElementInstanceKey: a.ElementInstanceKey, ProcessInstanceKey: a.ProcessInstanceKey,
		Destination: storable(a.Destination), Since: b.milli(), Context: storableContext(a.Context),
		Deadline: a.Deadline.UTC().Truncate(time.Millisecond), MaxRetries: a.Policy.MaxRetries, Team: a.Policy.LimitTeam}
	first := held.Since // for a claim that never failed (R27)
	if e := &h.Episode; e.waits() && !e.abandoned(a.Policy, a.Destination, b.now) {
		first, held.Retries = e.FirstFailure, e.Retries
	}
	held.Limit = a.Policy.TimeLimit(a.Destination, first)
	if d := h.DeadLetter; h.Episode.State == Reprocessing && d != nil { // a person sent it again (R29)
		held.Deadline, held.Limit = d.Review.deadline(held.Deadline, held.Since), ahead(held.Limit, held.Since)
	}
	b.entry(h, a.Subject, GateEntry, &GateBody{Action: GateHeld, HeldJob: held})
	return nil
}

// deadline returns the deadline of a claim that was sent again; own is the one that the process names. The process may
// not know a newer one, and a deadline that was to be missed anyway no longer counts.
func (n *ReviewNote) deadline(own, now time.Time) time.Time {
	switch {
	case !n.Deadline.IsZero():
		return n.Deadline
	case n.Force, !own.After(n.NextRetryTime):
		return ahead(own, now)
	}
	return own
}

// ahead returns t, or the zero time if it has passed.
func ahead(t, now time.Time) time.Time {
	if t.After(now) {
		return t
	}
	return time.Time{}
}

// ErrLate is why a claim does not go: its Departure's Before has passed.
var ErrLate = errors.New("a claim was to go before now")

// Depart records that a held claim goes or is given up, and sends the answer to its process (GateQueue). It reports
// false if the claim is no longer held. Its errors are ErrLate and those of Analyze.
func (j *Journal) Depart(ctx context.Context, d *Departure) (bool, error) {
	return outcomeOf(ctx, j, Lookup{Subject: d.Subject}, func(b *batch, h *History) (bool, error) {
		i := h.held(d.JobKey)
		switch {
		case i < 0: // another process was faster
			return false, nil
		case !d.Before.IsZero() && !b.now.Before(d.Before):
			return false, ErrLate
		}
		b.depart(d, h, h.Held[i])
		return true, nil
	})
}

func (b *batch) depart(d *Departure, h *History, held HeldJob) {
	body := &GateBody{Action: GateReleased, HeldJob: held, Kind: d.Kind, Reason: storable(d.Reason)}
	if d.GiveUp != "" {
		// The count is the subject's (R12): another process may have failed, or recovered, while this one waited.
		body.Action, body.GiveUp, body.Episode, body.Retries = GateGivenUp, d.GiveUp, h.Episode.Number, h.Episode.Retries
		body.PossiblyAccepted = h.PossiblyAccepted
		if !h.Episode.waits() {
			body.Episode, body.Opens, body.Retries = body.Episode+1, true, 0
		}
		asked := Analysis{Subject: d.Subject, JobKey: held.JobKey, ProcessInstanceKey: held.ProcessInstanceKey,
			Failure: &decision.Failure{}}
		body.DeadLetter = b.identities.Identity(&asked).deadLetterID(body.Episode, body.Retries, h.Attempts)
	}
	b.entry(h, d.Subject, GateEntry, body)
	b.changes.Outbox = append(b.changes.Outbox, Message{
		ID: "gate/" + strconv.FormatInt(b.next()-1, 10), Queue: GateQueue, Key: d.Subject.OutboxKey(), Subject: h.Key,
		Type: string(body.Action), Body: string(encoded(&GateAnswer{d.Subject, *body, b.milli()})), At: b.milli()})
}

// GateQueue is the outbox's queue of answers to processes that waited at a gate.
const GateQueue = "gate"

// GateAnswer is the answer to a process that waited at a gate, and when it was recorded.
type GateAnswer struct {
	Subject Subject `json:"subject"`
	GateBody
	At time.Time `json:"at"`
}

// ReadGateAnswer reads a message of GateQueue.
func ReadGateAnswer(m *Message) (a GateAnswer, err error) {
	if err = m.Held(); err != nil {
		return a, err
	}
	if err = json.Unmarshal([]byte(m.Body), &a); err != nil {
		err = fmt.Errorf("read message %d of the queue %s: %w", m.Sequence, m.Queue, err)
	}
	return a, err
}

// ReadSent returns the claim whose success an outcome's or a gate's record reports. Its JobKey is 0 if it passed no
// gate.
func ReadSent(e *Entry) (SentJob, error) {
	b, err := BodyOf[struct {
		Sent SentJob
		Dest string
		At   time.Time
	}](e)
	if b.Sent.JobKey == 0 {
		b.Sent = SentJob{Destination: b.Dest, At: b.At}
	}
	return b.Sent, err
}

// held returns the job's index in s.Held, or -1.
func (s *SubjectState) held(jobKey int64) int {
	return slices.IndexFunc(s.Held, func(j HeldJob) bool { return j.JobKey == jobKey })
}

func (b *GateBody) fold(p *projection, h *History) {
	if b.Action == GateHeld {
		h.Held = append(slices.Clip(h.Held), b.HeldJob)
		return
	}
	if b.Action == GateAnswered {
		h.Sent = nil
		return
	}
	h.Held = slices.DeleteFunc(slices.Clone(h.Held), func(j HeldJob) bool { return j.JobKey == b.JobKey })
	if len(h.Held) == 0 {
		h.Held = nil
	}
	h.depart(b.JobKey, p.at)
	switch {
	case b.Action == GateGivenUp:
		p.giveUp(h, b)
	case b.Kind.Wanted():
		h.Sent = &SentJob{b.JobKey, b.Destination, p.at}
	default: // the next outcome is not of the claim sent before
		h.Sent = nil
	}
}

// depart remembers a departure, and forgets old ones.
func (h *History) depart(jobKey int64, at time.Time) {
	all := slices.DeleteFunc(slices.Clone(h.Departed), func(d DepartedJob) bool { return at.Sub(d.At) >= departedFor })
	all = append(all, DepartedJob{jobKey, at})
	h.Departed = all[max(len(all)-mostDeparted, 0):]
}

// giveUp folds that a claim cannot be sent in time: its episode dies, or a new one begins dead.
func (p *projection) giveUp(h *History, b *GateBody) {
	e := &h.Episode
	if b.Opens {
		ends := Superseded
		if !e.State.Open() {
			ends = ""
		}
		p.begin(h, ends, Episode{Number: b.Episode, OpenedAt: p.at, FirstFailure: b.Since})
	}
	e.ProcessInstanceKey = b.ProcessInstanceKey
	born := DeadLetter{ID: b.DeadLetter, State: DeadLetterOpen, Episode: e.Number, Outcome: decision.MaxRetriesExceeded,
		Reason: b.GiveUp, Team: b.Team, RetryCount: b.Retries, MaxRetries: b.MaxRetries, Destination: b.Destination,
		ProcessInstanceKey: b.ProcessInstanceKey, FirstFailure: e.FirstFailure, Context: b.Context, Deadline: b.Deadline}
	if a := h.Last; a != nil && a.Episode == e.Number {
		born.Fingerprint = a.Fingerprint
	} else if d := h.letter(); d != nil { // nothing has failed since a person sent it again
		born.Fingerprint = d.Fingerprint
	}
	p.die(h, born, true)
}

// DestinationSubject returns the Subject of a destination's records. It has neither tenant nor policy.
func DestinationSubject(name string) Subject { return Subject{ID: name} }

// tells returns what the failure says about the claim's destination, and how long the destination asks to wait.
func (a *Analysis) tells(now time.Time) (destination.Tells, time.Duration) {
	f := a.Failure
	if f.Destination == "" {
		return "", 0
	}
	wait := decision.RetryAfter(f.RetryAfter, a.Error, now)
	return destination.TellsOf(&f.Match, wait), wait
}

// DestinationState is a destination's last recorded State. Version counts the recorded ones.
type DestinationState struct {
	Version int64             `json:"version,omitempty"`
	State   destination.State `json:"state,omitzero"`
	// Read is the last record that State takes in.
	Read int64 `json:"read,omitempty"`
	// Orders are what people ordered and State does not follow yet, the oldest first.
	Orders []DestinationOrder `json:"orders,omitempty"`
}

// DestinationOrder is a person's order and its record.
type DestinationOrder struct {
	Record int64 `json:"record"`
	destination.Order
}

// mostOrders is how many orders are kept until State follows them; older ones are dropped.
const mostOrders = 16

// DestinationBody is the body of a destination's record: a new State, or a person's order.
type DestinationBody struct {
	// Version is State's, one more than the last; 0 where the record has no State.
	Version int64              `json:"version,omitempty"`
	State   *destination.State `json:"state,omitempty"`
	// Read is the last record that State takes in.
	Read int64 `json:"read,omitempty"`
	// Follows is the record of the last order that State follows; 0 if there was none. Later orders are still open.
	Follows int64 `json:"follows,omitempty"`
	// Went is the phase that was left; empty if it did not change.
	Went    destination.Phase  `json:"went,omitempty"`
	Command *destination.Order `json:"command,omitempty"`
}

// ErrStale is why a destination's State was not recorded: another process has recorded one since.
var ErrStale = errors.New("another process has recorded a later state of the destination")

// RecordDestination records a destination's new State or a person's order. It returns ErrStale unless the State's
// version follows the last recorded one. Its other errors are those of Analyze.
func (j *Journal) RecordDestination(ctx context.Context, name string, body DestinationBody) error {
	if c := body.Command; c != nil {
		c.Reason, c.By = storable(redact.Line(c.Reason, maxReasonBytes)), bounded(c.By)
	}
	s := DestinationSubject(name)
	return j.submit(ctx, &item{lookup: Lookup{Subject: s}, apply: func(b *batch, h *History) error {
		if last := cmp.Or(h.Destination, &DestinationState{}); body.State != nil && body.Version != last.Version+1 {
			return ErrStale
		}
		b.entry(h, s, DestinationEntry, &body)
		return nil
	}})
}

// Fold folds a destination's record into d.
func (d *DestinationState) Fold(b *DestinationBody, record int64) {
	if b.State != nil {
		d.Version, d.State, d.Read = b.Version, *b.State, b.Read
		d.Orders = slices.DeleteFunc(slices.Clone(d.Orders), func(o DestinationOrder) bool { return o.Record <= b.Follows })
	}
	if b.Command != nil {
		d.Orders = append(slices.Clone(d.Orders), DestinationOrder{record, *b.Command})
		d.Orders = d.Orders[max(len(d.Orders)-mostOrders, 0):]
	}
}

func (b *DestinationBody) fold(p *projection, h *History) {
	d := *cmp.Or(h.Destination, &DestinationState{})
	d.Fold(b, p.record)
	h.Destination = &d
}

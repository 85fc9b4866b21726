package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/text"
)

// ReviewQueue is the outbox's queue of answers to processes that wait for a review.
const ReviewQueue = "reviews"

// answerType names the messages of ReviewQueue.
const answerType = "DeadLetterAnswer"

// ReviewJob is the job by which a process waits for a review of a dead letter.
type ReviewJob struct {
	Subject    Subject
	DeadLetter string
	// JobKey is the engine's, above 0; ProcessInstanceKey is that of the process that waits, 0 where it is not known.
	JobKey, ProcessInstanceKey int64
	// Accepts tells that the process takes the answer accepted.
	Accepts bool
}

// Answer is what a process is told about its dead letter: the body of a message in ReviewQueue.
type Answer struct {
	// Sequence of the message in the outbox.
	Sequence int64 `json:"-"`
	// Record tells the answers about one dead letter apart: the number of the record that was written with it.
	Record     int64  `json:"record"`
	Tenant     string `json:"tenant"`
	Policy     string `json:"policy"`
	SubjectID  string `json:"subjectId"`
	DeadLetter string `json:"deadLetterId"`
	// JobKey of the job to be completed, and the process instance that it is of; 0 where that is not known.
	JobKey             int64 `json:"jobKey,string"`
	ProcessInstanceKey int64 `json:"processInstanceKey,string"`
	// Decision is reprocess or discard.
	Decision string `json:"decision"`
	// Variables to complete the job with, a JSON object in the contract's words.
	Variables json.RawMessage `json:"variables"`
}

// Subject of the dead letter.
func (a *Answer) Subject() Subject {
	return Subject{Tenant: a.Tenant, Policy: a.Policy, ID: a.SubjectID}
}

// ReadAnswer is the answer that a message of ReviewQueue holds.
func ReadAnswer(m *Message) (*Answer, error) {
	a := &Answer{}
	if err := json.Unmarshal([]byte(m.Body), a); err != nil {
		return nil, fmt.Errorf("read the answer to a review (message %d): %w", m.Sequence, err)
	}
	a.Sequence = m.Sequence
	return a, nil
}

// The decisions of an answer.
const (
	answerReprocess = "reprocess"
	answerDiscard   = "discard"
	answerAccepted  = "accepted"
)

// What a process is told that nobody decides on any more: it must not wait for ever. Hospital staff read it.
const (
	settledBy        = "retry-worker"
	reasonRecovered  = "Encerrado automaticamente: um reenvio já teve sucesso"
	reasonSuperseded = "Encerrado automaticamente: outra falha mais recente tomou o lugar desta"
	reasonAccepted   = "Encerrado automaticamente: já consta do outro lado"
	reasonExpired    = "Encerrado automaticamente: o prazo de guarda dos registros terminou sem decisão"
)

// variables of an answer; those of a retry are only where there is one.
type variables struct {
	Decision string `json:"reviewDecision"`
	Reason   string `json:"reviewReason"`
	By       string `json:"reviewedBy"`
	Protocol string `json:"protocolNumber,omitempty"`
	*resumption
}

type resumption struct {
	ShouldRetry     bool      `json:"shouldRetry"`
	RetryCount      int64     `json:"retryCount"`
	NextRetryTime   string    `json:"nextRetryTime"`
	BackoffMinutes  int64     `json:"backoffMinutes"`
	BackoffDuration string    `json:"backoffDuration"`
	Deadline        time.Time `json:"submissionDeadline,omitzero"`
}

// Waits reports whether a process waits for a decision, as far as is known.
func (d *DeadLetter) Waits() bool { return d.ReviewJobKey != 0 && d.Delivery != DeliveryNobody }

// Answer returns the message that tells a process, at that instant, what became of its dead letter.
func (k *KeyedDeadLetter) Answer(at time.Time) Message {
	d, s := &k.DeadLetter, &k.Subject
	v := d.variables(at)
	a := Answer{Record: d.Answer, Tenant: s.Tenant, Policy: s.Policy, SubjectID: s.ID, DeadLetter: d.ID,
		JobKey: d.ReviewJobKey, ProcessInstanceKey: cmp.Or(d.ReviewProcess, d.ProcessInstanceKey),
		Decision: v.Decision, Variables: encoded(v)}
	return Message{ID: d.ID + "/" + strconv.FormatInt(d.Answer, 10), Queue: ReviewQueue,
		Key: s.OutboxKey(), Subject: k.Key, Type: answerType, Body: string(encoded(a)), At: at}
}

// variables that the process goes on with. How long a retry lies ahead is told in whole seconds.
func (d *DeadLetter) variables(now time.Time) variables {
	note := &d.Review
	v := variables{Decision: answerDiscard, Reason: note.Reason, By: note.By}
	switch d.State {
	case DeadLetterDiscarded:
		if !note.Discard { // by nobody
			v.Reason, v.By = reasonExpired, settledBy
		}
	case DeadLetterAccepted:
		if d.Accepts {
			v.Decision = answerAccepted
		}
		if a := note.Accepted; a != nil {
			v.Protocol = a.Protocol
		} else { // by nobody
			v.Reason, v.By = reasonAccepted, settledBy
		}
	case DeadLetterRecovered:
		v.Reason, v.By = reasonRecovered, settledBy
	case DeadLetterSuperseded:
		v.Reason, v.By = reasonSuperseded, settledBy
	case DeadLetterReprocessing:
		v.Decision = answerReprocess
		delay := (max(note.NextRetryTime.Sub(now), 0) + time.Second - 1).Truncate(time.Second)
		v.resumption = &resumption{ShouldRetry: true, RetryCount: d.retries(note.Fresh),
			NextRetryTime:  decision.Instant(note.NextRetryTime),
			BackoffMinutes: decision.Minutes(delay), BackoffDuration: text.ISODuration(delay),
			Deadline: note.Deadline}
	}
	return v
}

// encoded returns v as JSON.
func encoded(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil { // cannot be: plain structs
		return json.RawMessage("{}")
	}
	return text
}

// ReviewSeen records that the review job of a dead letter came, where that is not known. Where the dead letter is open no
// more, the process gets its answer: what was decided, or that nobody decides any longer. It returns the dead letter as it
// stands then; its Delivery is pending where an answer is on its way. It returns as Analyze does, or with
// ErrDeadLetterUnknown.
func (j *Journal) ReviewSeen(ctx context.Context, r *ReviewJob) (DeadLetter, error) {
	asked := Lookup{Subject: r.Subject, DeadLetter: r.DeadLetter}
	return outcomeOf(ctx, j, asked, func(b *batch, h *History) (DeadLetter, error) { return b.seen(r, h) })
}

func (b *batch) seen(r *ReviewJob, h *History) (DeadLetter, error) {
	if h.DeadLetter == nil || h.DeadLetter.ID != r.DeadLetter {
		return DeadLetter{}, ErrDeadLetterUnknown
	}
	d := h.DeadLetter
	body := &deliveryBody{Delivery: deliveryWaiting, DeadLetter: d.ID, State: d.State, Episode: d.Episode,
		JobKey: r.JobKey, Accepts: r.Accepts}
	if r.ProcessInstanceKey != d.ProcessInstanceKey {
		body.Process = r.ProcessInstanceKey
	}
	switch {
	case d.State != DeadLetterOpen && d.Answer == 0: // otherwise one is on its way
		b.answerAgain(r.Subject, h, body)
	case d.ReviewJobKey != r.JobKey, d.State == DeadLetterOpen && d.Delivery != DeliveryNone: // somebody waits who did not
		b.entry(h, r.Subject, DeliveryEntry, body, Happening{})
	}
	return *d, nil
}

// answerAgain sends the answer to the job that is known now. That it is sent is a record of its own.
func (b *batch) answerAgain(s Subject, h *History, body *deliveryBody) {
	d := h.DeadLetter
	body.Delivery, body.Decision = DeliveryPending, d.variables(b.now).Decision
	b.entry(h, s, DeliveryEntry, body, Happening{})
}

// deliveryWaiting is the Delivery of a record that tells that a process waits, with a job that was not known.
const deliveryWaiting Delivery = "waiting"

// deliveryBody is what is known of the process that waits, and of the answer to it.
type deliveryBody struct {
	Delivery   Delivery        `json:"delivery"`
	DeadLetter string          `json:"deadLetterId"`
	Decision   string          `json:"decision,omitempty"`
	State      DeadLetterState `json:"state"`
	Episode    int64           `json:"episode"`
	JobKey     int64           `json:"jobKey,string"`
	// Process is the instance that waits, where it is another than the one that was told of the dead letter.
	Process int64 `json:"processInstanceKey,string,omitempty"`
	Accepts bool  `json:"accepts,omitempty"`
	// Taken tells that the answer before, which goes to another job, was taken.
	Taken bool `json:"taken,omitempty"`
}

// Delivered records that the process took an answer, or that the engine knows no process that waits for it, and lets go
// of the answer's message. What was sent again and found nobody is open again. It may be called again, and late: an
// answer that is not the last one changes nothing. It returns as Analyze does.
func (j *Journal) Delivered(ctx context.Context, a *Answer, taken bool) error {
	return j.submit(ctx, &item{
		lookup: Lookup{Subject: a.Subject(), DeadLetter: a.DeadLetter},
		apply: func(b *batch, h *History) error {
			d := h.DeadLetter
			known := d != nil && d.ID == a.DeadLetter
			if known && d.Answer != a.Record { // what is not the last one was let go of
				return nil
			}
			if b.changes.Published = append(b.changes.Published, a.Sequence); known {
				b.delivered(a, h, taken)
			}
			return nil
		},
	})
}

func (b *batch) delivered(a *Answer, h *History, taken bool) {
	d := h.DeadLetter
	body := &deliveryBody{Delivery: DeliveryTaken, DeadLetter: d.ID, Decision: a.Decision, State: d.State,
		Episode: d.Episode, JobKey: d.ReviewJobKey, Process: d.ReviewProcess, Accepts: d.Accepts}
	answered := d.Delivery == DeliveryTaken // before: whoever asked again may be gone
	switch {
	case d.ReviewJobKey != a.JobKey: // another job came meanwhile, and waits still
		body.Taken = taken
		b.answerAgain(a.Subject(), h, body)
		return
	case !taken && !answered:
		body.Delivery = DeliveryNobody
		if d.State == DeadLetterReprocessing && h.Episode.State == Reprocessing && h.Episode.DeadLetter == d.ID {
			body.State = DeadLetterOpen // again
		}
	}
	b.entry(h, a.Subject(), DeliveryEntry, body, Happening{})
}

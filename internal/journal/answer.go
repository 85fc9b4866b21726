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

// ReviewJob is the job by which a process waits for a review of a dead letter.
type ReviewJob struct {
	Subject    Subject
	DeadLetter string
	// JobKey is the engine's, above 0. ProcessInstanceKey is the waiting process's; 0 where it is not known.
	JobKey, ProcessInstanceKey int64
	// Accepts reports whether the process understands the answer "accepted".
	Accepts bool
}

// Answer is what a process is told about its dead letter: the body of a message in ReviewQueue.
type Answer struct {
	// Sequence of the message in the outbox.
	Sequence int64 `json:"-"`
	// Record is the number of the record that was written with the answer. It tells answers about one dead letter
	// apart.
	Record     int64   `json:"record"`
	Subject    Subject `json:"subject"`
	DeadLetter string  `json:"deadLetterId"`
	// JobKey is the job to complete, ProcessInstanceKey its process instance; 0 where that is not known.
	JobKey             int64 `json:"jobKey,string"`
	ProcessInstanceKey int64 `json:"processInstanceKey,string"`
	// Decision is reprocess, discard or accepted.
	Decision string `json:"decision"`
	// Variables to complete the job with, a JSON object in the contract's words.
	Variables json.RawMessage `json:"variables"`
}

// ReadAnswer returns the answer that a message of ReviewQueue holds.
func ReadAnswer(m *Message) (*Answer, error) {
	a := &Answer{}
	if err := json.Unmarshal([]byte(m.Body), a); err != nil {
		return nil, fmt.Errorf("read the answer to a review (message %d): %w", m.Sequence, err)
	}
	a.Sequence = m.Sequence
	return a, nil
}

// SettledBy is the name by which the worker itself settles a dead letter or undoes a decision.
const SettledBy = "retry-worker"

// settledReasons are the texts for a process whose dead letter was settled without a person. Hospital staff read them.
var settledReasons = map[DeadLetterState]string{
	DeadLetterRecovered:  "Encerrado automaticamente: um reenvio já teve sucesso",
	DeadLetterSuperseded: "Encerrado automaticamente: outra falha mais recente tomou o lugar desta",
	DeadLetterAccepted:   "Encerrado automaticamente: já consta do outro lado",
	DeadLetterDiscarded:  "Encerrado automaticamente: o prazo de guarda dos registros terminou sem decisão",
}

// variables are those of an answer; resumption is nil unless the process retries.
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

// AnswerMessage returns the message that tells a process what became of its dead letter, as of an instant.
func (d *DeadLetter) AnswerMessage(at time.Time) Message {
	v := d.variables(at)
	a := Answer{Record: d.Answer, Subject: d.Subject, DeadLetter: d.ID,
		JobKey: d.ReviewJobKey, ProcessInstanceKey: cmp.Or(d.ReviewProcess, d.ProcessInstanceKey),
		Decision: v.Decision, Variables: encoded(v)}
	return Message{ID: d.ID + "/" + strconv.FormatInt(d.Answer, 10), Queue: ReviewQueue,
		Key: d.Subject.OutboxKey(), Subject: d.Key, Type: "DeadLetterAnswer", Body: string(encoded(a)), At: at}
}

// variables returns what the process goes on with. The wait until a retry is rounded up to whole seconds.
func (d *DeadLetter) variables(now time.Time) variables {
	note := &d.Review
	v := variables{Decision: "discard", Reason: note.Reason, By: note.By}
	switch {
	case d.State == DeadLetterReprocessing:
		v.Decision = "reprocess"
		delay := (max(note.NextRetryTime.Sub(now), 0) + time.Second - 1).Truncate(time.Second)
		v.resumption = &resumption{ShouldRetry: true, RetryCount: d.retries(note.Fresh),
			NextRetryTime:  decision.Instant(note.NextRetryTime),
			BackoffMinutes: decision.Minutes(delay), BackoffDuration: text.ISODuration(delay),
			Deadline: note.Deadline}
		return v
	case d.State == DeadLetterAccepted && note.Accepted != nil:
		v.Protocol = note.Accepted.Protocol
	case d.State != DeadLetterDiscarded || !note.Discard: // by nobody
		v.Reason, v.By = settledReasons[d.State], SettledBy
	}
	if d.State == DeadLetterAccepted && d.Accepts {
		v.Decision = "accepted"
	}
	return v
}

// encoded returns v as JSON.
func encoded(v any) json.RawMessage {
	text, _ := json.Marshal(v) // plain structs cannot fail
	return text
}

// ReviewSeen records the review job of a dead letter, unless it is recorded already. If the dead letter is no longer
// open, the process is sent the decision, or that nobody will decide. It returns the dead letter as it stands then; its
// Delivery is pending while an answer is on its way. Its errors are those of Analyze and ErrDeadLetterUnknown.
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
	case d.State != DeadLetterOpen && d.Answer == 0: // otherwise an answer is on its way
		b.answerAgain(r.Subject, h, body)
	case d.ReviewJobKey != r.JobKey, d.State == DeadLetterOpen && d.Delivery != DeliveryNone: // newly waits
		b.entry(h, r.Subject, DeliveryEntry, body)
	}
	return *d, nil
}

// answerAgain records an answer to the job that waits now, and sends it.
func (b *batch) answerAgain(s Subject, h *History, body *deliveryBody) {
	d := h.DeadLetter
	body.Delivery, body.Decision = DeliveryPending, d.variables(b.now).Decision
	b.entry(h, s, DeliveryEntry, body)
}

// deliveryWaiting is the Delivery of a record that says that a process waits, by a job that was not known before.
const deliveryWaiting Delivery = "waiting"

// deliveryBody is what is known of the process that waits, and of the answer to it.
type deliveryBody struct {
	Delivery   Delivery        `json:"delivery"`
	DeadLetter string          `json:"deadLetterId"`
	Decision   string          `json:"decision,omitempty"`
	State      DeadLetterState `json:"state"`
	Episode    int64           `json:"episode"`
	JobKey     int64           `json:"jobKey,string"`
	// Process is the waiting process instance, where it is not the dead letter's own.
	Process int64 `json:"processInstanceKey,string,omitempty"`
	Accepts bool  `json:"accepts,omitempty"`
	// Taken reports whether the previous answer, to another job, was taken.
	Taken bool `json:"taken,omitempty"`
}

// Delivered records that the process took an answer, or that no process waits for it, and removes the answer's message.
// A dead letter that was sent again to nobody is open again. Delivered may be called late, and more than once: only the
// latest answer changes anything. Its errors are those of Analyze.
func (j *Journal) Delivered(ctx context.Context, a *Answer, taken bool) error {
	return j.submit(ctx, &item{
		lookup: Lookup{Subject: a.Subject, DeadLetter: a.DeadLetter},
		apply: func(b *batch, h *History) error {
			d := h.DeadLetter
			known := d != nil && d.ID == a.DeadLetter
			if known && d.Answer != a.Record { // an older answer's message is removed already
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
	answered := d.Delivery == DeliveryTaken // an earlier answer: a job that asked again may be gone
	switch {
	case d.ReviewJobKey != a.JobKey: // another job has come meanwhile, and waits
		body.Taken = taken
		b.answerAgain(a.Subject, h, body)
		return
	case !taken && !answered:
		body.Delivery = DeliveryNobody
		if d.State == DeadLetterReprocessing && h.Episode.State == Reprocessing && h.Episode.DeadLetter == d.ID {
			body.State = DeadLetterOpen // again
		}
	}
	b.entry(h, a.Subject, DeliveryEntry, body)
}

// Package events tells other systems what the journal recorded: as CloudEvents, over NATS JetStream.
//
// events.go and the files beside it are pure: what was recorded in, messages of the outbox out. nats.go sends them.
package events

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Queue is the outbox's queue of what Publisher makes.
const Queue = "events"

// The types of events of the contract that are no decision's; those are named by decision.Event.
const (
	AuditRecorded      = "AuditRecorded"
	RetryRecovered     = "RetryRecovered"
	DeadLetterReviewed = "DeadLetterReviewed"
)

// Subjects of NATS.
const (
	auditSubject  = "retry.audit"
	eventSubjects = "retry.events."
)

// Subject of NATS that events of a type are sent to.
func Subject(eventType string) string {
	if eventType == AuditRecorded {
		return auditSubject
	}
	return eventSubjects + eventType
}

// envelope is a CloudEvent 1.0 in the JSON format. tenant, policy and digest are extension attributes: consumers
// can route and filter by them without reading the data, which is the document's own.
type envelope struct {
	SpecVersion     string `json:"specversion"`
	ID              string `json:"id"`
	Source          string `json:"source"`
	Type            string `json:"type"`
	Subject         string `json:"subject,omitempty"`
	Time            string `json:"time"`
	DataContentType string `json:"datacontenttype"`
	Tenant          string `json:"tenant,omitempty"`
	Policy          string `json:"policy,omitempty"`
	// Digest of the record, as the ledger has it; of AuditRecorded only.
	Digest string `json:"digest,omitempty"`
	Data   any    `json:"data"`
}

// Publisher makes the outbox's messages of what is recorded: the domain event, if it is one, then AuditRecorded.
// source is the CloudEvents source, a URI reference that is not empty, such as /retry-worker. Like every
// journal.Publisher the result is pure, and safe for concurrent use.
//
// An event's id is a name-based UUID over the record's digest and the event's type: the same record has the same,
// whoever makes the message and however often it is sent. A re-based decision is recorded and audited, and no
// event again: counters and domain events are of fresh decisions only (R16).
func Publisher(source string) journal.Publisher {
	return func(h *journal.Happening) []journal.Message {
		at := instantOf(h)
		messages := make([]journal.Message, 0, 2)
		if name, data := domainEvent(h); data != nil {
			messages = append(messages, message(source, h, name, at, data))
		}
		return append(messages, message(source, h, AuditRecorded, at, auditRecord(h)))
	}
}

// instantOf what happened: of the decision, or of the entry.
func instantOf(h *journal.Happening) time.Time {
	if h.Attempt != nil {
		return h.Attempt.Decision.AnalysedAt
	}
	return h.Entry.At
}

func message(source string, h *journal.Happening, eventType string, at time.Time, data any) journal.Message {
	e := envelope{
		SpecVersion: "1.0", ID: idOf(h.Digest, eventType), Source: source, Type: eventType, Subject: h.Subject.ID,
		Time: decision.Instant(at), DataContentType: "application/json", Tenant: h.Subject.Tenant, Policy: h.Subject.Policy, Data: data,
	}
	if eventType == AuditRecorded {
		e.Digest = h.Digest.String()
	}
	return journal.Message{ID: e.ID, Queue: Queue, Key: keyOf(h.Subject), Type: eventType, Body: encode(&e), At: at}
}

// keyOf a subject: its events are kept in order.
func keyOf(s journal.Subject) string { return s.Tenant + "/" + s.Policy + "/" + s.ID }

// idSpace is the name space of event ids; changing it changes every id.
var idSpace = uuid.MustParse("0b7d5c39-6a0e-4d0a-9a63-2f1c8f6f4e57")

func idOf(d journal.Digest, eventType string) string {
	name := make([]byte, 0, len(d)+len(eventType))
	return uuid.NewSHA1(idSpace, append(append(name, d[:]...), eventType...)).String()
}

func encode(e *envelope) string {
	var b bytes.Buffer
	b.Grow(1536) // most are smaller
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	if err := to.Encode(e); err != nil { // cannot be: its data are plain structs and checked JSON
		return ""
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// Package events tells other systems what the journal recorded: as CloudEvents, over NATS JetStream.
//
// events.go and domain.go are pure: they turn records into messages of the outbox. nats.go sends them.
package events

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

// Queue is the outbox's queue of events.
const Queue = "events"

// Source is the CloudEvents source of a worker's events.
const Source = "/retry-worker"

// The contract's types of events, except those of decisions, which decision.Event names.
const (
	AuditRecorded      = "AuditRecorded"
	RetryRecovered     = "RetryRecovered"
	DeadLetterReviewed = "DeadLetterReviewed"
	DestinationDown    = "DestinationDown"
	DestinationUp      = "DestinationUp"
)

// Subjects of NATS.
const (
	auditSubject  = "retry.audit"
	eventSubjects = "retry.events."
)

// Subject returns the NATS subject for events of a type.
func Subject(eventType string) string {
	if eventType == AuditRecorded {
		return auditSubject
	}
	return eventSubjects + eventType
}

// Publisher returns a journal.Publisher that makes a record's domain event, if it has one, and AuditRecorded. source is
// the CloudEvents source, a URI reference that is not empty, such as /retry-worker. label returns a destination's name
// in events, from a closed set. The result is safe for concurrent use.
//
// An event's id is a name-based UUID over the record's digest and the event's type, so that a repeated event has the
// same id. A re-based decision makes no domain event, as counters and domain events are about fresh decisions (R16),
// unless it ends its episode because the retry can no longer be made in time (R20).
func Publisher(source string, label func(destination string) string) journal.Publisher {
	return func(h *journal.Happening) []journal.Message {
		key := h.Subject.OutboxKey()
		h = withCleanID(h)
		subject := h.Subject.ID
		kind, data := domainEvent(h)
		if data == nil {
			if kind, data = destinationEvent(h, label); data != nil {
				subject = label(subject)
			}
		}
		messages := []journal.Message{message(source, h, key, h.Subject.ID, AuditRecorded, auditRecord(h))}
		if data != nil {
			messages = slices.Insert(messages, 0, message(source, h, key, subject, kind, data))
		}
		return messages
	}
}

// withCleanID returns h, or a copy with the subject's id redacted if it holds something personal, which a policy's
// pattern may allow.
func withCleanID(h *journal.Happening) *journal.Happening {
	id := clean(h.Subject.ID)
	if id == h.Subject.ID {
		return h
	}
	copied := *h
	copied.Subject.ID = id
	if h.Attempt != nil {
		copied.Attempt = new(*h.Attempt)
		copied.Attempt.Decision.SubjectID = id
	}
	if h.Entry != nil {
		copied.Entry = new(*h.Entry)
		copied.Entry.Subject.ID = id
	}
	return &copied
}

// instantOf returns when the decision was made, or the entry recorded.
func instantOf(h *journal.Happening) time.Time {
	if h.Attempt != nil {
		return h.Attempt.Decision.AnalysedAt
	}
	return h.Entry.At
}

// cloudEvent is an event of CloudEvents 1.0. Tenant, Policy and Digest are extension attributes, by which consumers can
// route, filter and check without reading Data. No attribute is empty.
type cloudEvent struct {
	SpecVersion     string `json:"specversion"`
	ID              string `json:"id"`
	Source          string `json:"source"`
	Type            string `json:"type"`
	Subject         string `json:"subject,omitempty"`
	Time            string `json:"time"`
	DataContentType string `json:"datacontenttype"`
	Tenant          string `json:"tenant,omitempty"`
	Policy          string `json:"policy,omitempty"`
	// Digest is an AuditRecorded's digest of the record in the ledger.
	Digest string `json:"digest,omitempty"`
	Data   any    `json:"data"`
}

func message(source string, h *journal.Happening, key, subject, eventType string, data any) journal.Message {
	e := cloudEvent{SpecVersion: "1.0", ID: idOf(h.Digest, eventType), Source: source, Type: eventType, Subject: subject,
		Time: decision.Instant(instantOf(h)), DataContentType: "application/json",
		Tenant: h.Subject.Tenant, Policy: h.Subject.Policy, Data: data}
	if eventType == AuditRecorded {
		e.Digest = h.Digest.String()
	}
	return journal.Message{ID: e.ID, Queue: Queue, Key: key, Type: eventType, Body: string(text.JSON(e)),
		At: instantOf(h)}
}

// idSpace is the name space of event ids; changing it changes every id.
var idSpace = uuid.MustParse("0b7d5c39-6a0e-4d0a-9a63-2f1c8f6f4e57")

func idOf(d journal.Digest, eventType string) string {
	return uuid.NewSHA1(idSpace, append(d[:], eventType...)).String()
}

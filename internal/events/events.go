// Package events tells other systems what the journal recorded: as CloudEvents, over NATS JetStream.
//
// events.go and the files beside it are pure: what was recorded in, messages of the outbox out. nats.go sends them.
package events

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

// Queue is the outbox's queue of what Publisher makes.
const Queue = "events"

// Source is where the events of a worker say they come from.
const Source = "/retry-worker"

// The types of events of the contract that are no decision's; those are named by decision.Event.
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

// Subject of NATS that events of a type are sent to.
func Subject(eventType string) string {
	if eventType == AuditRecorded {
		return auditSubject
	}
	return eventSubjects + eventType
}

// Publisher makes the outbox's messages of what is recorded: the domain event, if it is one, then AuditRecorded.
// source is the CloudEvents source, a URI reference that is not empty, such as /retry-worker; label returns the names
// by which domain events know destinations, of a closed set. Like every journal.Publisher the result is safe for
// concurrent use.
//
// An event's id is a name-based UUID over the record's digest and the event's type: the same record has the same,
// whoever makes the message and however often it is sent. A re-based decision is recorded and audited, and no
// event again, for counters and domain events are of fresh decisions only (R16): unless it ends its episode, because
// the retry can no longer be made in time (R20).
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

// withCleanID returns h, or a copy of it where its subject's id holds something personal, which a policy's pattern may let
// in.
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

// instantOf what happened: of the decision, or of the entry.
func instantOf(h *journal.Happening) time.Time {
	if h.Attempt != nil {
		return h.Attempt.Decision.AnalysedAt
	}
	return h.Entry.At
}

// cloudEvent is an event by CloudEvents 1.0. Tenant, Policy and Digest are extension attributes: consumers can route,
// filter and check by them without reading the data, which are the documents' own. An attribute is never empty.
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
	// Digest of an audited record, as the ledger has it.
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

// Package events tells other systems what the journal recorded: as CloudEvents, over NATS JetStream.
//
// events.go and the files beside it are pure: what was recorded in, messages of the outbox out. nats.go sends them.
package events

import (
	"time"

	"github.com/google/uuid"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
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
		at, key := instantOf(h), keyOf(h.Subject)
		h = withCleanID(h)
		e := envelope{source: source, h: h, at: at, time: decision.Instant(at), key: key, room: make(object, 0, roomFor)}
		messages := make([]journal.Message, 0, 2)
		if name, data := domainEvent(h); data != nil {
			messages = append(messages, e.message(name, data))
		} else if name, data := destinationEvent(h); data != nil {
			of := *h
			of.Subject.ID = label(h.Subject.ID)
			e.h = &of
			messages = append(messages, e.message(name, data))
			e.h = h
		}
		return append(messages, e.message(AuditRecorded, auditRecord))
	}
}

// withCleanID is h, or a copy of it where its subject's id holds something personal, which a policy's pattern may let
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
	return &copied
}

// instantOf what happened: of the decision, or of the entry.
func instantOf(h *journal.Happening) time.Time {
	if h.Attempt != nil {
		return h.Attempt.Decision.AnalysedAt
	}
	return h.Entry.At
}

// roomFor most events; longer ones cost a copy.
const roomFor = 2048

// data appends what an event says, a JSON object.
type data func(o object, h *journal.Happening) object

// envelope is what the events of one happening have in common: the attributes of CloudEvents 1.0. tenant, policy and
// digest are extension attributes: consumers can route, filter and check by them without reading the data, which
// are the documents' own.
type envelope struct {
	source    string
	h         *journal.Happening
	at        time.Time
	time, key string
	room      object // to write in, again and again
}

func (e *envelope) message(eventType string, says data) journal.Message {
	id := idOf(e.h.Digest, eventType)
	o := append(e.room[:0], '{').
		text("specversion", "1.0").text("id", id).text("source", e.source).text("type", eventType)
	s := e.h.Subject
	for _, attribute := range [...][2]string{{"subject", s.ID}, {"time", e.time}, {"datacontenttype", "application/json"},
		{"tenant", s.Tenant}, {"policy", s.Policy}} {
		if attribute[1] != "" { // an attribute is never empty
			o = o.text(attribute[0], attribute[1])
		}
	}
	if eventType == AuditRecorded {
		o = o.digest("digest", e.h.Digest) // of the record, as the ledger has it
	}
	o = append(says(o.name("data"), e.h), '}')
	return journal.Message{ID: id, Queue: Queue, Key: e.key, Type: eventType, Body: string(o), At: e.at}
}

// keyOf a subject: its events are kept in order.
func keyOf(s journal.Subject) string { return s.Tenant + "/" + s.Policy + "/" + s.ID }

// idSpace is the name space of event ids; changing it changes every id.
var idSpace = uuid.MustParse("0b7d5c39-6a0e-4d0a-9a63-2f1c8f6f4e57")

func idOf(d journal.Digest, eventType string) string {
	name := make([]byte, 0, len(d)+len(eventType))
	return uuid.NewSHA1(idSpace, append(append(name, d[:]...), eventType...)).String()
}

// Package events tells other systems what the journal recorded: as CloudEvents, over NATS JetStream.
//
// events.go is pure: it turns records into messages of the outbox. nats.go sends them.
package events

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
	"retry-worker/internal/text"
)

// Queue is the outbox's queue of events.
const Queue = "events"

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

// Publisher returns a journal.Publisher that makes a record's domain event, if it has one, and AuditRecorded. label
// returns a destination's name in events, from a closed set. The result is safe for concurrent use.
//
// An event's id is a name-based UUID over the record's digest and the event's type, so that a repeated event has the
// same id. A re-based decision makes no domain event, as counters and domain events are about fresh decisions (R16),
// unless it ends its episode because the retry can no longer be made in time (R20).
func Publisher(label func(destination string) string) journal.Publisher {
	return func(h *journal.Happening) (all []journal.Message) {
		id := clean(h.Subject.ID) // a policy's pattern may allow something personal
		if kind, data := domainEvent(h); data != nil {
			data["claimId"] = id
			all = append(all, message(h, id, kind, data))
		} else if kind, data := destinationEvent(h, label); data != nil {
			all = append(all, message(h, label(h.Subject.ID), kind, data))
		}
		return append(all, message(h, id, AuditRecorded, auditRecord(h, id)))
	}
}

// instantOf returns when the decision was made, or the entry recorded.
func instantOf(h *journal.Happening) time.Time {
	if h.Attempt != nil {
		return h.Attempt.Decision.AnalysedAt
	}
	return h.At
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

func message(h *journal.Happening, subject, eventType string, data any) journal.Message {
	e := cloudEvent{SpecVersion: "1.0", ID: idOf(h.Digest(), eventType), Source: "/retry-worker", Type: eventType,
		Subject: subject, Time: decision.Instant(instantOf(h)), DataContentType: "application/json",
		Tenant: h.Subject.Tenant, Policy: h.Subject.Policy, Data: data}
	if eventType == AuditRecorded {
		e.Digest = h.Digest().String()
	}
	return journal.Message{ID: e.ID, Queue: Queue, Key: h.Subject.OutboxKey(), Type: eventType, Body: string(text.JSON(e)),
		At: instantOf(h)}
}

// idSpace is the name space of event ids; changing it changes every id.
var idSpace = uuid.MustParse("0b7d5c39-6a0e-4d0a-9a63-2f1c8f6f4e57")

func idOf(d journal.Digest, eventType string) string {
	return uuid.NewSHA1(idSpace, append(d[:], eventType...)).String()
}

// domainEvent returns the domain event of h, to which the claim's id is added; data is nil if there is none.
func domainEvent(h *journal.Happening) (name string, data object) {
	switch {
	case h.Attempt != nil && h.Attempt.Revision > 0 && !endsEpisode(h):
		return "", nil
	case h.Attempt != nil:
		e := h.Attempt.Decision.Event(h.Attempt.Rule, h.Attempt.Error)
		if e == nil {
			return "", nil
		}
		return e.Type, e.Fields
	case h.Recovered():
		return RetryRecovered, recovered(h)
	case h.Kind == journal.ReviewEntry:
		if b, err := journal.BodyOf[journal.ReviewBody](&h.Entry); err == nil {
			return DeadLetterReviewed, reviewed(h, &b)
		}
	case h.Kind == journal.GateEntry:
		b, err := journal.BodyOf[journal.GateBody](&h.Entry)
		if err == nil && b.Action == journal.GateGivenUp { // no attempt (R27): no error, and only the earlier retries
			e := decision.Exceeded(h.Subject.ID, "", b.Retries, h.Episode.FirstFailure, h.At)
			e.Fields["possiblyAccepted"] = b.PossiblyAccepted
			return e.Type, e.Fields
		}
	}
	return "", nil
}

// endsEpisode reports whether the attempt gives up its episode, of which an earlier revision announced a retry (R20).
func endsEpisode(h *journal.Happening) bool {
	return h.Attempt.DeadLetter != "" && h.Attempt.DeadLetter == h.Episode.DeadLetter
}

// recovered returns the data of an episode's success. The rules have no such event; its names are ours.
func recovered(h *journal.Happening) object {
	e := &h.Episode
	return object{"episode": e.Number, "retryCount": e.Retries,
		"firstFailure": decision.Instant(e.FirstFailure), "recoveredAt": decision.Instant(e.ClosedAt),
		"duration": text.ISODuration(e.ClosedAt.Sub(e.FirstFailure))}
}

// reviewed returns the data of a person's decision, in the words that the process gets. nextRetryTime is null if the
// dead letter is closed.
func reviewed(h *journal.Happening, b *journal.ReviewBody) object {
	verdict, next := "reprocess", decision.Instant(h.Episode.NextRetryTime)
	var protocol *string
	switch {
	case b.Decision == journal.DeadLetterDiscarded:
		verdict, next = "discard", ""
	case b.Accepted != nil:
		verdict, next, protocol = "accepted", "", journal.OrNull(b.Accepted.Protocol)
	}
	return object{"deadLetterId": b.DeadLetter, "reviewDecision": verdict, "protocolNumber": protocol,
		"reviewReason": clean(b.Reason), "reviewedBy": clean(b.By), "retryCount": h.Episode.Retries,
		"episode": h.Episode.Number, "nextRetryTime": journal.OrNull(next),
		"submissionDeadline": journal.InstantOrNull(b.Deadline), "reviewedAt": decision.Instant(h.At)}
}

// destinationEvent returns the event of the begin or end of an outage; data is nil if h is neither.
func destinationEvent(h *journal.Happening, label func(string) string) (name string, data object) {
	if h.Kind != journal.DestinationEntry {
		return "", nil
	}
	b, err := journal.BodyOf[journal.DestinationBody](&h.Entry)
	if err != nil || b.State == nil || b.Went == "" {
		return "", nil
	}
	of, now, outage := label(h.Subject.ID), b.State, &b.State.Outage
	switch {
	case b.Went == destination.Up && now.Phase != destination.Ramping: // a person may order a ramp
		return DestinationDown, object{"destination": of, "cause": outage.Cause,
			"since": decision.Instant(outage.Since), "failed": outage.Failed, "admitted": outage.Admitted}
	case b.Went != destination.Up && now.Phase == destination.Up:
		return DestinationUp, object{"destination": of, "since": decision.Instant(outage.Since),
			"answeredAt": decision.Instant(outage.Until), "upAt": decision.Instant(now.Since),
			"duration": text.ISODuration(now.Since.Sub(outage.Since)), "canaries": outage.Tests, "held": outage.Held}
	default:
		return "", nil
	}
}

// object is an event's data.
type object map[string]any

// maxTextBytes bounds a person's text.
const maxTextBytes = 1000

// clean returns a person's text redacted.
func clean(s string) string { return redact.Line(s, maxTextBytes) }

// auditRecord returns the record of RN-BIL-005 §7.1 as the audit's exports show it, but with persons' texts redacted.
func auditRecord(h *journal.Happening, id string) any {
	r := audit.Of(&h.Entry)
	r.ClaimID = id
	if h.Attempt == nil {
		r.Body = publicBody(h.Told())
	}
	return r
}

// publicBody returns an entry's body with its free texts redacted, the engine's keys as strings, and without a bulk
// run's dead letters; nil if it is no object.
func publicBody(body []byte) []byte {
	from := json.NewDecoder(bytes.NewReader(body))
	from.UseNumber() // keys have more digits than a float64 holds
	var fields map[string]any
	if err := from.Decode(&fields); err != nil {
		return nil
	}
	delete(fields, "items") // the hundreds of claims that a bulk run decides on
	cleanFields(fields)
	return text.JSON(fields)
}

// personal names the fields with a person's words or name.
var personal = []string{"reason", "by", "assignee", "message"}

func cleanFields(fields map[string]any) {
	for name, value := range fields {
		switch v := value.(type) {
		case string:
			if slices.Contains(personal, name) {
				fields[name] = clean(v)
			}
		case json.Number:
			if strings.HasSuffix(name, "Key") {
				fields[name] = v.String()
			}
		case map[string]any:
			cleanFields(v)
		}
	}
}

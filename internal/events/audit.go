package events

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// auditRecord is the record of RN-BIL-005 §7.1 just as the audit's exports show it (audit.Record; the tests hold
// the two against one another), but without what a person's words may hold of others.
func auditRecord(o object, h *journal.Happening) object {
	if h.Attempt != nil {
		return auditAttempt(o, h.Subject, h.Attempt)
	}
	e := h.Entry
	o = auditHead(o, e.Record, string(e.Kind), decision.Instant(e.At), h.Subject)
	if body := publicBody(e.Told()); body != nil {
		o = o.raw("body", body)
	}
	return append(o, '}')
}

func auditHead(o object, record int64, kind, at string, s journal.Subject) object {
	return append(o, '{').number("record", record).text("kind", kind).text("timestamp", at).
		text("tenant", s.Tenant).text("policy", s.Policy).text("claimId", s.ID)
}

func auditAttempt(o object, s journal.Subject, a *journal.Attempt) object {
	d := &a.Decision
	o = auditHead(o, a.Record, "attempt", decision.Instant(d.AnalysedAt), s).
		text("submissionError", a.Error).
		text("errorClassification", string(d.ErrorClassification)).
		number("retryCount", d.RetryCount).
		number("analysedRetryCount", a.AnalysedCount).
		number("maxRetries", d.MaxRetries).
		boolean("shouldRetry", d.ShouldRetry())
	if d.ShouldRetry() {
		o = o.number("backoffMinutes", decision.Minutes(d.Wait())).text("nextRetryTime", decision.Instant(d.NextRetryTime))
	} else {
		o = o.textOrNull("backoffMinutes", "").textOrNull("nextRetryTime", "")
	}
	o = o.text("retryReason", d.RetryReason)
	o = strconv.AppendFloat(o.name("executionTimeMs"), float64(a.Took.Microseconds())/1000, 'f', -1, 64)
	o = o.text("rule", string(a.Rule)).
		text("reason", string(d.Reason)).
		textOrNull("matchedRule", d.MatchedRule).
		textOrNull("matchedText", d.MatchedText).
		textOrNull("catalogue", d.Catalogue).
		text("outcome", string(d.Outcome)).
		textOrNull("responsibleTeam", string(d.Team)).
		textOrNull("deadLetterId", a.DeadLetter).
		number("attemptNumber", a.Number).
		number("revision", a.Revision).
		number("episode", a.Episode).
		key("jobKey", a.JobKey).
		key("elementInstanceKey", a.ElementInstanceKey).
		key("processInstanceKey", a.ProcessInstanceKey).
		text("identity", a.Identity.String())
	return append(auditEvents(o.name("events"), a), '}')
}

// steps are the six events of §7.1; those of a retry are only where there is one.
var steps = [...]struct {
	name    string
	ofRetry bool
}{
	{"error_received", false}, {"error_classified", false}, {"retry_count_checked", false},
	{"backoff_calculated", true}, {"retry_decided", false}, {"next_attempt_scheduled", true},
}

func auditEvents(o object, a *journal.Attempt) object {
	at, decided := decision.Instant(a.ReceivedAt), decision.Instant(a.ReceivedAt.Add(a.Took).Truncate(time.Millisecond))
	o = append(o, '[')
	for i, step := range steps {
		if step.ofRetry && !a.Decision.ShouldRetry() {
			continue
		}
		if i > 0 {
			o = append(o, ',')
		}
		o = append(append(o, '{').number("number", int64(i)+1).text("event", step.name).text("at", at), '}')
		at = decided // all but the first happen in one step
	}
	return append(o, ']')
}

// publicBody is an entry's body with its free texts redacted, the engine's keys as texts, and without a bulk run's dead
// letters; nil where it is no object.
func publicBody(body []byte) []byte {
	from := json.NewDecoder(bytes.NewReader(body))
	from.UseNumber() // keys have more digits than a float64 holds
	var fields map[string]any
	if err := from.Decode(&fields); err != nil {
		return nil
	}
	delete(fields, "items") // the hundreds of claims that a bulk run decides on
	cleanFields(fields)
	return plain(fields)
}

func cleanFields(fields map[string]any) {
	for name, value := range fields {
		switch v := value.(type) {
		case string:
			if name == "reason" || name == "by" || name == "message" {
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

// plain is v as JSON in which no character is escaped that need not be.
func plain(v any) []byte {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	if err := to.Encode(v); err != nil { // cannot be: plain structs, and what was JSON
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

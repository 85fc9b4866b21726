package events

import (
	"bytes"
	"encoding/json"
	"strings"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
)

// auditRecord is the record of RN-BIL-005 §7.1 as the audit's exports show it, and without what a person's words
// may hold of others.
func auditRecord(h *journal.Happening) audit.Record {
	r := audit.Of(&journal.Record{Subject: h.Subject, Attempt: h.Attempt, Entry: h.Entry})
	if h.Entry != nil {
		r.Body = publicBody(h.Entry.Body)
	}
	return r
}

// publicBody is an entry's body with its free texts redacted and the engine's keys as texts. One that is no
// object is left out.
func publicBody(body string) json.RawMessage {
	from := json.NewDecoder(strings.NewReader(body))
	from.UseNumber() // keys have more digits than a float64 holds
	var fields map[string]any
	if err := from.Decode(&fields); err != nil {
		return nil
	}
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
		}
	}
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	if err := to.Encode(fields); err != nil { // cannot be: it was JSON
		return nil
	}
	return json.RawMessage(bytes.TrimSpace(b.Bytes()))
}

package events

import (
	"bytes"
	"encoding/json"
	"strings"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
)

// auditRecord returns the record of RN-BIL-005 §7.1 just as the audit's exports show it, but without what a person's
// words may hold of others.
func auditRecord(h *journal.Happening) any {
	r := audit.Of(&h.Record)
	if h.Entry != nil {
		r.Body = publicBody(h.Entry.Told())
	}
	return r
}

// publicBody returns an entry's body with its free texts redacted, the engine's keys as texts, and without a bulk run's
// dead letters; nil where it is no object.
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

// plain returns v as JSON in which no character is escaped that need not be.
func plain(v any) []byte {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	if err := to.Encode(v); err != nil { // cannot be: plain structs, and what was JSON
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

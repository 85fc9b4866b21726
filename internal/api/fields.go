package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"retry-worker/internal/decision"
)

// maxBodyBytes of a request.
const maxBodyBytes = 64 << 10

// fields are a request's, each as the JSON it came as.
type fields map[string]json.RawMessage

// rejected is a refusal for what is wrong with one of the fields; it names the field, not the process variable.
func rejected(r *decision.Rejection, message func(*decision.Rejection) string, field string) *refusal {
	named := *r
	named.Variable = field
	return invalid(strings.ToLower(string(r.Code)), "%s", message(&named))
}

// readFields reads a request's body, a JSON object with no fields but these.
func readFields(w http.ResponseWriter, r *http.Request, known ...string) (fields, *refusal) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, &refusal{http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must be JSON in UTF-8: send it with Content-Type: application/json"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, &refusal{http.StatusRequestEntityTooLarge, "body_too_large", fmt.Sprintf("the body has more than %d bytes", maxBodyBytes)}
	}
	var f fields
	if err != nil || json.Unmarshal(body, &f) != nil || f == nil {
		return nil, &refusal{http.StatusBadRequest, "invalid_json", "the body is no JSON object, expected " + objectOf(known)}
	}
	if name, is := twice(json.NewDecoder(bytes.NewReader(body))); is {
		return nil, invalid("duplicate_field", "the field %.60q is given twice in one object, expected once", name)
	}
	return f, f.only("", known)
}

// twice reports whether an object in the next value, which is valid JSON, has a field twice, and which: of two values,
// readers take different ones.
func twice(d *json.Decoder) (name string, is bool) {
	begin, _ := d.Token()
	if _, nested := begin.(json.Delim); !nested {
		return "", false
	}
	seen := map[json.Token]bool{}
	for d.More() {
		if begin == json.Delim('{') {
			field, _ := d.Token()
			if seen[field] {
				return fmt.Sprint(field), true
			}
			seen[field] = true
		}
		if name, is = twice(d); is {
			return name, true
		}
	}
	_, _ = d.Token() // its end
	return "", false
}

// only refuses fields that are not known; in is the object that they stand in.
func (f fields) only(in string, known []string) *refusal {
	for name := range f {
		if !slices.Contains(known, name) {
			if len(known) == 0 {
				return invalid("unknown_field", "the field %.60q is not known, expected {}", in+name)
			}
			return invalid("unknown_field", "the field %.60q is not known, expected of %s", in+name, strings.Join(known, ", "))
		}
	}
	return nil
}

// objectOf says which object is expected.
func objectOf(known []string) string {
	if len(known) == 0 {
		return "{}"
	}
	return "one with the fields " + strings.Join(known, ", ")
}

// object is a field that is an object with no fields but these; it must be there.
func (f fields) object(name string, known ...string) (fields, *refusal) {
	var inner fields
	if raw := f[name]; len(raw) == 0 || json.Unmarshal(raw, &inner) != nil || inner == nil {
		return nil, invalid("invalid_"+snake(name), "%s is no JSON object, expected %s", name, objectOf(known))
	}
	return inner, inner.only(name+".", known)
}

// name is a field that names something: printable text as in a query; empty where it is not there, or null.
func (f fields) name(name string) (string, *refusal) {
	s, bad := f.text(name)
	if bad == nil && (len(s) > maxParameterBytes || !printable(s)) {
		bad = invalid("invalid_"+snake(name), "%s is no printable text of at most %d bytes", name, maxParameterBytes)
	}
	return s, bad
}

// value of a field; absent where it is not there.
func (f fields) value(name string) decision.Value { return decision.Value(f[name]) }

// text is a field that is a text; empty where it is not there, or null.
func (f fields) text(name string) (string, *refusal) {
	var s *string
	if raw := f[name]; len(raw) > 0 && json.Unmarshal(raw, &s) != nil {
		return "", invalid("invalid_"+snake(name), "%s is no text, expected one, or none", name)
	}
	if s == nil {
		return "", nil
	}
	return *s, nil
}

// truth is a field that is true or false; false where it is not there, or null.
func (f fields) truth(name string) (bool, *refusal) {
	var b *bool
	if raw := f[name]; len(raw) > 0 && json.Unmarshal(raw, &b) != nil {
		return false, invalid("invalid_"+snake(name), "%s is %.60s, expected true or false", name, raw)
	}
	return b != nil && *b, nil
}

// snake is a field's name as the codes have it: forceRetry is force_retry.
func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// instant is a field that is a point in time; zero where it is not there, or null. Years have four digits: later ones
// have no RFC 3339 form.
func (f fields) instant(name string) (time.Time, *refusal) {
	s, bad := f.text(name)
	if bad != nil || f[name] == nil || string(f[name]) == "null" {
		return time.Time{}, bad
	}
	return parseInstant(name, s)
}

// parseInstant reads what a field or parameter of that name holds.
func parseInstant(name, s string) (time.Time, *refusal) {
	t, ok := decision.ParseInstant(s)
	if !ok || t.Year() < 1 || t.Year() > 9998 {
		return time.Time{}, invalid("invalid_"+name, "%s is %.60q, expected an instant such as 2026-03-01T08:00:00-03:00, or none", name, s)
	}
	return t, nil
}

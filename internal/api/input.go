package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

const (
	// maxParameterBytes of one parameter of a query, and of a name in a body.
	maxParameterBytes = 1000
	// maxBodyBytes of a request.
	maxBodyBytes = 64 << 10
	// maxTenantBytes of a tenant's id.
	maxTenantBytes = 255
)

// input is what a request gives, by name and as JSON: the parameters of its query, or the fields of its body. Its
// methods read one each: what is not there, or null, is the zero value. The first that is wrong is kept.
type input struct {
	given map[string]json.RawMessage
	bad   *error
}

// wrong returns why the input is refused; nil where all that was read of it is right.
func (in *input) wrong() error { return *in.bad }

// refuse keeps why the input is refused, unless something before it was wrong already.
func (in *input) refuse(err error) {
	if *in.bad == nil {
		*in.bad = err
	}
}

// invalid refuses the input for a field.
func (in *input) invalid(name, format string, args ...any) {
	in.refuse(invalid("invalid_"+snake(name), format, args...))
}

// readQuery reads a request's query, which has no parameters but these, each at most once: a slip in a name would go
// unseen, and a list would not be the one that was asked for. One without a value is not there.
func readQuery(_ http.ResponseWriter, r *http.Request, known []string) (map[string]json.RawMessage, error) {
	all, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("invalid_parameter", "the query cannot be read: expected name=value&name=value, "+
			"with everything else than letters and digits %%-encoded")
	}
	given := map[string]json.RawMessage{}
	for name, values := range all {
		switch {
		case !slices.Contains(known, name):
			return nil, invalid("unknown_parameter", "the parameter %.60q is not known, expected %s", name,
				oneOf(known, "none"))
		case len(values) > 1:
			return nil, invalid("invalid_parameter", "the parameter %s is given %d times, expected once", name, len(values))
		case !isName(values[0]):
			return nil, invalid("invalid_"+name, notName, name, maxParameterBytes)
		case values[0] != "":
			given[name], _ = json.Marshal(values[0]) // a text always can be
		}
	}
	return given, nil
}

// readBody reads a request's body, a JSON object with no fields but these.
func readBody(w http.ResponseWriter, r *http.Request, known []string) (map[string]json.RawMessage, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	if err != nil || kind != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, &refusal{http.StatusUnsupportedMediaType, "unsupported_media_type",
			"the body must be JSON in UTF-8: send it with Content-Type: application/json"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, &refusal{http.StatusRequestEntityTooLarge, "body_too_large",
			fmt.Sprintf("the body has more than %d bytes", maxBodyBytes)}
	}
	var given map[string]json.RawMessage
	if err != nil || json.Unmarshal(body, &given) != nil || given == nil {
		return nil, &refusal{http.StatusBadRequest, "invalid_json", "the body is no JSON object, expected " + objectOf(known)}
	}
	if name, is := twice(json.NewDecoder(bytes.NewReader(body))); is {
		return nil, invalid("duplicate_field", "the field %.60q is given twice in one object, expected once", name)
	}
	return given, only(given, "", known)
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

// only refuses fields that are not known; within is the object that they stand in.
func only(given map[string]json.RawMessage, within string, known []string) error {
	for name := range given {
		if !slices.Contains(known, name) {
			return invalid("unknown_field", "the field %.60q is not known, expected %s", within+name, oneOf(known, "{}"))
		}
	}
	return nil
}

// listed says which names are expected, behind words that begin it; none is what is said where no name is.
func listed(begin string, known []string, none string) string {
	if len(known) == 0 {
		return none
	}
	return begin + strings.Join(known, ", ")
}

// oneOf says which names are known; none is what is said where no name is.
func oneOf(known []string, none string) string { return listed("one of ", known, none) }

// objectOf says which object is expected.
func objectOf(known []string) string { return listed("one with the fields ", known, "{}") }

// snake returns a field's name as the codes have it: force_retry for forceRetry.
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

// notName is what is wrong with what should name something.
const notName = "%s is no printable text of at most %d bytes"

func isName(s string) bool { return len(s) <= maxParameterBytes && printable(s) }

// printable reports whether s can be the id or the name of anything: stores take no other text.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// value of a field, as a process variable has it.
func (in *input) value(name string) decision.Value { return decision.Value(in.given[name]) }

// read decodes a field into what v points to, which stays as it is where the field is not there or null, and reports
// whether it could.
func (in *input) read(name string, v any) bool {
	raw := in.given[name]
	return len(raw) == 0 || json.Unmarshal(raw, v) == nil
}

// text is a field that is a text.
func (in *input) text(name string) string {
	var s string
	if !in.read(name, &s) {
		in.invalid(name, "%s is no text, expected one, or none", name)
	}
	return s
}

// name is a field that names something.
func (in *input) name(name string) string {
	s := in.text(name)
	if !isName(s) {
		in.invalid(name, notName, name, maxParameterBytes)
	}
	return s
}

// boolean returns a field that is true or false.
func (in *input) boolean(name string) bool {
	var b bool
	if !in.read(name, &b) {
		in.invalid(name, "%s is %.60s, expected true or false", name, in.given[name])
	}
	return b
}

// instant is a field that is a point in time. Years have four digits: later ones have no RFC 3339 form.
func (in *input) instant(name string) time.Time {
	s := in.text(name)
	if raw := in.given[name]; len(raw) == 0 || string(raw) == "null" {
		return time.Time{}
	}
	t, ok := decision.ParseInstant(s)
	if !ok || t.Year() < 1 || t.Year() > 9998 {
		in.invalid(name, "%s is %.60q, expected an instant such as 2026-03-01T08:00:00-03:00, or none", name, s)
	}
	return t
}

// tenant is the field of that name; the default one where it is not there.
func (in *input) tenant() string {
	tenant := in.text("tenant")
	if len(tenant) > maxTenantBytes || strings.ContainsFunc(tenant, unicode.IsControl) {
		in.invalid("tenant", "tenant is no tenant's id, expected printable text of at most %d bytes, or none", maxTenantBytes)
	}
	return cmp.Or(tenant, journal.DefaultTenant)
}

// object is a field that is an object with no fields but these; it must be there.
func (in *input) object(name string, known ...string) *input {
	inner := &input{bad: in.bad}
	if raw := in.given[name]; len(raw) == 0 || json.Unmarshal(raw, &inner.given) != nil || inner.given == nil {
		in.invalid(name, "%s is no JSON object, expected %s", name, objectOf(known))
	} else if err := only(inner.given, name+".", known); err != nil {
		in.refuse(err)
	}
	return inner
}

// filterFields choose dead letters.
var filterFields = []string{"policy", "team", "reason", "fingerprint", "ids", "context", "q", "since", "until"}

// filter of dead letters.
func (in *input) filter() journal.DeadLetterFilter {
	return journal.DeadLetterFilter{
		State: in.name("state"), Policy: in.name("policy"), Team: decision.Team(in.name("team")),
		Reason:      decision.Reason(in.name("reason")),
		Fingerprint: in.name("fingerprint"), IDs: in.text("ids"), Context: in.name("context"), Query: in.name("q"),
		Since: in.instant("since"), Until: in.instant("until"),
		Sort: in.name("sort"),
	}
}

// limit of a list; 0 where none is given.
func (in *input) limit() int {
	text := in.text("limit")
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 63)
	switch {
	case err != nil || n > deadletter.MostItems:
		in.invalid("limit", "limit is %.60q, expected a whole number from 1 to %d", text, deadletter.MostItems)
	case n == 0:
		in.invalid("limit", "limit is 0, expected a whole number from 1 to %d", deadletter.MostItems)
	}
	return int(n)
}

// numberCursor is the number, of a record or an item, behind which a page begins: 0 where none is given.
func (in *input) numberCursor() int64 {
	text := in.text("cursor")
	n, err := strconv.ParseUint(text, 10, 63)
	if text != "" && (err != nil || n == 0) {
		in.refuse(deadletter.ErrBadCursor)
	}
	return int64(n)
}

// reason is a person's; empty where nothing of it can be seen.
func (in *input) reason() string {
	text := in.text("reason")
	if strings.IndexFunc(text, visible) < 0 {
		return ""
	}
	return text
}

// checkedReason is a person's, as the audit takes it.
func (in *input) checkedReason() string {
	reason, err := deadletter.CheckReason(in.reason())
	if err != nil {
		in.refuse(err)
	}
	return reason
}

package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"retry-worker/internal/decision"
)

const (
	// maxParameterBytes of one parameter of a query, and of a text in a body that does not say otherwise (tag long).
	maxParameterBytes = 1000
	// maxBodyBytes of a request.
	maxBodyBytes = 64 << 10
)

// The places of a request's fields.
const (
	inPath  = "path"
	inQuery = "query"
	inBody  = "body"
)

// Field is a parameter of a request, or a member of its body or of an answer.
type Field struct {
	Name, In, Doc, Default string
	Required               bool
	// Type is string, integer, number, boolean or object; Format such as date-time; Enum lists all values where they are
	// known.
	Type, Format string
	Enum         []string

	of     reflect.Type
	tag    reflect.StructTag
	index  []int
	fields []*Field // of an object in a body
}

// Members returns the fields of an object in a body.
func (f *Field) Members() []*Field { return f.fields }

// requestFields are the fields that a type reads from a request, by its tags: path, query or json.
func requestFields(t reflect.Type, within string) (all []*Field) {
	for _, f := range reflect.VisibleFields(t) {
		for _, in := range []string{inPath, inQuery, inBody} {
			name, there := f.Tag.Lookup(map[string]string{inPath: "path", inQuery: "query", inBody: "json"}[in])
			if !there || within != "" && in != within {
				continue
			}
			m := &Field{Name: name, In: in, Doc: f.Tag.Get("doc"), Default: f.Tag.Get("default"),
				Required: in == inPath || f.Tag.Get("required") != "", of: f.Type, tag: f.Tag, index: f.Index}
			if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]() {
				m.fields = requestFields(f.Type, inBody)
			}
			all = append(all, m.typed())
			break
		}
	}
	return all
}

// membersOf are the members of a struct as JSON has them.
func membersOf(t reflect.Type) (all []*Field) {
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		all = append(all, &Field{Name: name, Required: options != "omitempty" && always(t, f.Index), of: f.Type, tag: f.Tag})
	}
	return all
}

// always reports whether a field is there whatever a struct holds: no struct that it is promoted from may be nil.
func always(t reflect.Type, index []int) bool {
	for _, n := range index[:len(index)-1] {
		if t = t.Field(n).Type; t.Kind() == reflect.Pointer {
			return false
		}
	}
	return true
}

// typed says what a field holds.
func (f *Field) typed() *Field {
	s := schemas(nil).field(f)
	f.Type, _ = s["type"].(string)
	if several, is := s["type"].([]string); is {
		f.Type = several[0]
	}
	f.Format, _ = s["format"].(string)
	values, _ := s["enum"].([]any)
	for _, v := range values {
		if v != nil {
			f.Enum = append(f.Enum, fmt.Sprint(v))
		}
	}
	return f
}

// names of fields in one place of a request.
func names(fields []*Field, in string) (all []string) {
	for _, f := range fields {
		if f.In == in {
			all = append(all, f.Name)
		}
	}
	return all
}

// read reads a request into in, a struct with these fields.
func read(w http.ResponseWriter, r *http.Request, fields []*Field, in reflect.Value) error {
	given, err := readQuery(r, names(fields, inQuery))
	if err == nil && r.Method != http.MethodGet && r.Method != http.MethodHead {
		err = readBody(w, r, names(fields, inBody), given)
	}
	if err != nil {
		return err
	}
	for _, f := range fields {
		if f.In == inPath {
			given[f.Name], _ = json.Marshal(r.PathValue(f.Name)) // a text always can be
		}
	}
	return set(in, fields, given)
}

// readQuery reads a request's query, which has no parameters but these, each at most once: a slip in a name would go
// unseen, and a list would not be the one that was asked for. One without a value is not there.
func readQuery(r *http.Request, known []string) (map[string]json.RawMessage, error) {
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
				listed("one of ", known, "none"))
		case len(values) > 1:
			return nil, invalid("invalid_parameter", "the parameter %s is given %d times, expected once", name, len(values))
		case !isName(values[0], maxParameterBytes):
			return nil, invalid("invalid_"+name, notName, name, maxParameterBytes)
		case values[0] != "":
			given[name], _ = json.Marshal(values[0])
		}
	}
	return given, nil
}

// readBody reads a request's body, a JSON object with no fields but these; the gate has looked at its type.
func readBody(w http.ResponseWriter, r *http.Request, known []string, given map[string]json.RawMessage) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &refusal{http.StatusRequestEntityTooLarge, "body_too_large",
			fmt.Sprintf("the body has more than %d bytes", maxBodyBytes)}
	}
	var sent map[string]json.RawMessage
	if err != nil || json.Unmarshal(body, &sent) != nil || sent == nil {
		return &refusal{http.StatusBadRequest, "invalid_json",
			"the body is no JSON object, expected " + listed("one with the fields ", known, "{}")}
	}
	if name, is := twice(json.NewDecoder(bytes.NewReader(body))); is {
		return invalid("duplicate_field", "the field %.60q is given twice in one object, expected once", name)
	}
	for name, value := range sent {
		if !slices.Contains(known, name) {
			return unknownField(name, known)
		}
		given[name] = value
	}
	return nil
}

func unknownField(name string, known []string) error {
	return invalid("unknown_field", "the field %.60q is not known, expected %s", name, listed("one of ", known, "{}"))
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

// listed says which names are expected, behind words that begin it; none is what is said where no name is.
func listed(begin string, known []string, none string) string {
	if len(known) == 0 {
		return none
	}
	return begin + strings.Join(known, ", ")
}

// set sets the fields of a struct to what is given. What is not there, or null, stays the zero value.
func set(in reflect.Value, fields []*Field, given map[string]json.RawMessage) error {
	for _, f := range fields {
		if raw := given[f.Name]; f.fields != nil || len(raw) > 0 && (string(raw) != "null" || f.of == rawValue) {
			if err := f.set(in.FieldByIndex(f.index), raw); err != nil {
				return err
			}
		}
	}
	return nil
}

var rawValue = reflect.TypeFor[decision.Value]()

// set sets v, of the field's type, to what is given.
func (f *Field) set(v reflect.Value, raw json.RawMessage) error {
	if f.fields != nil {
		return f.setObject(v, raw)
	}
	plain := raw
	if f.In == inQuery && f.Type != "string" {
		plain = raw[1 : len(raw)-1] // without the quotation marks of JSON
	}
	ok := true
	switch p := v.Addr().Interface().(type) {
	case *decision.Value:
		*p = decision.Value(raw)
	case *time.Time:
		*p, ok = instant(raw)
	case *int, *int64:
		var n float64 // 60.0 is a whole number, too
		ok = json.Unmarshal(plain, &n) == nil && n >= f.bound("min") && n <= f.bound("max") && n == math.Trunc(n)
		v.SetInt(int64(n))
	default:
		ok = json.Unmarshal(plain, p) == nil
	}
	switch {
	case !ok:
		return f.invalid("%s is %s%s", f.Name, f.otherThan(raw), f.orNone())
	case v.Kind() != reflect.String || f.of == rawValue || f.In == inPath || f.tag.Get("long") != "":
		return nil
	}
	most, _ := strconv.Atoi(cmp.Or(f.tag.Get("bytes"), strconv.Itoa(maxParameterBytes)))
	if !isName(v.String(), most) {
		return f.invalid(notName, f.Name, most)
	}
	return nil
}

func (f *Field) bound(tag string) float64 {
	n, _ := strconv.ParseFloat(f.tag.Get(tag), 64) // each whole number has both
	return n
}

// otherThan says what a field is given, and what it takes. What should be a text, and is none, may be personal all the
// same.
func (f *Field) otherThan(raw json.RawMessage) string {
	expected := "a number"
	switch {
	case f.Format == "date-time":
		expected = "an instant such as 2026-03-01T08:00:00-03:00"
	case f.Type == "string":
		return "no text, expected one"
	case f.Type == "object":
		return "no JSON object, expected one"
	case f.Type == "boolean":
		expected = "true or false"
	case f.Type == "integer":
		expected = fmt.Sprintf("a whole number from %.0f to %.0f", f.bound("min"), f.bound("max"))
	}
	return fmt.Sprintf("%.60s, expected %s", raw, expected)
}

// instant reads a point in time. Years have four digits: later ones have no RFC 3339 form.
func instant(raw json.RawMessage) (at time.Time, ok bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		at, ok = decision.ParseInstant(text)
	}
	return at, ok && at.Year() >= 1 && at.Year() <= 9998
}

func (f *Field) setObject(v reflect.Value, raw json.RawMessage) error {
	var given map[string]json.RawMessage
	known := names(f.fields, inBody)
	if json.Unmarshal(raw, &given) != nil || given == nil {
		return f.invalid("%s is no JSON object, expected %s", f.Name, listed("one with the fields ", known, "{}"))
	}
	for name := range given {
		if !slices.Contains(known, name) {
			return unknownField(f.Name+"."+name, known)
		}
	}
	return set(v, f.fields, given)
}

// orNone says that a field may be left out, where it may.
func (f *Field) orNone() string {
	switch {
	case f.Required:
		return ""
	case f.Default == "":
		return ", or none"
	default:
		return ", or none for " + f.Default
	}
}

// invalid refuses a request for the field.
func (f *Field) invalid(format string, args ...any) error {
	return invalid(cmp.Or(f.tag.Get("code"), "invalid_"+snake(f.Name)), format, args...)
}

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

func isName(s string, most int) bool { return len(s) <= most && printable(s) }

// printable reports whether s can be the id or the name of anything: stores take no other text.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"retry-worker/internal/decision"
	"retry-worker/internal/text"
)

const (
	// maxParameterBytes limits a parameter, and a body's text that has none of the tags bytes, length and long.
	maxParameterBytes = 1000
	// maxBodyBytes limits a request's body.
	maxBodyBytes = 64 << 10
)

// The places of fields in a request.
const (
	inPath  = "path"
	inQuery = "query"
	inBody  = "body"
)

// Field is a parameter of a request, or a member of its body or of an answer.
type Field struct {
	Name, In, Doc, Default string
	Required               bool
	// Type is string, integer, number, boolean or object; Format is one such as date-time; Enum lists a closed set's
	// values.
	Type, Format string
	Enum         []string
	// Any leaves it to the policy to refuse a wrong value.
	Any bool
	// Members are the fields of an object in a body.
	Members []*Field

	of    reflect.Type
	tag   reflect.StructTag
	index []int
}

// fieldsOf returns the JSON fields of a struct, including those of embedded structs. A field is Required if every such
// struct's JSON has it.
func fieldsOf(t reflect.Type) (all []*Field) {
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		all = append(all, &Field{
			Name: name, Doc: cmp.Or(f.Tag.Get("doc"), words()[name]), Default: f.Tag.Get("default"),
			Required: options != "omitempty" && always(t, f.Index),
			Any:      f.Type == reflect.TypeFor[decision.Value](), of: f.Type, tag: f.Tag, index: f.Index,
		})
	}
	return all
}

// always reports whether a struct always has the field at index: it is not promoted through a pointer.
func always(t reflect.Type, index []int) bool {
	for _, n := range index[:len(index)-1] {
		if t = t.Field(n).Type; t.Kind() == reflect.Pointer {
			return false
		}
	}
	return true
}

// requestFields returns the fields of a request. Unless the tag in says otherwise, they stand in its body, or in the
// query of a GET.
func requestFields(t reflect.Type, method string) []*Field {
	all := fieldsOf(t)
	for _, f := range all {
		if f.In = cmp.Or(f.tag.Get("in"), inBody); f.In == inBody && method == http.MethodGet {
			f.In = inQuery
		}
		f.Required = f.In == inPath || f.tag.Get("required") != ""
		if f.of.Kind() == reflect.Struct && f.of != reflect.TypeFor[time.Time]() {
			f.Members = requestFields(f.of, "")
		}
		f.typed()
	}
	return all
}

// typed sets Type, Format and Enum as the schema has them.
func (f *Field) typed() {
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
}

// names returns the names of the fields in one place of a request.
func names(fields []*Field, in string) (all []string) {
	for _, f := range fields {
		if f.In == in {
			all = append(all, f.Name)
		}
	}
	return all
}

// read reads a request into in, a pointer to a struct with these fields.
func read(r *http.Request, fields []*Field, in any) error {
	given, err := readQuery(r.URL.RawQuery, names(fields, inQuery))
	if err == nil && r.Method != http.MethodGet && r.Method != http.MethodHead {
		body, cut := io.ReadAll(r.Body) // the gate checked the Content-Type
		if _, large := errors.AsType[*http.MaxBytesError](cut); large {
			return refused("body_too_large", "the body has more than %d bytes", maxBodyBytes)
		}
		err = readBody(body, names(fields, inBody), given)
	}
	if err != nil {
		return err
	}
	for _, name := range names(fields, inPath) {
		given[name], _ = json.Marshal(r.PathValue(name)) // a text cannot fail
	}
	return set(reflect.ValueOf(in).Elem(), fields, given)
}

// readQuery reads a query. It refuses unknown and repeated parameters, since a list without a misspelt filter would not
// be the one asked for. A parameter without a value counts as missing.
func readQuery(query string, known []string) (map[string]json.RawMessage, error) {
	all, err := url.ParseQuery(query)
	if err != nil {
		return nil, refused("invalid_parameter", "the query cannot be read: expected name=value&name=value, "+
			"with everything else than letters and digits %%-encoded")
	}
	if err := onlyKnown("parameter", "", all, known, "none"); err != nil {
		return nil, err
	}
	given := map[string]json.RawMessage{}
	for name, values := range all {
		switch {
		case len(values) > 1:
			return nil, refused("invalid_parameter", "the parameter %s is given %d times, expected once", name, len(values))
		case !utf8.ValidString(values[0]):
			return nil, refused(codeOf(name), notName, name, maxParameterBytes)
		case values[0] != "":
			given[name], _ = json.Marshal(values[0])
		}
	}
	return given, nil
}

// readBody adds the fields of a body to given. The body must be a JSON object of known fields, none given twice.
func readBody(body []byte, known []string, given map[string]json.RawMessage) error {
	var sent map[string]json.RawMessage
	if json.Unmarshal(body, &sent) != nil || sent == nil {
		return refused("invalid_json", "the body is no JSON object, expected %s",
			listed("one with the fields ", known, "{}"))
	}
	if _, err := text.Decode(body); err != nil {
		return refused("duplicate_field", "%s", err)
	}
	maps.Copy(given, sent)
	return onlyKnown("field", "", sent, known, "{}")
}

// onlyKnown refuses unknown fields or parameters. The refusal begins their names with within, and says none where none
// is known.
func onlyKnown[V any](what, within string, given map[string]V, known []string, none string) error {
	for name := range given {
		if !slices.Contains(known, name) {
			return refused("unknown_"+what, "the %s %.60q is not known, expected %s", what, within+name,
				listed("one of ", known, none))
		}
	}
	return nil
}

// listed returns begin followed by the known names, or none if there are no names.
func listed(begin string, known []string, none string) string {
	if len(known) == 0 {
		return none
	}
	return begin + strings.Join(known, ", ")
}

// set sets the fields of a struct. A field that is missing or null gets its default, or else the zero value.
func set(in reflect.Value, fields []*Field, given map[string]json.RawMessage) error {
	for _, f := range fields {
		raw, is := given[f.Name]
		missing := !is || string(raw) == "null"
		switch {
		case missing && f.Required && !f.Any: // the policy refuses a missing Any
			return f.invalid("%s is missing, expected %s", f.Name, f.expected())
		case f.Default != "" && (missing || string(raw) == `""` && !f.Any):
			raw, _ = json.Marshal(valueOf("default", f.Default)) // a text or a number cannot fail
		case !is:
			continue
		}
		if err := f.set(in.FieldByIndex(f.index), raw); err != nil {
			return err
		}
	}
	return nil
}

// set sets v, a value of the field's type, to raw.
func (f *Field) set(v reflect.Value, raw json.RawMessage) error {
	if f.Members != nil {
		return f.setObject(v, raw)
	}
	plain := raw
	if f.In == inQuery && f.Type != "string" {
		if plain = bytes.Trim(raw, `"`); string(plain) == "null" { // in a query a text
			return f.wrong(raw)
		}
	}
	err := error(nil)
	switch p := v.Addr().Interface().(type) {
	case *decision.Value:
		*p = decision.Value(raw)
		return nil
	case *time.Time:
		err = readInstant(raw, p)
	case *int, *int64:
		var n float64 // 60.0 is a whole number, too
		if err = json.Unmarshal(plain, &n); err == nil && string(plain) != "null" {
			v.SetInt(int64(n))
			if n < f.bound("min") || n > f.bound("max") || n != math.Trunc(n) {
				err = errors.ErrUnsupported
			}
		}
	default:
		err = json.Unmarshal(plain, p)
	}
	if err != nil {
		return f.wrong(raw)
	}
	most, _ := strconv.Atoi(cmp.Or(f.tag.Get("bytes"), strconv.Itoa(maxParameterBytes)))
	short := v.Kind() == reflect.String && f.In != inPath && f.tag.Get("long")+f.tag.Get("length") == ""
	if short && (len(v.String()) > most || !text.Printable(v.String())) {
		return f.invalid(notName, f.Name, most)
	}
	return nil
}

func (f *Field) bound(tag string) float64 {
	n, _ := strconv.ParseFloat(f.tag.Get(tag), 64) // each integer field has min and max
	return n
}

// wrong refuses the value of a field. It does not show the value of a text or an object, which may be personal.
func (f *Field) wrong(raw json.RawMessage) error {
	found := fmt.Sprintf("%.60s", raw)
	if f.Format != "date-time" && (f.Type == "string" || f.Type == "object") {
		found = "no " + map[string]string{"string": "text", "object": "JSON object"}[f.Type]
	}
	return f.invalid("%s is %s, expected %s", f.Name, found, f.expected())
}

// expected returns in words what a field takes.
func (f *Field) expected() string {
	expected := map[string]string{"string": "a text", "boolean": "true or false", "number": "a number"}[f.Type]
	switch {
	case f.Format == "date-time":
		expected = "an instant such as 2026-03-01T08:00:00-03:00"
	case len(f.Enum) > 0 && len(f.Enum) < 12:
		expected = text.Or(f.Enum...)
	case f.Type == "integer":
		expected = fmt.Sprintf("a whole number from %.0f to %.0f", f.bound("min"), f.bound("max"))
	case f.Type == "object":
		expected = listed("an object with the fields ", names(f.Members, inBody), "an object")
	}
	expected = cmp.Or(f.tag.Get("expects"), expected)
	switch {
	case f.Required:
		return expected
	case f.Default == "":
		return expected + ", or none"
	default:
		return expected + ", or none for " + f.Default
	}
}

// readInstant reads an instant into at; null changes nothing. It refuses years that have no RFC 3339 form, and the year
// 1, as programs send an instant that they never set.
func readInstant(raw json.RawMessage, at *time.Time) error {
	var text *string
	err := json.Unmarshal(raw, &text)
	if text != nil {
		var ok bool
		if *at, ok = decision.ParseInstant(*text); !ok || at.Year() < 2 || at.Year() > 9998 {
			return errors.ErrUnsupported
		}
	}
	return err
}

// setObject sets a filter. It refuses an empty text, such as ids of a list that came out empty: it would select all.
func (f *Field) setObject(v reflect.Value, raw json.RawMessage) error {
	var given map[string]json.RawMessage
	if json.Unmarshal(raw, &given) != nil {
		return f.wrong(raw)
	}
	if err := onlyKnown("field", f.Name+".", given, names(f.Members, inBody), "{}"); err != nil {
		return err
	}
	for _, member := range f.Members {
		var text *string
		if json.Unmarshal(given[member.Name], &text) == nil && text != nil && strings.TrimSpace(*text) == "" {
			return member.invalid("%s.%s is empty, expected a value, or leave it out", f.Name, member.Name)
		}
	}
	return set(v, f.Members, given)
}

// invalid refuses a request because of the field.
func (f *Field) invalid(format string, args ...any) error { return refused(f.code(), format, args...) }

func (f *Field) code() string { return cmp.Or(f.tag.Get("code"), codeOf(f.Name)) }

// codeOf returns the usual code of a wrong field: invalid_follow_up for followUp.
func codeOf(field string) string { return "invalid_" + text.Apart(field, "_") }

// notName is the message about a text that is too long, or cannot be printed.
const notName = "%s is no printable text of at most %d bytes"

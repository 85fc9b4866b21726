package decision

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"retry-worker/internal/text"
)

// Value is one variable as the JSON text it came as; empty where the variable is absent.
type Value string

// Text returns the value of a string.
func Text(s string) Value {
	if meansItself(s) {
		return Value(`"` + s + `"`)
	}
	b, _ := json.Marshal(s) // any string has a JSON form
	return Value(b)
}

// Typed returns what a person typed as the JSON value that a process would hold: a number if s is a JSON number and
// nothing else, otherwise a text. White space around a number would end up in messages.
func Typed(s string) Value {
	var n json.Number
	if json.Unmarshal([]byte(s), &n) == nil && n.String() == s {
		return Value(s)
	}
	return Text(s)
}

func (v Value) given() bool { return v != "" && v != "null" }

// text returns the string that v holds; false where v is no string.
func (v Value) text() (string, bool) {
	last := len(v) - 1
	if last < 1 || v[0] != '"' || v[last] != '"' {
		return "", false
	}
	if inner := string(v[1:last]); meansItself(inner) {
		return inner, true
	}
	var s string
	err := json.Unmarshal([]byte(v), &s)
	return s, err == nil
}

// name returns the text or the number that v holds, without white space around it; empty where it holds neither.
func (v Value) name() string {
	if s, ok := v.text(); ok {
		return strings.TrimSpace(s)
	}
	if v.given() && isDigit(v[0]) && json.Valid([]byte(v)) {
		return string(v)
	}
	return ""
}

// meansItself reports whether s can stand in a JSON string without being escaped.
func meansItself(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) < 0
}

// whole returns the number that v holds if it is whole, at least 0 and an int64: 2, 2.0 and 2e0 are (R9).
func (v Value) whole() (int64, bool) {
	if v == "" || v[0] != '-' && !isDigit(v[0]) || !isDigit(v[len(v)-1]) || !json.Valid([]byte(v)) {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && n >= 0 {
		return n, true
	}
	mantissa, power, _ := strings.Cut(strings.ToLower(string(v)), "e")
	if strings.Trim(mantissa, "-0.") == "" {
		return 0, true
	}
	const most = 10_000 // more than a mantissa can offset
	if exponent, err := strconv.Atoi(cmp.Or(power, "0")); err != nil || exponent < -most || exponent > most {
		return 0, false
	}
	n, ok := new(big.Rat).SetString(string(v))
	if !ok || n.Sign() < 0 || !n.IsInt() || !n.Num().IsInt64() {
		return 0, false
	}
	return n.Num().Int64(), true
}

// instant returns the point in time that v holds, in UTC.
func (v Value) instant() (time.Time, bool) {
	if s, ok := v.text(); ok {
		return ParseInstant(s)
	}
	return time.Time{}, false
}

// instantForm matches RFC 3339 and the text forms of Java's types. They leave out zero seconds, and may add the zone's
// name after the offset. The offset decides (R7, R23).
var instantForm = regexp.MustCompile(`^([0-9-]{10}T[0-9]{2}:[0-9]{2})(:[0-9]{2}(?:\.[0-9]+)?)?` +
	`(?:(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])(?:\[[A-Z0-9_+/-]{1,64}\])?)?$`)

// ParseInstant reads a point in time: RFC 3339, with or without seconds. A zone's name after the offset is ignored.
// Without a zone the time is UTC (R7, R23). An instant that lies in UTC before the year 0 or after 9999, such as
// 9999-12-31T23:59:59-03:00, becomes the nearest one that RFC 3339 can write.
func ParseInstant(s string) (time.Time, bool) {
	part := instantForm.FindStringSubmatch(strings.ToUpper(s)) // RFC 3339 lets t and z stand for T and Z
	if part == nil {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, part[1]+cmp.Or(part[2], ":00")+cmp.Or(part[3], "Z"))
	switch t = t.UTC(); {
	case t.Before(firstInstant):
		t = firstInstant
	case t.After(lastInstant):
		t = lastInstant
	}
	return t, err == nil
}

// firstInstant and lastInstant bound what can be written in UTC, to the millisecond.
var (
	firstInstant = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	lastInstant  = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
)

// describe returns v in one line for a message: a scalar as it is, a list or an object by its kind alone.
func (v Value) describe() string {
	if v == "" {
		return "missing"
	}
	if text, ok := v.text(); ok {
		return strconv.Quote(text) + " (text)"
	}
	switch {
	case v[0] == '{':
		return "an object"
	case v[0] == '[':
		return "a list"
	case !json.Valid([]byte(v)):
		return strconv.Quote(string(v)) + " (no JSON)"
	default:
		return strings.TrimSpace(string(v))
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// ContextField is a process variable that is shown to people with a claim (policy setting context).
type ContextField struct {
	Variable string
	// Label is what people call it.
	Label text.Translated
	Type  ContextType
}

// ContextType is what a ContextField holds.
type ContextType string

// The types.
const (
	ContextText   ContextType = "text"
	ContextNumber ContextType = "number"
	ContextMoney  ContextType = "money"
	ContextTime   ContextType = "time"
)

// ContextTypes lists every type.
func ContextTypes() []ContextType {
	return []ContextType{ContextText, ContextNumber, ContextMoney, ContextTime}
}

// ContextValue is the value of a claim's variable. A value that does not fit its field's type becomes a ContextText,
// unchanged.
type ContextValue struct {
	Variable string `json:"variable"`
	// Value is a text; a number or an amount with a decimal point, 1234.56; or an instant, RFC 3339 in UTC.
	Value string      `json:"value"`
	Type  ContextType `json:"type"`
}

// mostCents bounds one amount, at 100 billion, so that sums of many stay exact.
const mostCents = 1e13

// A number from exactNumber on may have lost its last digits, as a guide's number would; it, and one of more than
// longestNumber characters, is kept as text.
const (
	exactNumber   = 1 << 53
	longestNumber = 24
)

// Cents returns the amount of c in hundredths, and reports whether c holds one.
func (c *ContextValue) Cents() (int64, bool) {
	f, err := strconv.ParseFloat(c.Value, 64)
	if c.Type != ContextMoney || err != nil {
		return 0, false
	}
	return int64(math.Round(f * 100)), true
}

// Time returns the instant of c, and reports whether c holds one.
func (c *ContextValue) Time() (time.Time, bool) {
	if c.Type != ContextTime {
		return time.Time{}, false
	}
	return ParseInstant(c.Value)
}

// Amount formats hundredths with a decimal point, such as 1234.56.
func Amount(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// Context holds the values of a claim's context fields, in the policy's order.
type Context []ContextValue

// Cents returns the first amount in hundredths; 0 where there is none.
func (c Context) Cents() int64 {
	for i := range c {
		if cents, ok := c[i].Cents(); ok {
			return cents
		}
	}
	return 0
}

// context reads the given values of p's context fields.
func (p *Policy) context(values []Value) (c Context) {
	for i, v := range values {
		if f := &p.Context[i]; v.given() {
			c = append(c, f.read(v))
		}
	}
	return c
}

func (f *ContextField) read(v Value) ContextValue {
	read := ContextValue{Variable: f.Variable, Type: f.Type}
	switch f.Type {
	case ContextNumber:
		n, ok := v.number()
		if text := strconv.FormatFloat(n, 'f', -1, 64); ok && math.Abs(n) < exactNumber && len(text) <= longestNumber {
			read.Value = text
		}
	case ContextMoney:
		if n, ok := v.number(); ok && n >= 0 && n*100 <= mostCents {
			read.Value = Amount(int64(math.Round(n * 100)))
		}
	case ContextTime:
		if t, ok := v.instant(); ok {
			read.Value = Instant(t)
		}
	case ContextText:
	}
	if read.Value == "" {
		text, ok := v.text()
		read.Type, read.Value = ContextText, cmp.Or(text, string(v))
		if ok {
			read.Value = strings.TrimSpace(text)
		}
	}
	return read
}

// The ways to write a number as text: 1234.56; 1.234,56 and 1234,56, as it is done in Brazil. 1.234 is a
// thousand and more.
var (
	pointNumber = regexp.MustCompile(`^-?[0-9]{1,15}(\.([0-9]{1,2}|[0-9]{4,9}))?$`)
	commaNumber = regexp.MustCompile(`^-?([0-9]{1,15}|[0-9]{1,3}(\.[0-9]{3}){1,4})(,[0-9]{1,9})?$`)
)

// number returns the number that v holds, as one or as a text.
func (v Value) number() (float64, bool) {
	text, isText := v.text()
	text = strings.TrimSpace(text)
	switch {
	case !isText:
		if text = string(v); !json.Valid([]byte(v)) {
			return 0, false
		}
	case pointNumber.MatchString(text):
	case commaNumber.MatchString(text):
		text = strings.NewReplacer(".", "", ",", ".").Replace(text)
	default:
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && !math.IsInf(n, 0)
}

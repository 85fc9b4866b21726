package decision

import (
	"cmp"
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
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

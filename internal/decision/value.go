package decision

import (
	"encoding/json"
	"math/bits"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Value is one variable as the JSON text it came as; empty where the variable is absent.
type Value string

// Text is the value of a string.
func Text(s string) Value {
	if meansItself(s) {
		return Value(`"` + s + `"`)
	}
	b, err := json.Marshal(s)
	if err != nil { // cannot be: any string has a JSON form
		return ""
	}
	return Value(b)
}

// Typed is what a person typed as the JSON value a process would hold: a number where it is one, and nothing but that
// (no white space, which would end up in a message), else a text.
func Typed(s string) Value {
	var n json.Number
	if json.Unmarshal([]byte(s), &n) == nil && n.String() == s && s != "" {
		return Value(s)
	}
	return Text(s)
}

func (v Value) absent() bool { return v == "" || v == "null" }

func (v Value) given() bool { return !v.absent() }

// text is the string that v holds; false where v is no string.
func (v Value) text() (string, bool) {
	last := len(v) - 1
	if last < 1 || v[0] != '"' || v[last] != '"' {
		return "", false
	}
	if s, ok := unescaped(string(v[1:last])); ok {
		return s, true
	}
	var s string
	err := json.Unmarshal([]byte(v), &s)
	return s, err == nil
}

// escapes are what stands behind a backslash in JSON, but for u.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescaped is what stands between the quotes of a JSON string; false where encoding/json must look at it: half of a
// character, bytes that are no UTF-8, something that is no JSON.
func unescaped(s string) (string, bool) {
	if !isUTF8(s) {
		return "", false
	}
	mark := nextMark(s, 0)
	if mark == len(s) {
		return s, true
	}
	var text strings.Builder
	text.Grow(len(s))
	from := 0
	for ; mark < len(s); mark = nextMark(s, from) {
		r, size := readJSONEscape(s[mark:])
		if size == 0 {
			return "", false
		}
		text.WriteString(s[from:mark])
		text.WriteRune(r)
		from = mark + size
	}
	text.WriteString(s[from:])
	return text.String(), true
}

// readJSONEscape reads the escape that s begins with; its size is 0 where that is none, or half of a pair.
func readJSONEscape(s string) (r rune, size int) {
	kind := at(s, 1)
	if s[0] != '\\' {
		return 0, 0
	}
	if kind != 'u' || len(s) < 6 {
		if escapes[kind] == 0 {
			return 0, 0
		}
		return rune(escapes[kind]), 2
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	if err != nil || utf16.IsSurrogate(rune(n)) {
		return 0, 0
	}
	return rune(n), 6
}

// meansItself tells whether s stands in a JSON string as it is: nothing to escape, decode or refuse.
func meansItself(s string) bool { return nextMark(s, 0) == len(s) && isUTF8(s) }

// isUTF8 is utf8.ValidString, in a hurry as long as the accented letters are those of Portuguese.
func isUTF8(s string) bool {
	i, open := 0, uint64(0)
	for i+32 <= len(s) && (eight(s[i:])|eight(s[i+8:])|eight(s[i+16:])|eight(s[i+24:]))&highs == 0 {
		i += 32
	}
	for i+8 <= len(s) {
		next, ok := latinIn(eight(s[i:]), open)
		if !ok {
			break
		}
		i, open = i+8, next
	}
	if open != 0 {
		i-- // the letter's beginning
	}
	return utf8.ValidString(s[i:])
}

// nextMark is where the first control character, quote or backslash stands from i on; len(s) where none does.
func nextMark(s string, i int) int {
	for ; i+8 <= len(s); i += 8 {
		if marks := marksIn(eight(s[i:])); marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for i < len(s) && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}

// whole is the number that v holds if it is whole, at least 0 and an int64: 2, 2.0 and 2e0 are (R9).
func (v Value) whole() (int64, bool) {
	if '1' <= v[0] && v[0] <= '9' || v == "0" { // ParseInt takes "+2" and "007" too, which are no JSON
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n, true
		}
	}
	digits, exponent, ok := v.decimal()
	if !ok {
		return 0, false
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		return 0, true
	}
	trimmed := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	const mostDigits = 19
	if exponent < 0 || exponent > mostDigits || len(trimmed)+exponent > mostDigits {
		return 0, false
	}
	n, err := strconv.ParseInt(trimmed+strings.Repeat("0", exponent), 10, 64)
	return n, err == nil
}

// decimal splits a JSON number that is not negative (−0 is not) into its digits and the power of ten
// they are to be multiplied by.
func (v Value) decimal() (digits string, exponent int, ok bool) {
	if v[0] != '-' && !isDigit(v[0]) || !isDigit(v[len(v)-1]) || !json.Valid([]byte(v)) {
		return "", 0, false
	}
	mantissa, power, hasPower := strings.Cut(strings.ToLower(string(v)), "e")
	if hasPower {
		const most = 1 << 30              // more than any mantissa has digits to make up for
		exponent, _ = strconv.Atoi(power) // fails by size only, and then gives the largest
		exponent = min(max(exponent, -most), most)
	}
	negative := strings.HasPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	digits = whole + fraction
	if negative && strings.Trim(digits, "0") != "" {
		return "", 0, false
	}
	return digits, exponent - len(fraction), true
}

// instantLayouts are RFC 3339 and, read as UTC, what java.time.LocalDateTime prints: it leaves out
// seconds that are zero (R7, R23).
var instantLayouts = [...]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04"}

// instant is the point in time that v holds, in UTC.
func (v Value) instant() (time.Time, bool) {
	if s, ok := v.text(); ok {
		return ParseInstant(s)
	}
	return time.Time{}, false
}

// ParseInstant reads a point in time: RFC 3339, or the same without a zone, which means UTC (R7).
func ParseInstant(s string) (time.Time, bool) {
	s = strings.ToUpper(s) // RFC 3339 lets t and z stand for T and Z
	for _, layout := range instantLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), isStrict(s)
		}
	}
	return time.Time{}, false
}

// isStrict refuses what time.Parse takes and RFC 3339 does not know: an hour of one digit, a comma
// before the fraction, an offset of a day or with a minute above 59. s is what time.Parse took.
func isStrict(s string) bool {
	zone := s[len(s)-len("+00:00"):]
	offset := zone[0] == '+' || zone[0] == '-'
	return s[len("2006-01-02T15")] == ':' && !strings.Contains(s, ",") &&
		(!offset || zone[1:3] < "24" && zone[4:] < "60")
}

// describe shows v in a message, in one line: a scalar as it is, of a list or an object only what it is.
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

package decision

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/text"
)

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

package catalogue

import (
	"encoding"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"retry-worker/internal/calendar"
)

// The scalars with a form of their own, each 0 where it is absent. The schema says what the form is, for people too.
type (
	duration time.Duration
	// percent is a fraction in [0, 1).
	percent   float64
	perMinute float64
	factor    float64
	growth    struct {
		factor float64
		every  duration
	}
)

// formats are those of the schema that are more than a pattern.
var formats = map[string]func(text string) error{
	"one-line": oneLine, "units": form[duration], "growth": form[growth],
	"days": form[calendar.Days], "weekdays": form[calendar.Weekdays], "hours": form[calendar.Hours],
}

// form returns an error unless text can be read as a T.
func form[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](text string) error {
	if text == "" {
		return errForm
	}
	return P(new(T)).UnmarshalText([]byte(text))
}

// errForm tells that a text has not the form it must have; the schema's title says which that is.
var errForm = errors.New("another form")

// oneLine returns an error unless text is a line with something in it.
func oneLine(text string) error {
	const most = 1000
	if utf8.RuneCountInString(text) > most || strings.TrimSpace(text) == "" ||
		strings.ContainsFunc(text, unicode.IsControl) {
		return errForm
	}
	return nil
}

// longest duration that a catalogue may hold, as a job may ask for no more either.
const longest = 366 * 24 * time.Hour

var units = [...]struct {
	name   string
	length time.Duration
}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}

// UnmarshalText reads whole numbers, each with its unit, the longest unit first: 90m, 1h30m, 500ms. Nothing is 0.
func (d *duration) UnmarshalText(b []byte) error {
	var total time.Duration
	next := 0
	for text := string(b); text != ""; next++ {
		digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
		n, err := strconv.ParseInt(text[:digits], 10, 64)
		text = text[digits:]
		unit := text[:len(text)-len(strings.TrimLeft(text, "dhms"))]
		for next < len(units) && units[next].name != unit {
			next++
		}
		if err != nil || next == len(units) || n > int64(longest/units[next].length) {
			return errForm
		}
		total += time.Duration(n) * units[next].length
		text = text[len(unit):]
	}
	if total > longest || total < time.Millisecond && len(b) > 0 {
		return errForm
	}
	*d = duration(total)
	return nil
}

// String returns d in the form that it is read in.
func (d duration) String() string {
	var b strings.Builder
	rest := time.Duration(d)
	for _, u := range units {
		if u.name == "d" && rest%u.length != 0 {
			continue // 36h, not 1d12h
		}
		if n := rest / u.length; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + u.name)
			rest -= n * u.length
		}
	}
	return b.String()
}

// UnmarshalText reads 12.5%.
func (p *percent) UnmarshalText(text []byte) error {
	n, err := strconv.ParseFloat(strings.TrimSuffix(string(text), "%"), 64)
	*p = percent(n / 100)
	return err
}

// UnmarshalText reads 20/min, or 20.
func (p *perMinute) UnmarshalText(text []byte) error {
	n, err := strconv.ParseFloat(strings.TrimSuffix(string(text), "/min"), 64)
	*p = perMinute(n)
	return err
}

// UnmarshalText reads x0.5.
func (f *factor) UnmarshalText(text []byte) error {
	n, err := strconv.ParseFloat(strings.TrimPrefix(string(text), "x"), 64)
	*f = factor(n)
	return err
}

// UnmarshalText reads x2 every 15s.
func (g *growth) UnmarshalText(text []byte) error {
	by, every, _ := strings.Cut(string(text), " every ")
	var f factor
	err := errors.Join(f.UnmarshalText([]byte(by)), g.every.UnmarshalText([]byte(every)))
	g.factor = float64(f)
	if g.factor <= 1 || g.factor > 10 || g.every < duration(time.Second) || g.every > duration(time.Hour) {
		return errForm
	}
	return err
}

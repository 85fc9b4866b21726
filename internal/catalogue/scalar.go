package catalogue

import (
	"encoding"
	"errors"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/text"
)

// The scalars with a form of their own, each 0 where it is absent. The schema says what the form is, for people too.
type (
	// duration is as text.ParseDuration reads it.
	duration time.Duration
	// figure is 12.5%, 20/min or x0.5; a percentage is a fraction.
	figure float64
	growth struct {
		factor float64
		every  duration
	}
)

// formats are those of the schema that are more than a pattern.
var formats = map[string]func(text string) error{
	"units": form[duration], "growth": form[growth],
	"days":     func(text string) error { return calendar.Window{Days: text}.Check() },
	"weekdays": func(text string) error { return calendar.Window{Weekdays: text}.Check() },
	"hours":    func(text string) error { return calendar.Window{Hours: text}.Check() },
}

// errForm tells that a text has not the form it must have; the schema's title says which that is.
var errForm = errors.New("another form")

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

// UnmarshalText reads 1h30m; nothing is 0, as the schema refuses it.
func (d *duration) UnmarshalText(b []byte) error {
	read, ok := text.ParseDuration(string(b))
	if *d = duration(read); len(b) > 0 && (!ok || read < time.Millisecond) {
		return errForm
	}
	return nil
}

func (d duration) String() string { return text.Duration(time.Duration(d)) }

// UnmarshalText reads a figure without its unit.
func (f *figure) UnmarshalText(b []byte) error {
	n, err := strconv.ParseFloat(strings.TrimSuffix(strings.Trim(string(b), "x%"), "/min"), 64)
	if *f = figure(n); strings.HasSuffix(string(b), "%") {
		*f /= 100
	}
	return err
}

// UnmarshalText reads x2 every 15s.
func (g *growth) UnmarshalText(b []byte) error {
	by, every, _ := strings.Cut(string(b), " every ")
	var f figure
	err := errors.Join(f.UnmarshalText([]byte(by)), g.every.UnmarshalText([]byte(every)))
	g.factor = float64(f)
	if g.factor <= 1 || g.factor > 10 || g.every < duration(time.Second) || g.every > duration(time.Hour) {
		return errForm
	}
	return err
}

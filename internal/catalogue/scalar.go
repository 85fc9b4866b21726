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

// Scalars with a form of their own; absent ones are 0. The schema says, for people too, what the form is.
type (
	// duration is a time as text.ParseDuration reads it.
	duration time.Duration
	// figure is 12.5%, 20/min or x0.5; a percentage becomes a fraction.
	figure float64
	growth struct {
		factor float64
		every  duration
	}
)

// formats holds the schema's formats that are more than a pattern.
var formats = map[string]func(text string) error{
	"units": form[duration], "growth": form[growth],
	"days":     func(text string) error { return calendar.Window{Days: text}.Check() },
	"weekdays": func(text string) error { return calendar.Window{Weekdays: text}.Check() },
	"hours":    func(text string) error { return calendar.Window{Hours: text}.Check() },
}

// errForm says that a text has the wrong form. The schema's title says which one is expected.
var errForm = errors.New("another form")

// form returns an error unless text can be decoded as a T.
func form[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](text string) error {
	if text == "" {
		return errForm
	}
	return P(new(T)).UnmarshalText([]byte(text))
}

// UnmarshalText reads a duration such as 1h30m. An empty text is 0; the schema refuses it.
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

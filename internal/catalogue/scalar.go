package catalogue

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/text"
)

// Scalars with a form of their own; absent ones are 0. The schema says, for people too, what the form is, and refuses
// any other, so that decoding need not.
type (
	// Duration is a length of time, at least 0. A catalogue has it as text.ParseDuration reads it, JSON in seconds.
	Duration time.Duration
	// figure is 12.5%, 20/min or x0.5; a percentage becomes a fraction.
	figure float64
	// growth is x2 every 15s.
	growth struct {
		factor figure
		every  Duration
	}
)

// formats holds the schema's formats that are more than a pattern.
var formats = map[string]func(text string) error{
	"duration 1ms-366d": between(time.Millisecond, text.LongestDuration),
	"duration 10s-1h":   between(10*time.Second, time.Hour),
	"duration 1m-15m":   between(time.Minute, 15*time.Minute),
	"growth": func(text string) error {
		_, every, _ := strings.Cut(text, " every ")
		return between(time.Second, time.Hour)(every)
	},
	"days":     func(text string) error { return calendar.Window{Days: text}.Check() },
	"weekdays": func(text string) error { return calendar.Window{Weekdays: text}.Check() },
	"hours":    func(text string) error { return calendar.Window{Hours: text}.Check() },
}

// errForm says that a text has the wrong form. The schema's title says which one is expected.
var errForm = errors.New("another form")

// between returns a check that a text is a duration from least to most.
func between(least, most time.Duration) func(string) error {
	return func(s string) error {
		if d, ok := text.ParseDuration(s); !ok || d < least || d > most {
			return errForm
		}
		return nil
	}
}

// UnmarshalText reads a duration such as 1h30m.
func (d *Duration) UnmarshalText(b []byte) error {
	read, _ := text.ParseDuration(string(b))
	*d = Duration(read)
	return nil
}

// String returns d as a catalogue has it.
func (d Duration) String() string { return text.Duration(time.Duration(d)) }

// MarshalJSON returns d in seconds.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).Seconds()) }

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
	return errors.Join(g.factor.UnmarshalText([]byte(by)), g.every.UnmarshalText([]byte(every)))
}

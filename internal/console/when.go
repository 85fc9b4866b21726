package console

import (
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/decision"
)

// Moment is an instant as a page shows it: in words, with the exact one beside it.
type Moment struct {
	// ISO is the instant in UTC, RFC 3339; UTC says the same to people.
	ISO, UTC string
	// Text is what is read: an age, a countdown, or date and time in the hospital's zone.
	Text string
	// Kind tells the script how to keep Text true: ago, in, due, which is in until it is ago, or at, which stays.
	Kind string
}

// Set reports whether there is an instant.
func (m Moment) Set() bool { return m.ISO != "" }

func (v *visit) moment(t time.Time, kind, text string) Moment {
	if t.IsZero() {
		return Moment{}
	}
	return Moment{ISO: decision.Instant(t), UTC: t.UTC().Format("2006-01-02 15:04:05") + " UTC", Text: text, Kind: kind}
}

// At is date and time in the hospital's zone.
func (v *visit) At(t time.Time) Moment { return v.moment(t, "at", v.clock(t)) }

// Ago is how long ago t was.
func (v *visit) Ago(t time.Time) Moment { return v.moment(t, "ago", v.ago(v.now.Sub(t))) }

// In is how long it is until t.
func (v *visit) In(t time.Time) Moment { return v.moment(t, "in", v.in(t.Sub(v.now))) }

// Due is how long it is until a deadline, or how long ago that was.
func (v *visit) Due(t time.Time) Moment {
	if v.Past(t) {
		return v.Ago(t)
	}
	return v.moment(t, "due", v.in(t.Sub(v.now)))
}

// Past reports whether t has come.
func (v *visit) Past(t time.Time) bool { return !t.After(v.now) }

// clock is date and time to the second, without the date where it is today's.
func (v *visit) clock(t time.Time) string {
	local, today := t.In(v.zone), v.now.In(v.zone)
	if local.Year() == today.Year() && local.YearDay() == today.YearDay() {
		return v.T("time.today", local.Format("15:04:05"))
	}
	return v.when(t)
}

// day is the date in the hospital's zone.
func (v *visit) day(t time.Time) string {
	if v.Lang == Portuguese {
		return t.In(v.zone).Format("02/01/2006")
	}
	return t.In(v.zone).Format("2 Jan 2006")
}

// ago is an age in words; console.js keeps it true by the same rules.
func (l Lang) ago(d time.Duration) string {
	if d < time.Minute {
		return l.T("time.just_now")
	}
	return l.T("time.ago", l.span(d))
}

// in is a countdown in words: with seconds below ten minutes.
func (l Lang) in(d time.Duration) string {
	if d = d.Round(time.Second); d <= 0 {
		return l.T("time.now")
	}
	return l.T("time.in", l.fine(d))
}

// fine is a span with its seconds, too, below ten minutes; d is whole seconds.
func (l Lang) fine(d time.Duration) string {
	if d >= time.Minute && d < 10*time.Minute && d%time.Minute > 0 {
		return l.span(d) + " " + l.span(d%time.Minute)
	}
	return l.span(d)
}

// span is a length of time by its largest units: 38 s, 14 min, 5 h 10 min, 3 days.
func (l Lang) span(d time.Duration) string {
	d = max(d, 0)
	minutes := int(d / time.Minute)
	switch {
	case d < time.Second:
		return strconv.Itoa(int(d/time.Millisecond)) + " ms"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < time.Hour:
		return strconv.Itoa(minutes) + " min"
	case d < 48*time.Hour && minutes%60 > 0:
		return strconv.Itoa(minutes/60) + " h " + strconv.Itoa(minutes%60) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(minutes/60) + " h"
	default:
		return l.Count("time.days", int64(d/(24*time.Hour)))
	}
}

// fromTo is a range of lengths of time, with the unit once where that is enough: 5 to 6 min.
func (l Lang) fromTo(least, most time.Duration) string {
	from, to := l.span(least), l.span(most)
	if from == to {
		return from
	}
	if number, unit, _ := strings.Cut(from, " "); strings.HasSuffix(to, " "+unit) && strings.Count(to, " ") == 1 {
		from = number
	}
	return l.T("time.from_to", from, to)
}

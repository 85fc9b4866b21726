package calendar

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Window is a time that comes again. The zero value of a field restricts nothing.
type Window struct {
	// Days of the month.
	Days Days
	// BusinessDays of the month: the first Monday to Friday that is no holiday is 1.
	BusinessDays Days `yaml:"businessDays"`
	Weekdays     Weekdays
	Hours        Hours
}

// Days is a set of 1 to 31.
type Days uint32

// Weekdays is a set of days of the week.
type Weekdays uint8

// Hours are the time from From until before Until, by the clock; Until may be on the next day.
type Hours struct{ From, Until time.Duration }

const day = 24 * time.Hour

// The members of the sets, in their order.
var (
	weekdayNames = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}
	dayNames     = strings.Fields("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31")
)

// UnmarshalText reads days of the month, such as 1-5 or 1,10-12.
func (d *Days) UnmarshalText(text []byte) error {
	members, err := parseSet(string(text), dayNames, false)
	*d = Days(members << 1)
	return err
}

// UnmarshalText reads days of the week, such as mon-fri or tue,thu. After sun comes mon.
func (w *Weekdays) UnmarshalText(text []byte) error {
	members, err := parseSet(string(text), weekdayNames, true)
	*w = Weekdays((members<<1 | members>>6) & 127)
	return err
}

// parseSet reads a list such as 1,3-5 of what names has, one bit for each; in a ring, the first name follows the last.
func parseSet(text string, names []string, ring bool) (members uint32, _ error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		n, last := slices.Index(names, from), slices.Index(names, to)
		if n < 0 || last < 0 || n > last && !ring {
			return 0, fmt.Errorf("%q has another form", text)
		}
		for ; n != last; n = (n + 1) % len(names) {
			members |= 1 << n
		}
		members |= 1 << last
	}
	return members, nil
}

// UnmarshalText reads h as ParseHours does.
func (h *Hours) UnmarshalText(text []byte) error {
	var ok bool
	if *h, ok = ParseHours(string(text)); !ok {
		return fmt.Errorf("%q has another form", text)
	}
	return nil
}

// ParseHours reads a time between two of the clock, such as 08:00-18:00; 22:00-04:00 ends on the next day.
func ParseHours(text string) (h Hours, ok bool) {
	from, until, _ := strings.Cut(text, "-")
	h.From, ok = parseClock(from)
	last, okUntil := parseClock(until)
	if h.Until = last; last < h.From {
		h.Until += day
	}
	return h, ok && okUntil && h.From < day && h.Until > h.From
}

func parseClock(text string) (time.Duration, bool) {
	if text == "24:00" {
		return day, true
	}
	t, err := time.Parse("15:04", text)
	return t.Sub(t.Truncate(day)), err == nil && len(text) == len("15:04")
}

// String returns d as it is read.
func (d Days) String() string { return writeSet(uint32(d>>1), dayNames) }

// String returns w as it is read.
func (w Weekdays) String() string { return writeSet(uint32(w>>1|w<<6), weekdayNames) }

// writeSet names the members, those in a row by the first and the last.
func writeSet(members uint32, names []string) string {
	var parts []string
	for n := 0; n < len(names); n++ {
		if members>>n&1 == 0 {
			continue
		}
		part, first := names[n], n
		for n+1 < len(names) && members>>(n+1)&1 == 1 {
			n++
		}
		if n > first {
			part += "-" + names[n]
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}

// String returns h as ParseHours reads it.
func (h Hours) String() string {
	until := h.Until
	if until > day {
		until -= day
	}
	return clock(h.From) + "-" + clock(until)
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d", d/time.Hour, d%time.Hour/time.Minute)
}

// String describes w: days 1-5, mon-fri, 08:00-18:00.
func (w Window) String() string {
	var parts []string
	add := func(label, text string) {
		if text != "" {
			parts = append(parts, label+text)
		}
	}
	add("days ", w.Days.String())
	add("business days ", w.BusinessDays.String())
	add("", w.Weekdays.String())
	if w.Hours != (Hours{}) {
		add("", w.Hours.String())
	}
	return cmp.Or(strings.Join(parts, ", "), "always")
}

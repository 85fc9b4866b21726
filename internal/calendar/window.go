package calendar

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Window is a recurring time, as people write it. An empty field restricts nothing.
type Window struct {
	// Days of the month, such as 1-5 or 1,10-12.
	Days string
	// BusinessDays of the month, counted from 1: Monday to Friday except holidays.
	BusinessDays string `yaml:"businessDays"`
	// Weekdays such as mon-fri or tue,thu. After sun comes mon.
	Weekdays string
	// Hours is a span such as 08:00-18:00, the end excluded; 22:00-04:00 ends on the next day.
	Hours string
}

// rule is a parsed Window. Its sets have one bit for each of their names.
type rule struct {
	Window
	days, business, weekdays uint32
	from, until              time.Duration
}

const day = 24 * time.Hour

// Names of the members of each set, in order.
var (
	weekdayNames = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}
	dayNames     = strings.Fields("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31")
)

// Check returns an error if w is invalid.
func (w Window) Check() error {
	_, err := w.read()
	return err
}

func (w Window) read() (rule, error) {
	r := rule{Window: w, until: day}
	var ok [4]bool
	r.days, ok[0] = parseSet(w.Days, dayNames, false)
	r.business, ok[1] = parseSet(w.BusinessDays, dayNames, false)
	r.weekdays, ok[2] = parseSet(w.Weekdays, weekdayNames, true)
	if ok[3] = w.Hours == ""; !ok[3] {
		r.from, r.until, ok[3] = parseHours(w.Hours)
	}
	if slices.Contains(ok[:], false) {
		return r, fmt.Errorf("the window %q has another form", w)
	}
	return r, nil
}

// parseSet parses a list such as 1,3-5 of names. In a ring, the first name follows the last. An empty list means all.
func parseSet(text string, names []string, ring bool) (members uint32, ok bool) {
	if text == "" {
		return 1<<len(names) - 1, true
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		n, last := slices.Index(names, from), slices.Index(names, to)
		if n < 0 || last < 0 || n > last && !ring {
			return 0, false
		}
		for ; n != last; n = (n + 1) % len(names) {
			members |= 1 << n
		}
		members |= 1 << last
	}
	return members, true
}

func parseHours(text string) (from, until time.Duration, ok bool) {
	first, second, _ := strings.Cut(text, "-")
	from, ok = parseClock(first)
	until, okUntil := parseClock(second)
	if until < from {
		until += day
	}
	return from, until, ok && okUntil && from < day && until > from
}

func parseClock(text string) (time.Duration, bool) {
	if text == "24:00" {
		return day, true
	}
	t, err := time.Parse("15:04", text)
	return t.Sub(t.Truncate(day)), err == nil && len(text) == len("15:04")
}

// String returns w in words: days 1-5, mon-fri, 08:00-18:00.
func (w Window) String() string {
	var parts []string
	for _, part := range [...]struct{ label, text string }{
		{"days ", w.Days}, {"business days ", w.BusinessDays}, {"", w.Weekdays}, {"", w.Hours},
	} {
		if part.text != "" {
			parts = append(parts, part.label+part.text)
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "always")
}

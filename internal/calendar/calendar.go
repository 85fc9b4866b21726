// Package calendar says when claims can be sent to a destination: in its windows, by the clock of its zone, and not on
// holidays.
//
// It is pure: a Calendar is made once from values and never changes. A window is open when the wall clock says so,
// hence twice where clocks are put back. A window across midnight belongs to the day on which it begins. It ends at
// midnight if a holiday follows.
package calendar

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The years that a Calendar knows: from firstYear until before endYear. It is open in all others.
const (
	firstYear = 2000
	endYear   = 2050
)

var firstDay, endDay = dayOf(firstYear, 1, 1), dayOf(endYear, 1, 1)

// Calendar says when a destination is open. It is safe for concurrent use. A nil Calendar is always open.
type Calendar struct {
	zone     *time.Location
	rules    []rule
	words    string // description of the windows
	holidays map[Day]Holiday
}

// NeverOpenError is the index of a window that is open on no day.
type NeverOpenError int

// Error implements error.
func (e NeverOpenError) Error() string { return fmt.Sprintf("window %d is never open", int(e)+1) }

// New returns a Calendar that is open in the windows (none: always) by the clock of zone, except on holidays. If a
// window is valid but never open, the error is a NeverOpenError.
func New(zone *time.Location, windows []Window, holidays []Holiday) (*Calendar, error) {
	c := &Calendar{zone: zone, holidays: make(map[Day]Holiday, len(holidays))}
	for _, h := range holidays {
		c.holidays[h.Day] = h
	}
	if len(windows) == 0 {
		windows = []Window{{}}
	}
	var words []string
	for i, w := range windows {
		r, err := w.read()
		if err != nil {
			return nil, err
		}
		d := firstDay
		for !c.begins(&r, d) {
			if d++; d == endDay {
				return nil, NeverOpenError(i)
			}
		}
		c.rules, words = append(c.rules, r), append(words, w.String())
	}
	c.words = strings.Join(words, "; ")
	return c, nil
}

// begins reports whether the window opens on d.
func (c *Calendar) begins(r *rule, d Day) bool {
	ofMonth := d.Time().Day()
	if _, closed := c.holidays[d]; closed || r.weekdays>>d.weekday()&1 == 0 || r.days>>(ofMonth-1)&1 == 0 {
		return false
	}
	if r.BusinessDays == "" {
		return true
	}
	business := 0
	for first := d - Day(ofMonth) + 1; first <= d; first++ {
		if c.isBusiness(first) {
			business++
		}
	}
	return c.isBusiness(d) && r.business>>(business-1)&1 == 1
}

func (c *Calendar) isBusiness(d Day) bool {
	_, closed := c.holidays[d]
	return !closed && d.weekday() < 5
}

// span reports whether t is open, and the time around t for which that surely holds. An open span ends with its window,
// a closed one at the next opening or at the end of the day.
func (c *Calendar) span(t time.Time) (from, until time.Time, open bool) {
	if c == nil {
		return time.Time{}, time.Time{}, true
	}
	local := t.In(c.zone)
	_, offset := local.Zone()
	today, now := DayOf(local), local.Unix()+int64(offset)
	begin, end := int64(today)*secondsPerDay, int64(today+1)*secondsPerDay // by the wall clock, like now
	openUntil, known := now, today >= firstDay && today < endDay
	if !known {
		openUntil = end
	}
	for d := today - 1; known && d <= today; d++ {
		for i := range c.rules {
			first, last := c.run(&c.rules[i], d)
			switch {
			case first > now:
				end = min(end, first)
			case last <= now:
				begin = max(begin, last)
			default:
				openUntil = max(openUntil, last)
			}
		}
	}
	if open = openUntil > now; open {
		end = openUntil
	}
	return c.instant(begin, local).In(t.Location()), c.instant(end, local).In(t.Location()), open
}

// run returns the seconds of the wall clock between which the window that begins on d is open. If none begins, both are
// the start of d.
func (c *Calendar) run(r *rule, d Day) (from, until int64) {
	midnight := int64(d) * secondsPerDay
	if !c.begins(r, d) {
		return midnight, midnight
	}
	from, until = midnight+int64(r.from/time.Second), midnight+int64(r.until/time.Second)
	if _, closed := c.holidays[d+1]; closed {
		until = min(until, midnight+secondsPerDay)
	}
	return from, until
}

// instant returns the time at which the wall clock shows clock. If the clock is changed between t and then, it returns
// the time of the change.
func (c *Calendar) instant(clock int64, t time.Time) time.Time {
	_, offset := t.Zone()
	at := time.Unix(clock-int64(offset), 0).In(c.zone)
	if _, other := at.Zone(); other != offset {
		start, end := t.ZoneBounds()
		if at.After(t) {
			return end
		}
		return start
	}
	return at
}

// Next returns t or, if that is closed, the next time that is open.
func (c *Calendar) Next(t time.Time) time.Time {
	for {
		_, until, open := c.span(t)
		if open {
			return t
		}
		t = until
	}
}

// LastSafe returns t or, if that is closed, the last millisecond before it that is open: by then a claim with the
// deadline t must be sent.
func (c *Calendar) LastSafe(t time.Time) time.Time {
	for {
		from, _, open := c.span(t)
		if open {
			return t
		}
		t = from.Add(-time.Millisecond)
	}
}

// Add returns the instant at which the calendar has been open for d since t.
func (c *Calendar) Add(t time.Time, d time.Duration) time.Time {
	for {
		t = c.Next(t)
		end := c.OpenUntil(t)
		left := end.Sub(t)
		if end.IsZero() || d <= left {
			return t.Add(d)
		}
		d, t = d-left, end
	}
}

// OpenUntil returns the end of the window that is open at t; another may follow at once. It returns t if none is open,
// and zero for a nil c.
func (c *Calendar) OpenUntil(t time.Time) time.Time {
	_, until, open := c.span(t)
	if !open {
		return t
	}
	return until
}

// IsOpen reports whether the calendar is open at t.
func (c *Calendar) IsOpen(t time.Time) bool {
	_, _, open := c.span(t)
	return open
}

// Why returns the reason why t is closed, or "".
func (c *Calendar) Why(t time.Time) string {
	if c.IsOpen(t) {
		return ""
	}
	if h, ok := c.holidays[DayOf(t.In(c.zone))]; ok {
		return h.String()
	}
	return "outside " + c.words
}

// Zone returns the zone of the windows.
func (c *Calendar) Zone() *time.Location { return c.zone }

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

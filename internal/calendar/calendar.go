// Package calendar tells when claims can be sent to where they go: in its windows, by the clock of its zone, and not on
// holidays.
//
// It is pure: a Calendar is made once, of values, and never changes. A window is open at an instant when the clock on the
// wall says so; where clocks are put back, it is open twice. A run across midnight belongs to the day that it begins on,
// and ends at midnight where a holiday follows.
package calendar

import (
	"fmt"
	"slices"
	"sort"
	"time"
)

// A Calendar knows the years from firstYear until before endYear. Before and after, it is open.
const (
	firstYear = 2000
	endYear   = 2050
)

// Calendar tells when a destination is open. It is safe for concurrent use. A nil one is always open.
type Calendar struct {
	zone     *time.Location
	windows  []window
	words    string // describe the windows
	holidays map[Day]Holiday
	offsets  []offset // of the zone, in their order
	// from and until bound the instants that it knows, in Unix seconds.
	from, until int64
}

type window struct {
	from, until int64 // seconds from midnight
	days        []Day // on which it begins, in their order
}

// offset is the zone's distance from UTC between two instants, in seconds.
type offset struct{ from, until, seconds int64 }

// NeverOpenError reports the window, by its index, that no day of the calendar is in.
type NeverOpenError int

// Error implements error.
func (e NeverOpenError) Error() string { return fmt.Sprintf("window %d is never open", int(e)+1) }

// New returns the Calendar of some windows, none for always, in a zone, which are closed on holidays. Its error is a
// NeverOpenError.
func New(zone *time.Location, windows []Window, holidays []Holiday) (*Calendar, error) {
	c := &Calendar{zone: zone, holidays: make(map[Day]Holiday, len(holidays))}
	for _, h := range holidays {
		c.holidays[h.Day] = h
	}
	begin, end := time.Date(firstYear, 1, 1, 0, 0, 0, 0, zone), time.Date(endYear, 1, 1, 0, 0, 0, 0, zone)
	c.from, c.until, c.offsets = begin.Unix(), end.Unix(), offsets(begin, end)
	if len(windows) == 0 {
		windows = []Window{{}}
	}
	for i, w := range windows {
		if w.Hours == (Hours{}) {
			w.Hours.Until = day
		}
		days := c.daysOf(&windows[i])
		if days == nil {
			return nil, NeverOpenError(i)
		}
		if i > 0 {
			c.words += "; "
		}
		c.words += windows[i].String()
		c.windows = append(c.windows, window{int64(w.Hours.From / time.Second), int64(w.Hours.Until / time.Second), days})
	}
	return c, nil
}

// offsets returns the offsets of the zone that from is in, until another instant.
func offsets(from, until time.Time) (all []offset) {
	for t := from; t.Before(until); {
		_, seconds := t.Zone()
		_, end := t.ZoneBounds()
		if end.IsZero() || end.After(until) {
			end = until
		}
		if !end.After(t) { // on the last day of some leap years
			end = t.Add(day)
		}
		if last := len(all) - 1; last >= 0 && all[last].seconds == int64(seconds) {
			all[last].until = end.Unix()
		} else {
			all = append(all, offset{t.Unix(), end.Unix(), int64(seconds)})
		}
		t = end
	}
	return all
}

// daysOf returns the days on which w begins.
func (c *Calendar) daysOf(w *Window) []Day {
	var days []Day
	business := 0
	for d, end := dayOf(firstYear-1, 12, 1), dayOf(endYear, 1, 1); d < end; d++ {
		_, _, ofMonth := d.Time().Date()
		if ofMonth == 1 {
			business = 0
		}
		_, isHoliday := c.holidays[d]
		weekday := d.weekday()
		isBusiness := !isHoliday && weekday != time.Saturday && weekday != time.Sunday
		if isBusiness {
			business++
		}
		if !isHoliday && (w.Days == 0 || w.Days>>ofMonth&1 == 1) && (w.Weekdays == 0 || w.Weekdays>>weekday&1 == 1) &&
			(w.BusinessDays == 0 || isBusiness && w.BusinessDays>>business&1 == 1) {
			days = append(days, d)
		}
	}
	return days
}

// Next returns the first instant from t on that is open.
func (c *Calendar) Next(t time.Time) time.Time {
	s := t.Unix()
	if c == nil || s < c.from || s >= c.until {
		return t
	}
	at := c.until
	for i := range c.windows {
		from, _ := c.windows[i].next(c, s)
		at = min(at, from)
	}
	if at == s {
		return t
	}
	return time.Unix(at, 0).In(t.Location())
}

// LastSafe returns the last instant until t, to the millisecond, that is open: the time by which a claim with that deadline
// must be sent.
func (c *Calendar) LastSafe(t time.Time) time.Time {
	s := t.Unix()
	if c == nil || s < c.from || s >= c.until {
		return t
	}
	end := c.from
	for i := range c.windows {
		end = max(end, c.windows[i].lastEnd(c, s))
	}
	if end > s {
		return t
	}
	return time.Unix(end, 0).Add(-time.Millisecond).In(t.Location())
}

// Add returns the instant by which it has been open for d since t.
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

// OpenUntil returns when the window that is open at t ends, at the latest that day; zero for never.
func (c *Calendar) OpenUntil(t time.Time) time.Time {
	s := t.Unix()
	if c == nil || s >= c.until {
		return time.Time{}
	}
	if s < c.from {
		return time.Unix(c.from, 0).In(t.Location())
	}
	end := s
	for i := range c.windows {
		if at, until := c.windows[i].next(c, s); at == s {
			end = max(end, until)
		}
	}
	return time.Unix(end, 0).In(t.Location())
}

// IsOpen reports whether t is open.
func (c *Calendar) IsOpen(t time.Time) bool { return c.Next(t).Equal(t) }

// Why returns why t is closed, empty where it is open.
func (c *Calendar) Why(t time.Time) string {
	if c.IsOpen(t) {
		return ""
	}
	s := t.Unix()
	if h, ok := c.Holiday(dayAt(s + c.offsets[c.offsetAt(s)].seconds)); ok {
		return h.String()
	}
	return "outside " + c.words
}

// Holiday returns the holiday that a day is, if it is one.
func (c *Calendar) Holiday(d Day) (Holiday, bool) {
	h, ok := c.holidays[d]
	return h, ok
}

// Windows describes the windows.
func (c *Calendar) Windows() string { return c.words }

// Zone returns the zone whose clock the windows go by.
func (c *Calendar) Zone() *time.Location { return c.zone }

// offsetAt returns the index of the offset that holds at an instant.
func (c *Calendar) offsetAt(s int64) int {
	return sort.Search(len(c.offsets), func(i int) bool { return s < c.offsets[i].until })
}

// wall returns the run of w that begins on a day, in seconds of the clock on the wall.
func (w *window) wall(c *Calendar, d Day) (from, until int64) {
	midnight := int64(d) * secondsPerDay
	from, until = midnight+w.from, midnight+w.until
	if _, closed := c.holidays[d+1]; closed {
		until = min(until, midnight+secondsPerDay)
	}
	return from, until
}

// next returns the first second from s on at which w is open, or the calendar's end; and when its run ends, or the offset
// that holds then.
func (w *window) next(c *Calendar, s int64) (at, end int64) {
	i := c.offsetAt(s)
	today := dayAt(s + c.offsets[i].seconds)
	at = c.until
	first, _ := slices.BinarySearch(w.days, today-1)
	for _, d := range w.days[first:] {
		from, until := w.wall(c, d)
		for _, o := range c.offsets[i:] {
			if until-o.seconds <= o.from { // and before all that follow
				break
			}
			opens, closes := max(from-o.seconds, o.from, s), min(until-o.seconds, o.until)
			if opens < closes && opens < at {
				at, end = opens, closes
			}
		}
		if d >= today && at < c.until {
			break
		}
	}
	return at, end
}

// lastEnd returns the second behind the last one until s at which w is open, or the calendar's begin.
func (w *window) lastEnd(c *Calendar, s int64) int64 {
	i := c.offsetAt(s)
	today := dayAt(s + c.offsets[i].seconds)
	end := c.from
	behind, _ := slices.BinarySearch(w.days, today+2)
	for _, d := range slices.Backward(w.days[:behind]) {
		from, until := w.wall(c, d)
		for _, o := range slices.Backward(c.offsets[:i+1]) {
			if from-o.seconds >= o.until { // and behind all that precede
				break
			}
			if closes := min(until-o.seconds, o.until, s+1); closes > max(from-o.seconds, o.from) {
				end = max(end, closes)
			}
		}
		if d < today && end > c.from {
			break
		}
	}
	return end
}

// Interval is from From until before Until.
type Interval struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// Openings returns when c is open between two instants, one behind the other.
func (c *Calendar) Openings(from, until time.Time) []Interval {
	var all []Interval
	for at := c.Next(from); at.Before(until); {
		end := c.OpenUntil(at)
		if end.IsZero() || end.After(until) {
			end = until
		}
		if last := len(all) - 1; last >= 0 && all[last].Until.Equal(at) {
			all[last].Until = end
		} else {
			all = append(all, Interval{at, end})
		}
		at = c.Next(end)
	}
	return all
}

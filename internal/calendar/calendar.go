// Package calendar tells when claims can be sent to where they go: in its windows, by the clock of its zone, and not on
// holidays.
//
// It is pure: a Calendar is made once, of values, and never changes. A window is open at an instant when the clock on the
// wall says so; where clocks are put back, it is open twice. A run across midnight belongs to the day that it begins on,
// and ends at midnight where a holiday follows.
package calendar

import (
	"cmp"
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
	// from and until bound the instants that it knows, in Unix seconds.
	from, until int64
}

// window is the runs for which one is open, in their order; an empty one stands at either end of what the calendar knows.
type window []run

// run is from an instant until before another, in Unix seconds.
type run struct{ from, until int64 }

// offset is the zone's distance from UTC for a time, in seconds.
type offset struct {
	run
	seconds int64
}

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
	c.from, c.until = begin.Unix(), end.Unix()
	offsets := offsets(begin, end)
	if len(windows) == 0 {
		windows = []Window{{}}
	}
	for i := range windows {
		days := c.daysOf(&windows[i])
		if days == nil {
			return nil, NeverOpenError(i)
		}
		if i > 0 {
			c.words += "; "
		}
		c.words += windows[i].String()
		c.windows = append(c.windows, c.window(days, windows[i].Hours, offsets))
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
			all = append(all, offset{run{t.Unix(), end.Unix()}, int64(seconds)})
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

// window returns the runs that begin on some days. Where clocks are put back, those of two days may alternate.
func (c *Calendar) window(days []Day, hours Hours, offsets []offset) window {
	if hours == (Hours{}) {
		hours.Until = day
	}
	runs := append(make(window, 0, len(days)+2), run{c.from, c.from})
	for _, d := range days {
		midnight := int64(d) * secondsPerDay
		from, until := midnight+int64(hours.From/time.Second), midnight+int64(hours.Until/time.Second)
		if _, closed := c.holidays[d+1]; closed {
			until = min(until, midnight+secondsPerDay)
		}
		for _, o := range offsets {
			r := run{max(from-o.seconds, o.from), min(until-o.seconds, o.until)}
			if r.from < r.until {
				runs = append(runs, r)
			}
		}
	}
	runs = append(runs, run{c.until, c.until})
	slices.SortStableFunc(runs, func(a, b run) int { return cmp.Compare(a.from, b.from) })
	return runs
}

// next returns the index of the first run that ends behind an instant that the calendar knows.
func (w window) next(s int64) int {
	return sort.Search(len(w), func(i int) bool { return s < w[i].until })
}

// Next returns the first instant from t on that is open.
func (c *Calendar) Next(t time.Time) time.Time {
	s := t.Unix()
	if c == nil || s < c.from || s >= c.until {
		return t
	}
	at := c.until
	for _, w := range c.windows {
		at = min(at, max(w[w.next(s)].from, s))
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
	for _, w := range c.windows {
		i := w.next(s)
		if w[i].from <= s {
			return t
		}
		end = max(end, w[i-1].until)
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
	for _, w := range c.windows {
		if r := w[w.next(s)]; r.from <= s {
			end = max(end, r.until)
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
	if h, ok := c.Holiday(DayOf(t.In(c.zone))); ok {
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

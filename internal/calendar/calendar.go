// Package calendar tells when claims can be sent to where they go: in its windows, by the clock of its zone, and not on
// holidays.
//
// It is pure: a Calendar is made once, of values, and never changes. A window is open at an instant when the clock on the
// wall says so; where clocks are put back, it is open twice. A run across midnight belongs to the day that it begins on,
// and ends at midnight where a holiday follows.
package calendar

import (
	"fmt"
	"math/bits"
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
	// offsets of the zone, by the instants from which they hold.
	offsets []offset
	// from and until bound the instants that it knows, in Unix seconds.
	from, until int64
}

type window struct {
	from, until int64 // seconds from midnight
	days        dayset
}

// offset is the zone's distance from UTC from an instant on, in seconds.
type offset struct{ from, seconds int64 }

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
		if days.empty() {
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
func offsets(from, until time.Time) []offset {
	var all []offset
	for t := from; !t.IsZero() && t.Before(until); {
		if _, seconds := t.Zone(); len(all) == 0 || all[len(all)-1].seconds != int64(seconds) {
			all = append(all, offset{t.Unix(), int64(seconds)})
		}
		_, end := t.ZoneBounds()
		if !end.IsZero() && !end.After(t) { // on the last day of some leap years
			end = t.Add(day)
		}
		t = end
	}
	return all
}

// daysOf returns the days on which w begins.
func (c *Calendar) daysOf(w *Window) dayset {
	var days dayset
	business := 0
	for d := firstDay; d < endDay; d++ {
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
			days.add(d)
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
		at = min(at, c.windows[i].next(c, s))
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
		if w := &c.windows[i]; w.next(c, s) == s {
			end = max(end, w.endAt(c, s))
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
	if last := len(c.offsets) - 1; c.offsets[last].from <= s { // as in Brazil since 2019
		return last
	}
	return sort.Search(len(c.offsets), func(i int) bool { return c.offsets[i].from > s }) - 1
}

// endOf returns when the offset of an index ends.
func (c *Calendar) endOf(i int) int64 {
	if i+1 < len(c.offsets) {
		return c.offsets[i+1].from
	}
	return c.until
}

// wall returns the run of w that begins on a day, in seconds of the clock on the wall.
func (w *window) wall(c *Calendar, d Day) (from, until int64) {
	midnight := int64(d) * secondsPerDay
	from, until = midnight+w.from, midnight+w.until
	if next := midnight + secondsPerDay; until > next {
		if _, closed := c.holidays[d+1]; closed {
			until = next
		}
	}
	return from, until
}

// next returns the first second from s on at which w is open, or the calendar's end.
func (w *window) next(c *Calendar, s int64) int64 {
	i := c.offsetAt(s)
	today := dayAt(s + c.offsets[i].seconds)
	at := c.until
	for d := w.days.next(today - 1); d < endDay; d = w.days.next(d + 1) {
		at = min(at, w.firstIn(c, d, s, i))
		if at == s || d >= today && at < c.until {
			break
		}
	}
	return at
}

// firstIn returns the first second from s on, at which the offset i holds, of the run that begins on a day; the calendar's
// end if there is none.
func (w *window) firstIn(c *Calendar, d Day, s int64, i int) int64 {
	from, until := w.wall(c, d)
	for ; i < len(c.offsets); i++ {
		o := c.offsets[i]
		if at := max(from-o.seconds, o.from, s); at < min(until-o.seconds, c.endOf(i)) {
			return at
		}
		if i+1 == len(c.offsets) || until-c.offsets[i+1].seconds <= c.offsets[i+1].from {
			break
		}
	}
	return c.until
}

// lastEnd returns the second behind the last one until s at which w is open, or the calendar's begin.
func (w *window) lastEnd(c *Calendar, s int64) int64 {
	i := c.offsetAt(s)
	today := dayAt(s + c.offsets[i].seconds)
	end := c.from
	for d := w.days.last(today + 1); d >= firstDay; d = w.days.last(d - 1) {
		end = max(end, w.lastIn(c, d, s, i))
		if end > s || d < today && end > c.from {
			break
		}
	}
	return end
}

// lastIn is firstIn from the other side.
func (w *window) lastIn(c *Calendar, d Day, s int64, i int) int64 {
	from, until := w.wall(c, d)
	for ; i >= 0; i-- {
		o := c.offsets[i]
		if end := min(until-o.seconds, c.endOf(i), s+1); end > max(from-o.seconds, o.from) {
			return end
		}
		if i == 0 || from-c.offsets[i-1].seconds >= o.from {
			break
		}
	}
	return c.from
}

// endAt returns when the run of w ends that is open at s, or the offset that holds then.
func (w *window) endAt(c *Calendar, s int64) int64 {
	i := c.offsetAt(s)
	o := c.offsets[i]
	today := dayAt(s + o.seconds)
	for d := today - 1; d <= today; d++ {
		from, until := w.wall(c, d)
		if w.days.has(d) && from <= s+o.seconds && s+o.seconds < until {
			return min(until-o.seconds, c.endOf(i))
		}
	}
	return s
}

// The days that are looked at.
var (
	firstDay = dayOf(firstYear, 1, 1) - 31
	endDay   = dayOf(endYear, 1, 1) + 2
)

// dayset is a set of days from firstDay until before endDay.
type dayset [(endYear-firstYear)*366/64 + 2]uint64

func (s *dayset) add(d Day) { s[uint(d-firstDay)/64] |= 1 << (uint(d-firstDay) % 64) }

func (s *dayset) has(d Day) bool {
	return d >= firstDay && d < endDay && s[uint(d-firstDay)/64]>>(uint(d-firstDay)%64)&1 == 1
}

func (s *dayset) empty() bool { return s.next(firstDay) == endDay }

// next returns the first day from d on, or endDay.
func (s *dayset) next(d Day) Day {
	n := uint(max(d, firstDay) - firstDay)
	for i, mask := int(n/64), ^uint64(0)<<(n%64); i < len(s); i, mask = i+1, ^uint64(0) {
		if word := s[i] & mask; word != 0 {
			return firstDay + Day(i*64+bits.TrailingZeros64(word))
		}
	}
	return endDay
}

// last returns the last day until d, or one before firstDay.
func (s *dayset) last(d Day) Day {
	if d < firstDay {
		return firstDay - 1
	}
	n := uint(min(d, endDay-1) - firstDay)
	for i, mask := int(n/64), ^uint64(0)>>(63-n%64); i >= 0; i, mask = i-1, ^uint64(0) {
		if word := s[i] & mask; word != 0 {
			return firstDay + Day(i*64+63-bits.LeadingZeros64(word))
		}
	}
	return firstDay - 1
}

// Interval is from From until before Until.
type Interval struct{ From, Until time.Time }

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

package calendar

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Window is a time that comes again. The zero value of a field restricts nothing.
type Window struct {
	// Days of the month.
	Days Days
	// BusinessDays of the month: the first Monday to Friday that is no holiday is 1.
	BusinessDays Days
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

var weekdayNames = [7]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// ParseDays reads days of the month, such as 1-5 or 1,10-12.
func ParseDays(text string) (days Days, ok bool) {
	return days, ranges(text, func(from, to string) bool {
		first, err := strconv.Atoi(from)
		last, errLast := strconv.Atoi(to)
		if err != nil || errLast != nil || first < 1 || first > last || last > 31 {
			return false
		}
		for n := first; n <= last; n++ {
			days |= 1 << n
		}
		return true
	})
}

// ParseWeekdays reads days of the week, such as mon-fri or tue,thu.
func ParseWeekdays(text string) (weekdays Weekdays, ok bool) {
	numbers := make(map[string]int)
	for n, name := range weekdayNames {
		numbers[name] = n
	}
	return weekdays, ranges(text, func(from, to string) bool {
		n, known := numbers[from]
		last, knownLast := numbers[to]
		for ; n != last; n = (n + 1) % 7 {
			weekdays |= 1 << n
		}
		weekdays |= 1 << last
		return known && knownLast
	})
}

// ranges hands over each part of a list such as 1,3-5, both ends of it, and reports whether take took them all.
func ranges(text string, take func(from, to string) bool) bool {
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		if !take(from, to) {
			return false
		}
	}
	return true
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

// String returns d as ParseDays reads it.
func (d Days) String() string {
	return list(31, func(n int) bool { return d>>(n+1)&1 == 1 }, func(n int) string { return strconv.Itoa(n + 1) })
}

// String returns w as ParseWeekdays reads it.
func (w Weekdays) String() string {
	return list(7, func(n int) bool { return w>>((n+1)%7)&1 == 1 }, func(n int) string { return weekdayNames[(n+1)%7] })
}

// list names the members of 0 to n-1, those in a row by the first and the last.
func list(n int, has func(int) bool, name func(int) string) string {
	var parts []string
	for first := 0; first < n; first++ {
		if !has(first) {
			continue
		}
		last := first
		for last+1 < n && has(last+1) {
			last++
		}
		part := name(first)
		if last > first {
			part += "-" + name(last)
		}
		parts, first = append(parts, part), last
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
	if w.Days != 0 {
		parts = append(parts, "days "+w.Days.String())
	}
	if w.BusinessDays != 0 {
		parts = append(parts, "business days "+w.BusinessDays.String())
	}
	if w.Weekdays != 0 {
		parts = append(parts, w.Weekdays.String())
	}
	if w.Hours != (Hours{}) {
		parts = append(parts, w.Hours.String())
	}
	if parts == nil {
		return "always"
	}
	return strings.Join(parts, ", ")
}

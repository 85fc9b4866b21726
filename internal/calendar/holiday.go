package calendar

import (
	"cmp"
	_ "embed"
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Day is a date, in days since 1970-01-01.
type Day int32

const secondsPerDay = 24 * 60 * 60

// DayOf returns the date of t, which is not before 1970, in t's zone.
func DayOf(t time.Time) Day {
	_, offset := t.Zone()
	return Day((t.Unix() + int64(offset)) / secondsPerDay)
}

// Time returns the beginning of d in UTC.
func (d Day) Time() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }

// weekday returns d's index in weekdayNames.
func (d Day) weekday() int { return int(d+3) % 7 }

func dayOf(year int, month time.Month, day int) Day {
	return DayOf(time.Date(year, month, day, 0, 0, 0, 0, time.UTC))
}

// Holiday is a date on which a calendar is closed.
type Holiday struct {
	Day Day
	// Name of the holiday, and the law that makes it one.
	Name, Law string
}

// String returns the name of h and its law.
func (h Holiday) String() string {
	if h.Law == "" {
		return h.Name
	}
	return h.Name + " (" + h.Law + ")"
}

//go:embed holidays.csv
var table string

// rows returns the table: set, date, name, law.
var rows = sync.OnceValue(func() [][]string {
	r := csv.NewReader(strings.NewReader(table))
	r.Comment = '#'
	all, err := r.ReadAll()
	if err != nil {
		panic(err) // cannot be: the tests read the table
	}
	return all
})

// dateOf returns the day of a year that the table's date means.
func dateOf(year int, date string) (d Day) {
	fixed, shifts, _ := strings.Cut(date, " ")
	if fromEaster, movable := strings.CutPrefix(fixed, "easter"); movable {
		days, _ := strconv.Atoi(fromEaster)
		d = easter(year) + Day(days)
	} else {
		t, _ := time.Parse("01-02", fixed)
		d = dayOf(year, t.Month(), t.Day())
	}
	for shift := range strings.FieldsSeq(shifts) {
		if by, ok := strings.CutPrefix(shift, weekdayNames[d.weekday()]); ok {
			days, _ := strconv.Atoi(by)
			return d + Day(days)
		}
	}
	return d
}

// easter returns Easter Sunday of a year from 1900 to 2099 (Carter).
func easter(year int) Day {
	moon := (204-11*(year%19))%30 + 21
	if moon > 48 {
		moon--
	}
	return dayOf(year, time.March, moon+7-(year+year/4+moon+1)%7)
}

// Sets lists the names of the sets of holidays: BR, one for each state, and BR-BANKS.
func Sets() (names []string) {
	for _, row := range rows() {
		names = append(names, row[0])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Holidays returns the holidays of a set, with the national ones, by date; nil if there is no such set.
func Holidays(set string) (all []Holiday) {
	if !slices.Contains(Sets(), set) {
		return nil
	}
	for _, row := range rows() {
		for year := firstYear; year < endYear && (row[0] == "BR" || row[0] == set); year++ {
			all = append(all, Holiday{dateOf(year, row[1]), row[2], row[3]})
		}
	}
	slices.SortStableFunc(all, func(a, b Holiday) int { return cmp.Compare(a.Day, b.Day) })
	return slices.CompactFunc(all, func(a, b Holiday) bool { return a.Day == b.Day })
}

const (
	// maxDays bounds the days of all events in a file.
	maxDays = 200_000
	// maxName is the longest name of a holiday, in characters.
	maxName = 100
)

// icsEvent holds an event's properties.
type icsEvent struct {
	name, status, rule string
	from, until        time.Time
}

// fold matches the break in a line that continues on the next. folded replaces it.
var fold = regexp.MustCompile(`\r?\n[ \t]`)

const folded = "\x00"

// ReadICS returns the days of the events in an iCalendar file (RFC 5545), and of its cancelled events, which remove
// holidays of other sets. A date or rule that is not understood is an error that names its line.
func ReadICS(content string) (added, cancelled []Holiday, err error) {
	var event *icsEvent
	inside, found, number := "", false, 1 // inside is a component within the event, such as an alarm
	for line := range strings.SplitSeq(fold.ReplaceAllString(strings.TrimPrefix(content, "\ufeff"), folded), "\n") {
		name, value, ok := strings.Cut(strings.ReplaceAll(line, folded, ""), ":")
		name, _, _ = strings.Cut(strings.ToUpper(strings.TrimSpace(name)), ";")
		value = strings.TrimSpace(value)
		switch component := strings.ToUpper(value); {
		case !ok && name != "":
			err = fmt.Errorf("it is no NAME:VALUE of the iCalendar format")
		case inside != "":
			if name == "END" && component == inside {
				inside = ""
			}
		case name == "BEGIN" && component == "VEVENT":
			event, found = &icsEvent{name: "feriado"}, true
		case event == nil:
		case name == "BEGIN":
			inside = component
		case name == "END":
			to := &added
			if event.status == "CANCELLED" {
				to = &cancelled
			}
			if *to, err = event.days(*to); len(added)+len(cancelled) > maxDays {
				err = fmt.Errorf("more than %d days", maxDays)
			}
			event = nil
		default:
			err = event.read(name, value)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", number, err)
		}
		number += 1 + strings.Count(line, folded)
	}
	if !found || event != nil {
		return nil, nil, fmt.Errorf("it has no event (BEGIN:VEVENT … END:VEVENT)")
	}
	return added, cancelled, nil
}

// read reads one property of an event.
func (e *icsEvent) read(name, value string) (err error) {
	switch name {
	case "SUMMARY":
		title := []rune(strings.ReplaceAll(value, `\`, ""))
		e.name = string(title[:min(len(title), maxName)])
	case "STATUS":
		e.status = strings.ToUpper(value)
	case "DTSTART":
		if e.from, err = wholeDay(value); err == nil {
			err = e.repeat()
		}
	case "DTEND":
		e.until, err = wholeDay(value)
	case "RRULE":
		e.rule = strings.ToUpper(value)
		err = e.repeat()
	case "DURATION", "RDATE", "EXDATE", "RECURRENCE-ID", "EXRULE":
		err = fmt.Errorf("%s is not understood: give each day an event of its own", name)
	}
	return err
}

// repeat returns an error if RRULE does not mean each year on the day of DTSTART. Either may come first.
func (e *icsEvent) repeat() error {
	if e.rule == "" || e.from.IsZero() {
		return nil
	}
	same := map[string]string{"FREQ": "YEARLY", "INTERVAL": "1", "BYMONTH": strconv.Itoa(int(e.from.Month())),
		"BYMONTHDAY": strconv.Itoa(e.from.Day()), "WKST": ""}
	for part := range strings.SplitSeq(e.rule, ";") {
		key, value, _ := strings.Cut(part, "=")
		if want, known := same[key]; !known || want != "" && want != value {
			return fmt.Errorf("an event that comes again by %q, not by FREQ=YEARLY on the day of its DTSTART", part)
		}
	}
	return nil
}

func wholeDay(value string) (time.Time, error) {
	t, err := time.Parse("20060102", value)
	if err != nil {
		return t, fmt.Errorf("%q is no whole day, such as DTSTART;VALUE=DATE:20260305", value)
	}
	return t, nil
}

// days adds the days of an event that a Calendar knows, in each year if it is yearly.
func (e *icsEvent) days(all []Holiday) ([]Holiday, error) {
	if e.until.IsZero() {
		e.until = e.from.AddDate(0, 0, 1)
	}
	length := e.until.Sub(e.from)
	if e.from.IsZero() || length <= 0 || length > 366*day {
		return nil, fmt.Errorf("the event %q has no DTSTART, ends before it begins, or has more than a year", e.name)
	}
	for year := range max(endYear-e.from.Year(), 0) {
		from := e.from.AddDate(year, 0, 0)
		if year > 0 && (e.rule == "" || from.Day() != e.from.Day()) { // February 29 of a common year
			continue
		}
		for d := max(DayOf(from), firstDay); d < DayOf(from.Add(length)); d++ {
			all = append(all, Holiday{Day: d, Name: e.name})
		}
	}
	return all, nil
}

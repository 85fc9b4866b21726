package calendar

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	icsDay = "20060102"
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
	t, err := time.Parse(icsDay, value)
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

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
	// maxDays of all events.
	maxDays = 200_000
	// icsYears is how often a day comes again that comes each year.
	icsYears = 40
	// maxName is the characters of a holiday's name.
	maxName = 100
)

// icsEvent is an event as its file has it.
type icsEvent struct {
	name, status string
	from, until  time.Time
	yearly       bool
}

// fold is where a line goes on with the next, which begins with a space; folded stands in its place.
var fold = regexp.MustCompile(`\r?\n[ \t]`)

const folded = "\x00"

// ReadICS returns the days of the events of a file in the iCalendar format (RFC 5545), and those of its cancelled events,
// which another set's are not to be. What says when an event is, and is not understood, is an error that names its line.
func ReadICS(content string) (added, cancelled []Holiday, err error) {
	var event *icsEvent
	inside, found, number := "", false, 1 // inside is a component of the event's, such as an alarm
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

// read takes up one property of an event.
func (e *icsEvent) read(name, value string) (err error) {
	switch name {
	case "SUMMARY":
		title := []rune(strings.ReplaceAll(value, `\`, ""))
		e.name = string(title[:min(len(title), maxName)])
	case "STATUS":
		e.status = strings.ToUpper(value)
	case "DTSTART":
		e.from, err = wholeDay(value)
	case "DTEND":
		e.until, err = wholeDay(value)
	case "RRULE":
		e.yearly, err = true, e.repeat(strings.ToUpper(value))
	case "DURATION", "RDATE", "EXDATE", "RECURRENCE-ID", "EXRULE":
		err = fmt.Errorf("%s is not understood: give each day an event of its own", name)
	}
	return err
}

// repeat returns an error unless an event comes again by a rule each year, on the day of its DTSTART.
func (e *icsEvent) repeat(rule string) error {
	same := map[string]string{"FREQ": "YEARLY", "INTERVAL": "1", "BYMONTH": strconv.Itoa(int(e.from.Month())),
		"BYMONTHDAY": strconv.Itoa(e.from.Day()), "WKST": ""}
	for part := range strings.SplitSeq(rule, ";") {
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

// days adds the days of an event, of each year where it comes again.
func (e *icsEvent) days(all []Holiday) ([]Holiday, error) {
	if e.until.IsZero() {
		e.until = e.from.AddDate(0, 0, 1)
	}
	length := e.until.Sub(e.from)
	if e.from.IsZero() || length <= 0 || length > 366*day {
		return nil, fmt.Errorf("the event %q has no DTSTART, ends before it begins, or has more than a year", e.name)
	}
	for year := range icsYears {
		from := e.from.AddDate(year, 0, 0)
		if year > 0 && (!e.yearly || from.Day() != e.from.Day()) { // a February 29 that there is none of
			continue
		}
		for d := DayOf(from); d < DayOf(from.Add(length)); d++ {
			all = append(all, Holiday{Day: d, Name: e.name})
		}
	}
	return all, nil
}

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/calendar"
	"retry-worker/internal/catalogue"
)

type calendarFlags struct{ destination, policy, policiesFile, at string }

func (c *cli) calendarCommand() *cobra.Command {
	var deadline string
	check := calendarCommand("check", "Tell whether an instant is open, why it is closed, and by when a deadline must be met",
		`  retry-worker calendar check --destination unimed-sp --at 2026-12-25T10:00:00-03:00
  retry-worker calendar check --destination unimed-sp --deadline 2026-12-31T23:59:00-03:00`,
		func(found *calendar.Calendar, at time.Time) error { return c.calendarCheck(found, at, deadline) })
	check.Flags().StringVar(&deadline, "deadline", "", "deadline of a claim, such as 2026-12-31T23:59:00-03:00")
	return group("calendar", "Show when claims can be sent to a destination, or why not",
		"Reads the policies file alone. What its calendars hold stands in docs/calendars.md.",
		calendarCommand("show", "Show a month of a calendar, and its next openings",
			`  retry-worker calendar show --destination unimed-sp
  retry-worker calendar show --destination unimed-sp --at 2026-12-24T17:00:00-03:00`, c.calendarShow), check)
}

// calendarCommand returns a command that does something with a calendar, at an instant in its zone.
func calendarCommand(use, short, example string, do func(*calendar.Calendar, time.Time) error) *cobra.Command {
	var f calendarFlags
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example,
		RunE: func(*cobra.Command, []string) error {
			found, at, err := f.calendar()
			if err != nil {
				return err
			}
			return do(found, at)
		},
	}
	cmd.Flags().StringVar(&f.destination, "destination", "", "destination whose calendar it is")
	cmd.Flags().StringVar(&f.policy, "policy", "", "policy whose calendar it is, of one without destinations")
	cmd.Flags().StringVar(&f.at, "at", "",
		"instant, such as 2026-12-24T17:00:00-03:00 (without a zone: UTC); left out: now")
	policiesFileFlag(cmd, &f.policiesFile)
	return cmd
}

// calendar returns the calendar that the flags name, and the instant in its zone.
func (f *calendarFlags) calendar() (*calendar.Calendar, time.Time, error) {
	from, err := loadCatalogue(f.policiesFile)
	if err != nil {
		return nil, time.Time{}, err
	}
	at, noInstant := nowOr("--at", f.at)
	found, err := f.find(from)
	if err := wrongUse(noInstant, err); err != nil {
		return nil, time.Time{}, err
	}
	return found, at.In(found.Zone()), nil
}

func (f *calendarFlags) find(from *catalogue.Catalogue) (*calendar.Calendar, error) {
	if (f.destination == "") == (f.policy == "") {
		return nil, errors.New("expected --destination or --policy, one of them")
	}
	name, found := f.destination, from.Destination(f.destination).Calendar
	if f.policy != "" {
		if err := knownPolicy(from, f.policy); err != nil {
			return nil, err
		}
		name, found = f.policy, from.Policies[f.policy].Opening("").Calendar
	}
	if found == nil {
		return nil, fmt.Errorf("%s has no calendar: it is always open", name)
	}
	return found, nil
}

// The shapes that `calendar show -o json` and `calendar check -o json` print.
type (
	calendarMonth struct {
		Zone    string              `json:"zone"`
		Windows string              `json:"windows"`
		Days    []calendarDay       `json:"days"`
		Next    []calendar.Interval `json:"next"`
	}
	calendarDay struct {
		Date    string              `json:"date"`
		Open    []calendar.Interval `json:"open"`
		Holiday string              `json:"holiday,omitempty"`
	}
	calendarInstant struct {
		At   time.Time `json:"at"`
		Open bool      `json:"open"`
		Why  string    `json:"why,omitempty"`
		Next time.Time `json:"next"`
		// LastSafe is until when a claim with the deadline can be sent.
		LastSafe *time.Time `json:"lastSafe,omitempty"`
	}
)

func (c *cli) calendarShow(found *calendar.Calendar, at time.Time) error {
	return c.print(monthOf(found, at), "days: date open holiday")
}

func monthOf(found *calendar.Calendar, at time.Time) calendarMonth {
	m := calendarMonth{Zone: found.Zone().String(), Windows: found.Windows()}
	first := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, at.Location())
	for d := first; d.Month() == at.Month(); d = d.AddDate(0, 0, 1) {
		day := calendarDay{Date: d.Format(time.DateOnly), Open: openings(found, d, d.AddDate(0, 0, 1))}
		if h, ok := found.Holiday(calendar.DayOf(d)); ok {
			day.Holiday = h.String()
		}
		m.Days = append(m.Days, day)
	}
	const shown = 5
	next := openings(found, found.Next(at), found.Next(at).AddDate(1, 0, 0))
	m.Next = next[:min(len(next), shown)]
	return m
}

// openings are never null in JSON.
func openings(found *calendar.Calendar, from, until time.Time) []calendar.Interval {
	return append([]calendar.Interval{}, found.Openings(from, until)...)
}

func (c *cli) calendarCheck(found *calendar.Calendar, at time.Time, deadline string) error {
	i := calendarInstant{At: at, Open: found.IsOpen(at), Why: found.Why(at), Next: found.Next(at)}
	if deadline != "" {
		by, err := instantOf("--deadline", deadline)
		if err != nil {
			return err
		}
		last := found.LastSafe(by.In(found.Zone()))
		i.LastSafe = &last
	}
	return c.print(i)
}

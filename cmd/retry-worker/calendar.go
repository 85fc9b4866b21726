package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/api"
	"retry-worker/internal/calendar"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
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
	at, noInstant := instantOf("at", f.at)
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
		if err := oneOf("policy", f.policy, from.Policies.Names()); err != nil {
			return nil, err
		}
		name, found = f.policy, from.Policies[f.policy].Opening("").Calendar
	}
	if found == nil {
		return nil, fmt.Errorf("%s has no calendar: it is always open", name)
	}
	return found, nil
}

// instantOf reads an instant of a flag; now where it is empty.
func instantOf(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Now().Truncate(time.Second), nil
	}
	return instantFlag(flag, text)
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
	m := monthOf(found, at)
	return c.print(m, func() { c.printMonth(&m, at) })
}

func (c *cli) printMonth(m *calendarMonth, at time.Time) {
	fmt.Fprintf(c.out, "%s, %s\n\n", m.Windows, m.Zone)
	for i, d := range m.Days {
		hours := make([]string, len(d.Open))
		for i, o := range d.Open {
			until := o.Until.Format("15:04")
			if until == "00:00" {
				until = "24:00"
			}
			hours[i] = o.From.Format("15:04") + "-" + until
		}
		date := at.AddDate(0, 0, i+1-at.Day())
		fmt.Fprintf(c.out, "%s %s  %s\n", date.Format("Mon"), d.Date, cmp.Or(strings.Join(hours, ", "), d.Holiday, "-"))
	}
	fmt.Fprintf(c.out, "\nnext openings\n")
	for _, o := range m.Next {
		fmt.Fprintf(c.out, "%s until %s\n", o.From.Format("2006-01-02 15:04"), o.Until.Format("2006-01-02 15:04"))
	}
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
		by, err := instantFlag("deadline", deadline)
		if err != nil {
			return err
		}
		last := found.LastSafe(by.In(found.Zone()))
		i.LastSafe = &last
	}
	return c.print(i, func() {
		if i.Open {
			fmt.Fprintf(c.out, "%s is open\n", at.Format(time.RFC3339))
		} else {
			fmt.Fprintf(c.out, "%s is closed: %s\nopens %s\n", at.Format(time.RFC3339), i.Why, i.Next.Format(time.RFC3339))
		}
		if i.LastSafe != nil {
			fmt.Fprintf(c.out, "can be sent until %s\n", i.LastSafe.Format(time.RFC3339))
		}
	})
}

func (c *cli) destinationsCommand() *cobra.Command {
	return group("destinations", "List where claims are submitted, show one, hold its claims, send one ahead or "+
		"release them",
		speaksToAPI+"Roles: viewer lists and shows; operator gives orders, each with a reason, which the audit "+
			"keeps.\n"+
			"Exit 0 when it is done, 1 when the API refuses or does not answer, 2 for wrong use.",
		c.destinationsListCommand(), c.destinationCommand(&cobra.Command{
			Use:     "show NAME",
			Short:   "Show one destination: why it is how it is, and the claims whose turn is next",
			Example: `  retry-worker destinations show unimed-sp`,
		}, "", nil),
		c.orderCommand("hold", "Hold all claims of a destination until a time; then one is sent ahead", holdExample, true, false),
		c.orderCommand("release", "Let the claims of a destination go: at a pace, or all of them, whatever fails, until a time",
			releaseExample, true, true),
		c.orderCommand("probe", "Send one claim ahead now; once it goes through, the others follow at a growing pace",
			probeExample, false, false))
}

func (c *cli) destinationsListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List destinations by name: the state of each, and how many claims wait for it",
		Example: `  retry-worker destinations list
  retry-worker destinations list -o json | jq -r '.items[] | select(.state != "up") | .name'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(cmd.Context(), c, "/destinations", nil, c.printDestinations)
		},
	}
	c.server.register(cmd.Flags())
	return cmd
}

func (c *cli) printDestinations(list *api.Page[api.Destination]) {
	const head = "NAME, STATE, HELD, SINCE, DEADLINE, CAUSE, OLDEST, NEXT TEST, OPENS, EXPECTED BACK"
	tableOf(c, head, func(d *api.Destination) []any {
		back := "-"
		if d.ExpectedBack != nil {
			back = minute(d.ExpectedBack.Median)
		}
		return []any{d.Name, d.State, d.Held, minute(d.Since), minuteOrNone(d.NearestDeadline), cmp.Or(value(d.Cause), "-"),
			minuteOrNone(d.OldestHeldSince), minuteOrNone(d.NextTest), minuteOrNone(d.OpensAt), back}
	}).print(list.Items)
	if len(list.Items) == 0 {
		fmt.Fprintln(c.out, "No destination is configured, and none was asked for yet.")
	}
}

// order is what a person orders of a destination, as the API takes it.
type order struct {
	Reason    string  `json:"reason"`
	Until     string  `json:"until,omitempty"`
	PerMinute float64 `json:"perMinute,omitempty"`
}

const (
	holdExample    = `  retry-worker destinations hold unimed-sp --until 2026-03-01T18:00:00-03:00 --reason "em manutenção"`
	releaseExample = `  retry-worker destinations release unimed-sp --per-minute 20 --reason "portal voltou"
  retry-worker destinations release unimed-sp --until 2026-03-01T18:00:00-03:00 --reason "o portal funciona"`
	probeExample = `  retry-worker destinations probe unimed-sp --reason "operadora avisou que voltou"`
)

// orderCommand returns a command that orders something of one destination: until an instant, at a pace, or either.
func (c *cli) orderCommand(verb, short, example string, until, pace bool) *cobra.Command {
	var o order
	cmd := c.destinationCommand(&cobra.Command{Use: verb + " NAME", Short: short, Example: example}, "/"+verb,
		func() (any, error) { return &o, errors.Join(checkReason(o.Reason), o.check(until, pace)) })
	cmd.Flags().StringVar(&o.Reason, "reason", "", "why, in a few words (required)")
	if until {
		cmd.Flags().StringVar(&o.Until, "until", "", "instant such as 2026-03-01T18:00:00-03:00, at most 7 days ahead")
	}
	if pace {
		cmd.Flags().Float64Var(&o.PerMinute, "per-minute", 0,
			"how many claims go in a minute, at most the destination's pace.most")
	}
	return cmd
}

// check says what is wrong with the flags that an order has, and writes --until as the API does.
func (o *order) check(until, pace bool) error {
	if pace && (o.PerMinute > 0) == (o.Until != "") {
		return fmt.Errorf("--per-minute is %g and --until %q, expected a pace above 0 or an instant, and not both",
			o.PerMinute, o.Until)
	}
	if !until || o.PerMinute > 0 {
		return nil
	}
	t, ok := decision.ParseInstant(o.Until)
	if !ok {
		return fmt.Errorf("--until is %q, expected an instant such as 2026-03-01T18:00:00-03:00", o.Until)
	}
	o.PerMinute, o.Until = 0, t.Format(time.RFC3339Nano)
	return nil
}

// destinationCommand completes a command about one destination, as about does.
func (c *cli) destinationCommand(cmd *cobra.Command, address string, body func() (any, error)) *cobra.Command {
	cmd.Args = takes(1, 1)
	return about(c, cmd, "/destinations/", address, body, c.printDestination)
}

// printDestination prints one, a line for each thing that is known of it, and below it what waits.
func (c *cli) printDestination(d *api.DestinationDetail) {
	line, done := c.sheet()
	line("destination", d.Name)
	line("state", string(d.State)+" since "+d.Since)
	line("cause", value(d.Cause))
	line("closed", value(d.Closed))
	line("opens", value(d.OpensAt))
	line("held until", value(d.HeldUntil))
	line("treated as up until", value(d.UpUntil))
	line("claims a minute", strconv.FormatFloat(d.PerMinute, 'g', 4, 64))
	line("next test", value(d.NextTest))
	if b := d.ExpectedBack; b != nil {
		line("expected back", b.Median+"; half of such outages end from "+b.Earliest+" to "+b.Latest)
	}
	line("held", d.Held)
	line("oldest", value(d.OldestHeldSince))
	line("nearest deadline", value(d.NearestDeadline))
	if done(); len(d.Claims) == 0 {
		return
	}
	fmt.Fprintln(c.out)
	tableOf(c, "SUBJECT, DEADLINE, POLICY, HELD SINCE", func(h *api.HeldClaim) []any {
		return []any{h.ID, minuteOrNone(h.Deadline), h.Policy, minute(h.HeldSince)}
	}).print(d.Claims)
}

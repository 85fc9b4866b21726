package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/api"
	"retry-worker/internal/decision"
)

func (c *cli) destinationsCommand() *cobra.Command {
	return group("destinations", "List where claims are submitted, show one, hold its claims, send one ahead or "+
		"release them",
		speaksToAPI+"Roles: viewer lists and shows; operator gives orders, each with a reason, which the audit "+
			"keeps.\n"+
			"Exit 0 when it is done, 1 when the API refuses or does not answer, 2 for wrong use.",
		c.destinationsListCommand(), c.destinationsShowCommand(), c.destinationsHoldCommand(), c.destinationsReleaseCommand(),
		c.destinationsProbeCommand())
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

func (c *cli) destinationsShowCommand() *cobra.Command {
	return c.destinationCommand(&cobra.Command{
		Use:     "show NAME",
		Short:   "Show one destination: why it is how it is, and the claims whose turn is next",
		Example: `  retry-worker destinations show unimed-sp`,
	}, "", nil)
}

// order is what a person orders of a destination, as the API takes it.
type order struct {
	Reason    string  `json:"reason"`
	Until     string  `json:"until,omitempty"`
	PerMinute float64 `json:"perMinute,omitempty"`
}

func (c *cli) destinationsHoldCommand() *cobra.Command {
	var o order
	cmd := c.orderCommand(&cobra.Command{
		Use:     "hold NAME",
		Short:   "Hold all claims of a destination until a time; then one is sent ahead",
		Example: `  retry-worker destinations hold unimed-sp --until 2026-03-01T18:00:00-03:00 --reason "em manutenção"`,
	}, "/hold", &o, o.checkUntil)
	o.registerUntil(cmd)
	return cmd
}

func (c *cli) destinationsReleaseCommand() *cobra.Command {
	var o order
	cmd := c.orderCommand(&cobra.Command{
		Use:   "release NAME",
		Short: "Let the claims of a destination go: at a pace, or all of them, whatever fails, until a time",
		Example: `  retry-worker destinations release unimed-sp --per-minute 20 --reason "portal voltou"
  retry-worker destinations release unimed-sp --until 2026-03-01T18:00:00-03:00 --reason "o portal funciona"`,
	}, "/release", &o, func() error {
		switch {
		case (o.PerMinute > 0) == (o.Until != ""):
			return fmt.Errorf("--per-minute is %g and --until %q, expected a pace above 0 or an instant, and not both",
				o.PerMinute, o.Until)
		case o.PerMinute > 0:
			return nil
		}
		o.PerMinute = 0
		return o.checkUntil()
	})
	o.registerUntil(cmd)
	cmd.Flags().Float64Var(&o.PerMinute, "per-minute", 0,
		"how many claims go in a minute, at most the destination's pace.most")
	return cmd
}

func (c *cli) destinationsProbeCommand() *cobra.Command {
	return c.orderCommand(&cobra.Command{
		Use:     "probe NAME",
		Short:   "Send one claim ahead now; once it goes through, the others follow at a growing pace",
		Example: `  retry-worker destinations probe unimed-sp --reason "operadora avisou que voltou"`,
	}, "/probe", &order{}, func() error { return nil })
}

func (o *order) registerUntil(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.Until, "until", "", "instant such as 2026-03-01T18:00:00-03:00, at most 7 days ahead")
}

// checkUntil says what is wrong with --until, which must be there, and writes it as the API does.
func (o *order) checkUntil() error {
	t, ok := decision.ParseInstant(o.Until)
	if !ok {
		return fmt.Errorf("--until is %q, expected an instant such as 2026-03-01T18:00:00-03:00", o.Until)
	}
	o.Until = t.Format(time.RFC3339Nano)
	return nil
}

// orderCommand completes a command that orders o of one destination; check says what is wrong with it.
func (c *cli) orderCommand(cmd *cobra.Command, address string, o *order, check func() error) *cobra.Command {
	cmd.Flags().StringVar(&o.Reason, "reason", "", "why, in a few words (required)")
	return c.destinationCommand(cmd, address, func() (any, error) {
		return o, errors.Join(checkReason(o.Reason), check())
	})
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

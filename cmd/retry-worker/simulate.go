package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"retry-worker/internal/decision"
	"retry-worker/internal/simulate"
	"retry-worker/internal/smallfile"
)

type simulateFlags struct {
	outages, policy, policiesFile, gate string
	claims                              float64
	capacity                            int
	seed                                uint64
}

func (c *cli) simulateCommand() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Play recorded outages against a policy, in virtual time",
		Long: "Plays outages against a policy in virtual time, with the code that decides, holds and releases, and\n" +
			"compares it with the plain ladder and with a clairvoyant, who knows when the portal is back. Tells of\n" +
			"the claims that arrive while their destination is down. The same seed gives the same output. Needs no\n" +
			"engine and no store.\n\n" +
			"The file has a line for each outage: service,source,start_minute,minutes (which is also its header).\n" +
			"The picture (svg) shows the longest one.",
		Example: `  retry-worker simulate --outages outages.csv
  retry-worker simulate --outages outages.csv --claims-per-minute 0.1 -o json
  retry-worker simulate --outages outages.csv -o svg > outage.svg`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return c.simulate(f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.outages, "outages", "", "CSV file of outages")
	flags.StringVar(&f.policy, "policy", decision.DefaultPolicy, "policy to play")
	flags.StringVar(&f.gate, "gate", "on", "hold claims while their destination is down: on or off")
	flags.Float64Var(&f.claims, "claims-per-minute", 1,
		"claims that arrive at each destination, at random, above 0 to 1000")
	flags.IntVar(&f.capacity, "capacity", 20,
		"submissions a minute that a portal takes, 1 to 60000; what is above fails with RATE_LIMIT")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the arrivals")
	c.draws(cmd, "svg")
	policiesFileFlag(cmd, &f.policiesFile)
	return cmd
}

func (c *cli) simulate(f simulateFlags) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	outages, err := f.read()
	if err != nil {
		return err
	}
	if c.format == "svg" {
		_, err = c.out.Write(simulate.Picture(outages, options))
		return err
	}
	result := simulate.Run(outages, options)
	return c.print(result, func() { c.printSimulation(result) })
}

func (f *simulateFlags) options() (o simulate.Options, err error) {
	const maxClaims, maxCapacity = 1000, 60_000
	from, err := loadCatalogue(f.policiesFile)
	if err != nil {
		return o, err
	}
	policy := from.Policies[f.policy]
	wrong := func(flag string, found any, expected string) error {
		return &usageError{fmt.Errorf("--%s is %v, expected %s", flag, found, expected)}
	}
	switch {
	case f.outages == "":
		return o, &usageError{errors.New("--outages is missing, expected a CSV file of outages; `retry-worker simulate " +
			"--help` says what it holds")}
	case policy == nil:
		return o, wrong("policy", fmt.Sprintf("%q", f.policy), "one of "+strings.Join(from.Policies.Names(), ", "))
	case f.gate != "on" && f.gate != "off":
		return o, wrong("gate", fmt.Sprintf("%q", f.gate), "on or off")
	case math.IsNaN(f.claims) || f.claims <= 0 || f.claims > maxClaims:
		return o, wrong("claims-per-minute", f.claims, fmt.Sprintf("a number above 0, at most %d", maxClaims))
	case f.capacity < 1 || f.capacity > maxCapacity:
		return o, wrong("capacity", f.capacity, fmt.Sprintf("a whole number from 1 to %d", maxCapacity))
	}
	return simulate.Options{
		Policy: policy, Destination: from.Destination, Gate: f.gate == "on",
		ClaimsPerMinute: f.claims, Capacity: f.capacity, Seed: f.seed,
	}, nil
}

func (f *simulateFlags) read() ([]simulate.Outage, error) {
	file, err := os.Open(f.outages)
	if err != nil {
		return nil, &usageError{fmt.Errorf("%s: the outages cannot be read: %w, expected a readable CSV file", f.outages,
			smallfile.Cause(err))}
	}
	defer file.Close()
	outages, err := simulate.Read(f.outages, file)
	if err != nil {
		return nil, &usageError{fmt.Errorf("%w; correct the file and try again", err)}
	}
	return outages, nil
}

func (c *cli) printSimulation(r simulate.Result) {
	var rows [][]string
	row := func(name, format string, value func(*simulate.Figures) any) {
		cells := []string{name}
		for _, f := range []*simulate.Figures{&r.Policy, &r.Ladder, &r.Clairvoyant} {
			cells = append(cells, fmt.Sprintf(format, value(f)))
		}
		rows = append(rows, cells)
	}
	row("claims", "%d", func(f *simulate.Figures) any { return f.Claims })
	row("recovered", "%.2f %%", func(f *simulate.Figures) any { return 100 * f.Recovered })
	row("given up", "%d", func(f *simulate.Figures) any { return f.GivenUp })
	row("attempts a claim", "%.2f", func(f *simulate.Figures) any { return f.Attempts })
	row("wasted a claim", "%.2f", func(f *simulate.Figures) any { return f.Wasted })
	row("late, median (min)", "%.1f", func(f *simulate.Figures) any { return f.LatenessP50 })
	row("late, 95 % (min)", "%.1f", func(f *simulate.Figures) any { return f.LatenessP95 })
	row("peak of the allowed", "%.2f", func(f *simulate.Figures) any { return f.Peak })
	row("drain of the ideal", "%.2f", func(f *simulate.Figures) any { return f.Drain })
	rowsOf(c, "", "policy", "ladder", "clairvoyant").print(rows)
}

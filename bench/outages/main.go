// Command outages plays recorded outages against a policy in virtual time, with the code that decides, holds and
// releases. It compares the policy with the plain ladder and with a clairvoyant, who knows when the portal is back,
// for the claims that arrive while their destination is down. The same seed gives the same output.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "outages:", err)
		os.Exit(2)
	}
}

func run(args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("outages", flag.ExitOnError)
	trace := flags.String("outages", "bench/outages/testdata/outages.csv", "CSV file, a line for each outage: "+header)
	policy := flags.String("policy", decision.DefaultPolicy, "policy to play")
	policies := flags.String("policies-file", "", "catalogue that it is in; empty: the built-in one")
	gate := flags.String("gate", "on", "hold claims while their destination is down: on or off")
	flags.Float64Var(&o.claimsPerMinute, "claims-per-minute", 1,
		"claims that arrive at each destination, at random, above 0 to 1000")
	flags.IntVar(&o.capacity, "capacity", 20,
		"submissions a minute that a portal takes, 1 to 60000; what is above fails with RATE_LIMIT")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the arrivals")
	format := flags.String("o", "text", "how to print: text or json")
	if err := flags.Parse(args); err != nil {
		return err
	}
	from := catalogue.Default()
	if *policies != "" {
		var err error
		if from, err = catalogue.Load(*policies); err != nil {
			return err
		}
	}
	o.policy, o.destination, o.gate = from.Policies[*policy], from.Destinations.Of, *gate == "on"
	right := flags.NArg() == 0 && (o.gate || *gate == "off") && o.claimsPerMinute > 0 && o.claimsPerMinute <= 1000 && o.capacity > 0 &&
		(*format == "text" || *format == "json")
	if o.policy == nil || !right {
		flags.Usage()
		return fmt.Errorf("expected flags as above, and --policy one of %s", strings.Join(from.Policies.Names(), ", "))
	}
	file, err := os.Open(*trace)
	if err != nil {
		return fmt.Errorf("open the outages: %w", err)
	}
	defer file.Close()
	outages, err := readTrace(*trace, file)
	if err != nil {
		return err
	}
	return print(out, *format, o.compare(outages))
}

func print(out io.Writer, format string, c comparison) error {
	if format == "json" {
		return json.NewEncoder(out).Encode(c)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tpolicy\tladder\tclairvoyant\t")
	for _, row := range []struct {
		name, format string
		value        func(*figures) any
	}{
		{"claims", "%d", func(f *figures) any { return f.Claims }},
		{"recovered", "%.2f %%", func(f *figures) any { return 100 * f.Recovered }},
		{"given up", "%d", func(f *figures) any { return f.GivenUp }},
		{"attempts a claim", "%.2f", func(f *figures) any { return f.Attempts }},
		{"wasted a claim", "%.2f", func(f *figures) any { return f.Wasted }},
		{"late, median (min)", "%.1f", func(f *figures) any { return f.LatenessP50 }},
		{"late, 95 % (min)", "%.1f", func(f *figures) any { return f.LatenessP95 }},
		{"peak of the allowed", "%.2f", func(f *figures) any { return f.Peak }},
		{"drain of the ideal", "%.2f", func(f *figures) any { return f.Drain }},
	} {
		fmt.Fprint(w, row.name)
		for _, f := range []*figures{&c.Policy, &c.Ladder, &c.Clairvoyant} {
			fmt.Fprintf(w, "\t"+row.format, row.value(f))
		}
		fmt.Fprintln(w, "\t")
	}
	return w.Flush()
}

package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// decisionCase is one analysis without engine: variables read, error classified, backoff drawn. No rule matches,
// which is the longest way.
type decisionCase struct {
	name, goal string
	error      string
	rules      *classify.Classifier
	opening    decision.Opening
}

func decisionCases() []decisionCase {
	few, many := decisiontest.Rules(decisiontest.Many(10)...), decisiontest.Rules(decisiontest.Many(1000)...)
	whole := catalogue.Default().Policies[decision.DefaultPolicy].Rules
	cases := []decisionCase{{"the longest way", "< 2 µs, ≤ 5",
		"java.net.ConnectException: the portal of the operator refused the connection", policy().Rules, decision.Opening{}}}
	for _, portal := range [][2]string{{"open", "00:00-24:00"}, {"shut", "08:00-18:00"}} {
		hours, _ := calendar.ParseHours(portal[1])
		weekdays, _ := calendar.ParseWeekdays("mon-fri")
		c, _ := calendar.New(time.FixedZone("", -3*60*60), []calendar.Window{{Weekdays: weekdays, Hours: hours}},
			calendar.Holidays("BR-SP"))
		shuts := cases[0]
		shuts.name, shuts.goal = "of a portal that is "+portal[0]+" at the time of the retry", "0.5 µs more, ≤ 6"
		shuts.opening = decision.Opening{Calendar: c, Spread: time.Hour}
		cases = append(cases, shuts)
	}
	for _, message := range []string{"stack trace", "Portuguese"} {
		text := decisiontest.Messages()[message]
		cases = append(cases,
			decisionCase{"2 kB of " + message + ", 10 rules", "≤ 15 µs, ≤ 6", text, few, decision.Opening{}},
			decisionCase{"2 kB of " + message + ", 1,000 rules", "≤ 15 µs and 1.3 times 10 rules, ≤ 6", text, many, decision.Opening{}},
			decisionCase{"2 kB of " + message + ", the whole built-in catalogue", "≤ 15 µs, ≤ 6", text, whole, decision.Opening{}})
	}
	return cases
}

// decisionCosts measures the cases in alternation, a few times, and prints the rows of a table.
func decisionCosts(out io.Writer, rounds int) error {
	cases := decisionCases()
	samples, allocations := make([][]float64, len(cases)), make([]float64, len(cases))
	for range 3 * rounds {
		for i := range cases {
			cost, allocated, err := cases[i].measure()
			if err != nil {
				return err
			}
			samples[i], allocations[i] = append(samples[i], cost), allocated
		}
	}
	for i, c := range cases {
		cost := fmt.Sprintf("%.0f ns, %.0f allocations", median(samples[i]), allocations[i])
		if strings.HasSuffix(c.name, "1,000 rules") {
			cost += fmt.Sprintf(" (%.2f times 10 rules)", median(samples[i])/median(samples[i-1]))
		}
		row(out, "one decision, "+c.name, cost, c.goal)
	}
	return nil
}

// measure returns the CPU time of one decision in ns, because the machine's other work must not count, and its
// allocations.
func (c *decisionCase) measure() (cost, allocations float64, err error) {
	policy := decisiontest.TISSSubmission()
	policy.Rules, policy.Openings = c.rules, map[string]decision.Opening{"": c.opening}
	id := decision.Text("CLM-001-1234567890")
	variables := decision.Variables{ID: id, RetryCount: "1", Error: decision.Text(c.error)}
	now := time.Date(2026, 12, 23, 20, 58, 0, 0, time.UTC) // 17:58 in Brasília
	decide := func() {
		failure, rejection := policy.Read(variables)
		if rejection != nil {
			err = fmt.Errorf("read the failure: %w", rejection)
		}
		if d := decision.Decide(&failure, policy, decision.Past{}, now); d.MatchedRule != "" {
			err = fmt.Errorf("the failure is matched by %q, want nothing", d.MatchedRule)
		}
	}
	const times = 3000
	began := ownCPU()
	for range times {
		decide()
	}
	cost = float64((ownCPU() - began).Nanoseconds()) / times
	return cost, testing.AllocsPerRun(100, decide), err
}

package main

import (
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// decisionCase is one analysis without engine: variables read, error classified, backoff drawn. No rule matches, or one of
// the last, which is the longest way.
type decisionCase struct {
	name, goal string
	error      string
	rules      *decision.Classifier
	matched    string // the rule that matches; empty for none

	// Measured: CPU time, because the machine's other work must not count, and allocations.
	cpu         time.Duration
	allocations float64
}

func decisionCases() []*decisionCase {
	rules := func(n int) *decision.Classifier { return decisiontest.Rules(decisiontest.Many(n)...) }
	ten, thousand, messages := rules(10), rules(1000), decisiontest.Messages()
	cases := []*decisionCase{{
		name: "the longest way", goal: "< 2 µs, ≤ 5", rules: decisiontest.TISSSubmission().Rules,
		error: "java.net.ConnectException: the portal of the operator refused the connection",
	}}
	for _, message := range []string{"stack trace", "Portuguese"} {
		cases = append(cases,
			&decisionCase{name: "2 kB of " + message + ", 10 rules", goal: "< 5 µs, ≤ 5", rules: ten, error: messages[message]},
			&decisionCase{name: "2 kB of " + message + ", 1,000 rules", goal: "< 5 µs and 1.3 times 10 rules, ≤ 5", rules: thousand, error: messages[message]})
	}
	whole := catalogue.Default().Policies[decision.DefaultPolicy].Rules
	return append(cases,
		&decisionCase{name: "2 kB of stack trace, the whole built-in catalogue", goal: "< 5 µs, ≤ 5", rules: whole, error: messages["stack trace"]},
		&decisionCase{name: "2 kB of Portuguese, the whole built-in catalogue", goal: "< 5 µs, ≤ 5", rules: whole, error: messages["Portuguese"], matched: "general-refusal"})
}

// decisionCosts measures the cases in alternation, a few times, and writes the rows of a table.
func decisionCosts(out io.Writer) error {
	cases := decisionCases()
	samples := make([][]time.Duration, len(cases))
	const rounds = 9
	for range rounds {
		for i, c := range cases {
			cpu, err := c.measure()
			if err != nil {
				return err
			}
			samples[i] = append(samples[i], cpu)
		}
	}
	for i, c := range cases {
		c.cpu = median(samples[i])
		ratio := ""
		if i > 0 && c.error == cases[i-1].error {
			ratio = fmt.Sprintf(" (%.2f times)", float64(c.cpu)/float64(cases[i-1].cpu))
		}
		fmt.Fprintf(out, "| one decision, %s | %d ns%s, %d allocations | %s |\n", c.name, c.cpu.Nanoseconds(), ratio, int(c.allocations), c.goal)
	}
	return nil
}

// measure is the CPU time of one decision.
func (c *decisionCase) measure() (cpu time.Duration, err error) {
	policy := decisiontest.TISSSubmission()
	policy.Rules = c.rules
	variables := decision.Variables{ID: decision.Text("CLM-001-1234567890"), RetryCount: "1", Error: decision.Text(c.error)}
	now := time.Now()
	decide := func() {
		failure, rejection := policy.Read(variables)
		if rejection != nil {
			err = fmt.Errorf("the benchmark's own failure is refused: %w", rejection)
			return
		}
		if d := decision.Decide(&failure, policy, decision.Past{}, now); d.MatchedRule != c.matched {
			err = fmt.Errorf("the benchmark's own failure is matched by %q, not by %q; the figures would mean nothing", d.MatchedRule, c.matched)
		}
	}
	const times = 10_000
	began := ownCPU()
	for range times {
		decide()
	}
	cpu = (ownCPU() - began) / times
	c.allocations = testing.AllocsPerRun(100, decide)
	return cpu, err
}

func ownCPU() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil { // cannot fail for oneself
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

package decision_test

import (
	"fmt"
	"strings"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// cases of one job's reading and deciding; unknown is the worst, as every rule is tried.
var cases = []struct {
	name    string
	v       decision.Variables
	outcome decision.Outcome
	// allocations at most: issue 4's 5.
	allocations float64
}{
	{"transient", claim("1", "TIMEOUT - Connection timeout after 30s"), decision.Retry, 5},
	{"unknown", claim("1", "Falha não prevista no lote 15037, guia 1.503,00"), decision.Retry, 5},
	{"permanent", claim("1", "INVALID_PROCEDURE_CODE - código 40101010 inexistente"), decision.PermanentError, 5},
	{"limit", claim("5", "TIMEOUT - Connection timeout after 30s"), decision.MaxRetriesExceeded, 5},
	{"2 kB", claim("1", strings.Repeat("at br.com.hospital.Envio(Envio.java:15037)\t", 48)), decision.Retry, 5},
}

func BenchmarkReadAndDecide(b *testing.B) {
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) { benchmark(b, decisiontest.TISSSubmission(), c.v, c.outcome) })
	}
}

// BenchmarkRules is one decision on 2 kB that no rule knows, by how many rules there are.
func BenchmarkRules(b *testing.B) {
	for name, message := range decisiontest.Messages() {
		for _, n := range []int{10, 100, 1000} {
			p := decisiontest.TISSSubmission()
			p.Rules = decisiontest.Rules(decisiontest.Many(n)...)
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) { benchmark(b, p, claim("1", message), decision.Retry) })
		}
	}
}

func benchmark(b *testing.B, p *decision.Policy, v decision.Variables, want decision.Outcome) {
	b.ReportAllocs()
	for b.Loop() {
		f, rejection := p.Read(v)
		if rejection != nil {
			b.Fatal(rejection)
		}
		if d := decision.Decide(&f, p, decision.Past{}, analysed); d.Outcome != want {
			b.Fatal(d.Outcome, d.MatchedRule, d.MatchedText)
		}
	}
}

// TestMessagesMatchNothing of many rules, or the benchmark would measure something else.
func TestMessagesMatchNothing(t *testing.T) {
	c := decisiontest.Rules(decisiontest.Many(1000)...)
	for name, message := range decisiontest.Messages() {
		if m := c.Classify(message, 0); m.Name != "" || len(message) < 1900 || len(message) > 2200 {
			t.Errorf("%s, %d bytes: matched by %q at %q", name, len(message), m.Name, m.Text)
		}
	}
	for _, r := range decisiontest.Many(1000) {
		if m := c.Classify("erro: "+r.Phrases[0]+".", 0); m.Text != r.Phrases[0] {
			t.Errorf("%s: %q is matched by %q at %q", r.Name, r.Phrases[0], m.Name, m.Text)
		}
	}
}

// TestAllocationsOfManyRules: those of one text with escapes, however many rules there are.
func TestAllocationsOfManyRules(t *testing.T) {
	p := decisiontest.TISSSubmission()
	p.Rules = decisiontest.Rules(decisiontest.Many(1000)...)
	for name, message := range decisiontest.Messages() {
		v := claim("1", message)
		if got := testing.AllocsPerRun(100, func() { decide(p, v) }); got > 5 {
			t.Errorf("%s: %v allocations, want 5 at most", name, got)
		}
	}
}

// TestDecisionAllocations: issue 4's bound, which unlike nanoseconds is the same on every machine.
func TestDecisionAllocations(t *testing.T) {
	p := decisiontest.TISSSubmission()
	for _, c := range cases {
		if got := testing.AllocsPerRun(100, func() { decide(p, c.v) }); got > c.allocations {
			t.Errorf("%s: %v allocations, want %v at most", c.name, got, c.allocations)
		}
	}
}

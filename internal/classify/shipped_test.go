package classify_test

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/classify"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// shipped returns what tiss-submission of the built-in catalogue classifies with.
func shipped() *classify.Classifier { return catalogue.Default().Policies["tiss-submission"].Rules }

// sample is a text and what it is evidence of.
type sample struct {
	line int
	rank classify.Rank
	name string
	text string
}

// samples reads testdata/texts.txt.
func samples(tb testing.TB) []sample {
	tb.Helper()
	var all []sample
	for i, line := range strings.Split(testkit.Read(tb, "testdata/texts.txt"), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		parts := strings.SplitN(line, " ", 3)
		rank, err := strconv.Atoi(parts[0])
		if err != nil || len(parts) < 3 {
			tb.Fatalf("texts.txt:%d: expected a rank, a name and a text", i+1)
		}
		s := sample{i + 1, classify.Rank(rank), strings.TrimPrefix(parts[1], "-"), parts[2]}
		if unquoted, err := strconv.Unquote(s.text); err == nil {
			s.text = unquoted
		}
		all = append(all, s)
	}
	return all
}

// TestSaid holds testdata/said.txt.
func TestSaid(t *testing.T) {
	c := shipped()
	for _, line := range slices.Concat(golden.Cases(t, "testdata/said.txt")...) {
		given, want, _ := strings.Cut(line, " -> ")
		text, status := given, 0
		if beside, rest, _ := strings.Cut(given, ": "); len(beside) == 3 {
			status, _ = strconv.Atoi(beside)
			text = rest
		}
		_, said := c.Read(text, status)
		var got []string
		if said.Perhaps {
			got = append(got, "perhaps")
		}
		if said.Wait != 0 {
			got = append(got, said.Wait.String())
		}
		if got := cmp.Or(strings.Join(got, ", "), "nothing"); got != want {
			t.Errorf("%q tells %s, want %s", given, got, want)
		}
	}
	for _, words := range []string{"falha na 123 conex\u00e3o. ", "aguarde 1 hora. "} {
		long := strings.Repeat(words, 200)
		if testing.AllocsPerRun(10, func() { c.Read(long, 0) }) > 200 {
			t.Errorf("it takes memory for each of the words %q", words)
		}
	}
}

func TestTexts(t *testing.T) {
	c := shipped()
	for _, s := range samples(t) {
		m := c.Classify(s.text, 0)
		if m.Rank != s.rank || m.Name != s.name {
			t.Errorf("texts.txt:%d: rank %d %s, expected rank %d %s: %q, matched at %q", s.line, m.Rank, m.Name, s.rank, s.name, s.text, m.Text)
		}
	}
}

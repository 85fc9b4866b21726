package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/destination"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// trace returns every nth outage of a source in the recorded ones.
func trace(t *testing.T, source string, every int) (chosen []outage) {
	t.Helper()
	all, err := readTrace("outages.csv", strings.NewReader(testkit.Read(t, "testdata/outages.csv")))
	testkit.Must(t, err)
	for i, o := range all {
		if o.source == source && i%every == 0 {
			chosen = append(chosen, o)
		}
	}
	return chosen
}

func playing(claimsPerMinute float64, url string) *options {
	settings := destination.Defaults()
	settings.Probe.URL = url
	return &options{
		policy: catalogue.Default().Policies["tiss-submission"], gate: true,
		destination:     func(string) destination.Settings { return settings },
		claimsPerMinute: claimsPerMinute, capacity: 20, seed: 1,
	}
}

// TestRecordedOutages: the gate recovers what can be, wastes little, and hurries neither too little nor too much.
func TestRecordedOutages(t *testing.T) {
	for source, every := range map[string]int{"user": 200, "operator": 12} {
		r := playing(1, "").compare(trace(t, source, every))
		p, c := r.Policy, r.Clairvoyant
		if p.Claims < 1000 || p.Recovered < 0.98*c.Recovered || p.Wasted > 0.5 || p.LatenessP50 > c.LatenessP50+5 ||
			p.Peak > 1.1 || p.Drain > 1.5 {
			t.Errorf("%s: %+v\nwhere a clairvoyant comes to %+v", source, p, c)
		}
		if r.Ladder.Recovered > p.Recovered || r.Ladder.Wasted < 2*p.Wasted {
			t.Errorf("%s: the plain ladder comes to %+v, the gate to %+v", source, r.Ladder, p)
		}
	}
}

// TestFewClaims: at one claim in ten minutes canaries cost more, and a probe helps.
func TestFewClaims(t *testing.T) {
	outages := trace(t, "user", 40)
	canaries, probed := playing(0.1, "").compare(outages), playing(0.1, "https://portal.example/").compare(outages)
	if canaries.Policy.Wasted > canaries.Ladder.Wasted/2 || probed.Policy.Wasted > 0.5 ||
		probed.Policy.Recovered < canaries.Policy.Recovered {
		t.Errorf("canaries %+v\nprobes %+v\nladder %+v", canaries.Policy, probed.Policy, canaries.Ladder)
	}
}

// TestLoad: however near the load is to the capacity, the backlog goes at the capacity, and goes for good.
func TestLoad(t *testing.T) {
	down := []outage{{"tiss", "test", time.Hour, 2 * time.Hour}}
	for _, load := range []float64{0.5, 0.7, 0.8, 0.9, 0.95, 0.99} {
		p := playing(20*load, "").compare(down).Policy
		if p.Recovered != 1 || p.Peak > 1.1 || p.Drain > 1.06 || p.Wasted > 0.5 {
			t.Errorf("at a load of %g: %+v", load, p)
		}
	}
}

// TestStories plays testdata/stories.txt: a trace's lines, parted by ;, and flags, and what the command prints.
func TestStories(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.csv")
	golden.Story(t, "testdata/stories.txt", func(command string) string {
		words := strings.Fields(command)
		testkit.Must(t, os.WriteFile(file, []byte(strings.ReplaceAll(words[0], ";", "\n")), 0o600))
		var out strings.Builder
		if err := run(append([]string{"--outages", file}, words[1:]...), &out); err != nil {
			return "! " + strings.ReplaceAll(err.Error(), file, "FILE") + "\n"
		}
		return out.String()
	})
}

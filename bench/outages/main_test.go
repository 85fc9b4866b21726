package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/destination"
)

// trace returns every nth outage of a source in the recorded ones.
func trace(t *testing.T, source string, every int) (chosen []outage) {
	t.Helper()
	f, err := os.Open("testdata/outages.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := readTrace("outages.csv", f)
	if err != nil {
		t.Fatal(err)
	}
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

func TestSameSeedSameResult(t *testing.T) {
	outages := trace(t, "user", 1000)
	o := playing(1, "")
	one, again := o.compare(outages), o.compare(outages)
	if o.seed = 2; !reflect.DeepEqual(one, again) || reflect.DeepEqual(one, o.compare(outages)) {
		t.Error("the seed does not make the result")
	}
}

// played runs the command on a trace with -o json and returns the figures by side and key.
func played(t *testing.T, trace string, args ...string) (sides map[string]map[string]float64) {
	t.Helper()
	var out bytes.Buffer
	err := run(append([]string{"--outages", file(t, "outages.csv", header+"\n"+trace), "-o", "json"}, args...), &out)
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &sides)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	return sides
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKeys: the names of the figures are fixed, and without the gate the policy is its ladder.
func TestKeys(t *testing.T) {
	sides := played(t, "tiss,user,60,180\n", "--gate", "off")
	for _, side := range []string{"policy", "ladder", "clairvoyant"} {
		for _, key := range []string{"claims", "recovered", "attemptsPerClaim", "wastedPerClaim", "latenessP50Minutes",
			"latenessP95Minutes", "peakRatio", "drainRatio"} {
			if _, ok := sides[side][key]; !ok {
				t.Errorf("%s.%s is missing in %v", side, key, sides)
			}
		}
	}
	if !reflect.DeepEqual(sides["policy"], sides["ladder"]) {
		t.Errorf("without the gate the policy is not the ladder: %v", sides)
	}
}

// TestCalendar: a night and a weekend are waited for, by the clairvoyant too, and do not count toward the total limit.
func TestCalendar(t *testing.T) {
	catalogue := file(t, "policies.yaml", `extends: built-in
policies: {tiss-submission: {totalLimit: 8h}}
destinations: {tiss: {calendar: {zone: UTC, windows: [{weekdays: mon-fri, hours: "08:00-18:00"}]}}}
`)
	// The trace begins on a Thursday; the portal is down from 17:00 of Friday to 01:00 of Saturday.
	sides := played(t, "tiss,user,2460,480\n", "--policies-file", catalogue)
	for _, side := range []string{"policy", "clairvoyant"} {
		if f := sides[side]; f["recovered"] != 1 || f["latenessP50Minutes"] < 55*60 {
			t.Errorf("%s: claims of Friday night do not wait until Monday, 08:00: %v", side, f)
		}
	}
	if late := sides["policy"]["latenessP50Minutes"] - sides["clairvoyant"]["latenessP50Minutes"]; late > 60 {
		t.Errorf("the gate is %g minutes behind the clairvoyant", late)
	}
	if ladder := sides["ladder"]; ladder["recovered"] < 0.9 {
		t.Errorf("the ladder tries in vain while the portal is closed: %v", ladder)
	}
}

func TestReadTrace(t *testing.T) {
	for content, want := range map[string]string{
		"": "expected the header", header: "one outage at least", "service,minutes\na,1": "f.csv: record on line 1", header + "\na,user,1": "record on line 2",
		header + "\na,u,0,5\na,u,5,-2": "f.csv:3", header + "\na,u,0.5,5": "f.csv:2", header + "\n,u,5,5": "f.csv:2",
	} {
		if _, err := readTrace("f.csv", strings.NewReader(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is told as %v, expected %s", content, err, want)
		}
	}
}

func TestWrongFlags(t *testing.T) {
	for flag, value := range map[string]string{"policy": "tis", "gate": "maybe", "capacity": "0", "claims-per-minute": "NaN",
		"o": "svg", "outages": "none.csv", "policies-file": "none.yaml"} {
		if err := run([]string{"--" + flag, value}, new(bytes.Buffer)); err == nil {
			t.Errorf("--%s %s is taken", flag, value)
		}
	}
}

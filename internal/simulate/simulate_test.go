package simulate

import (
	"encoding/xml"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/destination"
	"retry-worker/internal/testkit"
)

// trace returns every nth outage of a source in the recorded ones.
func trace(t *testing.T, source string, every int) (chosen []Outage) {
	t.Helper()
	f, err := os.Open("testdata/outages.csv")
	testkit.Must(t, err)
	defer f.Close()
	all, err := Read("outages.csv", f)
	testkit.Must(t, err)
	for i, o := range all {
		if o.Source == source && i%every == 0 {
			chosen = append(chosen, o)
		}
	}
	return chosen
}

func options(claimsPerMinute float64, url string) Options {
	settings := destination.Defaults()
	settings.Probe.URL = url
	return Options{
		Policy: catalogue.Default().Policies["tiss-submission"], Destination: func(string) destination.Settings { return settings },
		Gate: true, ClaimsPerMinute: claimsPerMinute, Capacity: 20, Seed: 1,
	}
}

// TestRecordedOutages: the gate recovers what can be, wastes little, and hurries neither too little nor too much.
func TestRecordedOutages(t *testing.T) {
	for source, every := range map[string]int{"user": 200, "operator": 12} {
		r := Run(trace(t, source, every), options(1, ""))
		p, c := r.Policy, r.Clairvoyant
		if p.Claims < 1000 || p.Recovered < 0.98*c.Recovered || p.Wasted > 0.5 || p.LatenessP50 > c.LatenessP50+5 || p.Peak > 1.1 || p.Drain > 1.5 {
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
	canaries, probed := Run(outages, options(0.1, "")), Run(outages, options(0.1, "https://portal.example/"))
	if canaries.Policy.Wasted > canaries.Ladder.Wasted/2 || probed.Policy.Wasted > 0.5 || probed.Policy.Recovered < canaries.Policy.Recovered {
		t.Errorf("canaries %+v\nprobes %+v\nladder %+v", canaries.Policy, probed.Policy, canaries.Ladder)
	}
}

// TestLoad: however near the load is to the capacity, the backlog goes at the capacity, and goes for good.
func TestLoad(t *testing.T) {
	outage := []Outage{{"tiss", "test", time.Hour, 2 * time.Hour}}
	for _, load := range []float64{0.5, 0.7, 0.8, 0.9, 0.95, 0.99} {
		p := Run(outage, options(20*load, "")).Policy
		if p.Recovered != 1 || p.Peak > 1.1 || p.Drain > 1.06 || p.Wasted > 0.5 {
			t.Errorf("at a load of %g: %+v", load, p)
		}
	}
}

func TestSameSeedSameResult(t *testing.T) {
	outages := trace(t, "user", 1000)
	o := options(1, "")
	one, again := Run(outages, o), Run(outages, o)
	picture := string(Picture(outages, o))
	if o.Seed = 2; !reflect.DeepEqual(one, again) || reflect.DeepEqual(one, Run(outages, o)) || picture == string(Picture(outages, o)) {
		t.Error("the seed does not make the result")
	}
	if err := xml.Unmarshal([]byte(picture), new(struct{})); err != nil || picture != string(Picture(outages, options(1, ""))) {
		t.Errorf("no picture: %v", err)
	}
}

func TestRead(t *testing.T) {
	const head = "service,source,start_minute,minutes\n"
	for content, want := range map[string]string{
		"":                          "f.csv:1: found the end of the file, expected the header " + header + " and at least one outage",
		head:                        "f.csv:2: found the end of the file, expected the header " + header + " and at least one outage",
		"service,minutes\na,1":      `f.csv:1: found "service,minutes", expected the header ` + header,
		head + "a,user,1\n":         `f.csv:2: found 3 fields ("a,user,1"), expected 4: ` + header,
		head + "a,u,0,5\na,u,5,-2":  `f.csv:3: found minutes "-2", expected a whole number from 1 to 52704000`,
		head + "a,u,0.5,5\n":        `f.csv:2: found start_minute "0.5", expected a whole number from 0 to 52704000`,
		head + ",u,5,5\n":           "f.csv:2: found no service, expected its name in the first field",
		head + "a,u,5,5\r\n\r\n":    "",
		"\ufeff" + head + "a,u,5,5": "",
	} {
		if _, err := Read("f.csv", strings.NewReader(content)); fmt.Sprint(err) != want && (err != nil || want != "") {
			t.Errorf("%q is told as\n%v, want\n%s", content, err, want)
		}
	}
}

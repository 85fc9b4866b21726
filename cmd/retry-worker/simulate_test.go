package main

import (
	"encoding/xml"
	"strings"
	"testing"

	"retry-worker/internal/testkit"
)

func TestSimulate(t *testing.T) {
	testkit.Environment(t, nil)
	file := testkit.File(t, "outages.csv", []byte("service,source,start_minute,minutes\ntiss,user,60,180\n"))
	r := retryWorker("simulate", "--outages", file, "-o", "json")
	for _, side := range []string{"policy", "ladder", "clairvoyant"} {
		figures, _ := r.object(t)[side].(map[string]any)
		for _, key := range []string{"claims", "recovered", "attemptsPerClaim", "wastedPerClaim", "latenessP50Minutes", "latenessP95Minutes", "peakRatio", "drainRatio"} {
			if _, ok := figures[key].(float64); !ok {
				t.Errorf("%s.%s is missing in %s", side, key, r.stdout)
			}
		}
	}
	if again := retryWorker("simulate", "--outages", file, "-o", "json"); again != r {
		t.Errorf("the same seed gives\n%s\nthen\n%s", r.stdout, again.stdout)
	}
	if off := retryWorker("simulate", "--outages", file, "--gate", "off", "-o", "json").object(t); off["policy"].(map[string]any)["wastedPerClaim"] != off["ladder"].(map[string]any)["wastedPerClaim"] {
		t.Errorf("without the gate the policy is not the ladder: %v", off)
	}
	policies := testkit.File(t, "policies.yaml", []byte(`extends: built-in
destinations: {default: {calendar: {windows: [{hours: "08:00-18:00"}]}}}
`))
	night := retryWorker("simulate", "--outages", file, "--policies-file", policies, "-o", "json").object(t)["policy"].(map[string]any)
	if night["wastedPerClaim"] != 0.0 || night["recovered"] != 1.0 || night["latenessP50Minutes"].(float64) < 4*60 {
		t.Errorf("claims of an outage from 01:00 to 04:00 do not wait until 08:00: %v", night)
	}
	if text := retryWorker("simulate", "--outages", file).stdout; !strings.Contains(text, "clairvoyant") || !strings.Contains(text, "recovered") {
		t.Errorf("the table is\n%s", text)
	}
	if svg := retryWorker("simulate", "--outages", file, "-o", "svg").stdout; xml.Unmarshal([]byte(svg), new(struct{})) != nil {
		t.Error("no picture")
	}
}

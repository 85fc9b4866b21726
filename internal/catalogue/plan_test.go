package catalogue_test

import (
	"encoding/json"
	"math"
	"regexp"
	"testing"
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// exponential waits from base to most, without bounds below.
func exponential(base time.Duration, factor float64, most time.Duration, jitter float64) decision.BackoffRule {
	return decision.BackoffRule{Base: base, Factor: factor, Min: base, Max: most, Jitter: jitter, Rounding: time.Second}
}

func constant(wait time.Duration) decision.BackoffRule {
	return decision.BackoffRule{Base: wait, Factor: 1, Min: wait, Max: wait, Rounding: time.Millisecond}
}

// queue is a policy whose jobs bring their own.
func queue() *decision.Policy {
	return &decision.Policy{Name: "queue", IDPattern: regexp.MustCompile(`^J\d+$`), Backoff: constant(time.Minute),
		Own: &decision.OwnVariables{MaxAttempts: "maxAttempts", Delay: "delayBetweenAttempts", NonRetryable: "nonRetryable"}}
}

// near is a policy whose fifth retry may pass its limit of 3 h, and whose last three always would.
func near() *decision.Policy {
	return &decision.Policy{Name: "near", MaxRetries: 8, TotalLimit: 3 * time.Hour,
		Backoff: decision.BackoffRule{Base: 5 * time.Minute, Factor: 2, Min: 5 * time.Minute, Max: 4 * time.Hour, Jitter: 0.2, Rounding: time.Minute}}
}

// plans of every kind, by the name of their golden files.
func plans(t *testing.T) map[string]*catalogue.Plan {
	t.Helper()
	brought, rejection := queue().ReadOwn(&decision.Variables{MaxAttempts: "4", Delay: `"PT1M30S"`})
	if rejection != nil {
		t.Fatal(rejection)
	}
	list := &decision.Policy{Name: "list", Description: "A list, <escaped> & \"quoted\".", MaxRetries: 3, Backoff: decision.BackoffRule{
		List: []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute}, Min: time.Second, Max: 5 * time.Minute, Rounding: time.Millisecond}}
	wide := &decision.Policy{Name: "wide", MaxRetries: 12, TotalLimit: 48 * time.Hour, Backoff: exponential(time.Second, 3, 8*time.Hour, 0.5)}
	return map[string]*catalogue.Plan{
		"tiss":          catalogue.PlanAt(decisiontest.TISSSubmission(), decision.OwnPolicy{}, "", time.Time{}),
		"list":          catalogue.PlanAt(list, decision.OwnPolicy{}, "", time.Time{}),
		"queue-none":    catalogue.PlanAt(queue(), decision.OwnPolicy{}, "", time.Time{}),
		"queue-brought": catalogue.PlanAt(queue(), brought, "", time.Time{}),
		"none":          catalogue.PlanAt(&decision.Policy{Name: "none"}, decision.OwnPolicy{}, "", time.Time{}),
		"near":          catalogue.PlanAt(near(), decision.OwnPolicy{}, "", time.Time{}),
		"wide":          catalogue.PlanAt(wide, decision.OwnPolicy{}, "", time.Time{}),
	}
}

func TestPlans(t *testing.T) {
	for name, p := range plans(t) {
		t.Run(name, func(t *testing.T) {
			object, err := json.MarshalIndent(p, "", "  ")
			testkit.Must(t, err)
			golden.Check(t, "testdata/plans/"+name+".json", string(object)+"\n")
		})
	}
}

// TestPlanOfADestination: a plan is for the destination that a claim would have, which is the policy's own where none is
// given, and none where the policy has none. The spread of an opening ends with the total limit.
func TestPlanOfADestination(t *testing.T) {
	c, err := catalogue.Parse("policies.yaml", []byte("extends: built-in\npolicies: {tiss-submission: {totalLimit: 5m}}\n"+
		"destinations:\n  tiss: {calendar: {windows: [{hours: 10:00-11:00}]}}\n"))
	testkit.Must(t, err)
	at := time.Date(2026, 3, 4, 15, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		policy, name, destination, closed string
		late                              bool
	}{
		{"tiss-submission", "", "tiss", "outside 10:00-11:00", false},
		{"tiss-submission", "amil", "amil", "", true},
		{"whatsapp-message", "tiss", "", "", false},
	} {
		p := catalogue.PlanAt(c.Policies[tt.policy], decision.OwnPolicy{}, tt.name, at)
		if r := p.Retries[0]; p.Destination != tt.destination || r.Why != tt.closed || r.MayPassLimit != tt.late {
			t.Errorf("%s to %q: the plan is for %q, closed at first: %q, beyond the limit: %t", tt.policy, tt.name, p.Destination, r.Why,
				r.MayPassLimit)
		}
	}
}

func TestLadderEnds(t *testing.T) {
	long := &decision.Policy{MaxRetries: 1000, Backoff: decision.BackoffRule{Base: time.Hour, Factor: 2, Max: math.MaxInt64}}
	list := &decision.Policy{MaxRetries: 4, Backoff: decision.BackoffRule{List: []time.Duration{time.Second, time.Minute}, Max: time.Hour, Rounding: time.Second}}
	hourly := func(limit time.Duration) *decision.Policy {
		return &decision.Policy{MaxRetries: 1000, TotalLimit: limit, Backoff: constant(time.Hour)}
	}
	for _, tt := range []struct {
		name   string
		policy *decision.Policy
		own    decision.OwnPolicy
		rungs  int
		last   time.Duration // nominal, from the first failure on
	}{
		{"a list", list, decision.OwnPolicy{}, 4, 181 * time.Second},
		{"sums do not overflow", long, decision.OwnPolicy{}, 1000, math.MaxInt64},
		{"the limit: 48 retries of an hour in 48 hours", hourly(48 * time.Hour), decision.OwnPolicy{}, 48, 48 * time.Hour},
		{"one second less", hourly(48*time.Hour - time.Second), decision.OwnPolicy{}, 47, 47 * time.Hour},
		{"a limit below the first", hourly(time.Minute), decision.OwnPolicy{}, 0, 0},
		{"a job's own count", queue(), decision.OwnPolicy{MaxAttempts: 4}, 3, 3 * time.Minute},
	} {
		ladder := catalogue.PlanAt(tt.policy, tt.own, "", time.Time{}).Retries
		if len(ladder) != tt.rungs {
			t.Errorf("%s: %d rungs, want %d", tt.name, len(ladder), tt.rungs)
			continue
		}
		for _, r := range ladder {
			if r.Wait.Earliest > r.Wait.Nominal || r.Wait.Nominal > r.Wait.Latest || r.FromFirst.Earliest > r.FromFirst.Nominal ||
				r.FromFirst.Nominal > r.FromFirst.Latest || r.FromFirst.Earliest < r.Wait.Earliest {
				t.Errorf("%s: %+v", tt.name, r)
			}
		}
		if tt.rungs > 0 && time.Duration(ladder[tt.rungs-1].FromFirst.Nominal) != tt.last {
			t.Errorf("%s: %s in all, want %s", tt.name, ladder[tt.rungs-1].FromFirst.Nominal, tt.last)
		}
	}
}

func TestTimeInJSONIsSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0", 250 * time.Millisecond: "0.25", 48 * time.Hour: "172800"} {
		if got, err := json.Marshal(catalogue.Duration(d)); err != nil || string(got) != want {
			t.Errorf("%v: %s, %v, want %s", d, got, err, want)
		}
	}
}

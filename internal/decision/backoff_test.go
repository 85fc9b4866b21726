package decision_test

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// almostOne is the largest draw there is.
var almostOne = math.Nextafter(1, 0)

// TestR05Backoff: nothing outside the table, and both of its ends within reach.
func TestR05Backoff(t *testing.T) {
	tests := []struct {
		count            string
		raw, least, most int64
		maxRetries       int64
	}{
		{"0", 5, 5, 6, 5},
		{"1", 10, 8, 12, 5},
		{"2", 20, 16, 24, 5},
		{"3", 40, 32, 48, 5},
		{"4", 80, 64, 96, 5},
		{"5", 160, 128, 192, 100},
		{"6", 240, 192, 240, 100},
		{"99", 240, 192, 240, 100},
		{"9223372036854775806", 240, 192, 240, math.MaxInt64},
	}
	for _, tt := range tests {
		t.Run("retryCount "+tt.count, func(t *testing.T) {
			p := patient(tt.maxRetries)
			got := backoffMinutes(p, tt.count, 8000)
			if len(got) == 0 || got[0] != tt.least || got[len(got)-1] != tt.most {
				t.Fatalf("minutes %v, want %d to %d", got, tt.least, tt.most)
			}
			if int64(len(got)) != tt.most-tt.least+1 {
				t.Errorf("minutes %v leave some out", got)
			}
			n, _ := strconv.ParseInt(tt.count, 10, 64)
			low, high := p.Backoff.After(0, n), p.Backoff.After(almostOne, n)
			if decision.Minutes(low.Delay) != tt.least || decision.Minutes(high.Delay) != tt.most || low.Raw != time.Duration(tt.raw)*time.Minute {
				t.Errorf("extreme draws give %d and %d of %s", decision.Minutes(low.Delay), decision.Minutes(high.Delay), low.Raw)
			}
		})
	}
}

// TestBackoffOfOtherRules: the rule is a value (issue 3, part 1); another policy's is as exact.
func TestBackoffOfOtherRules(t *testing.T) {
	const largest = time.Duration(math.MaxInt64)
	tests := []struct {
		name    string
		rule    decision.BackoffRule
		draw    float64
		count   int64
		delay   time.Duration
		minutes int64
		atMax   bool
	}{
		{"R14's second", decision.BackoffRule{Base: time.Second, Min: time.Second, Max: 30 * time.Second, Factor: 5}, 0.9, 0, time.Second, 1, false},
		{"R14's 25 seconds", decision.BackoffRule{Base: time.Second, Min: time.Second, Max: 30 * time.Second, Factor: 5}, 0.9, 2, 25 * time.Second, 1, false},
		{"a list of one", decision.BackoffRule{List: []time.Duration{7 * time.Second}, Min: time.Second, Max: time.Minute, Factor: 1}, 0.9, 3, 7 * time.Second, 1, false},
		{"R14's cap", decision.BackoffRule{Base: time.Second, Min: time.Second, Max: 30 * time.Second, Factor: 5}, 0.9, 3, 30 * time.Second, 1, true},
		{"constant", decision.BackoffRule{Base: 90 * time.Second, Min: time.Second, Max: time.Hour, Factor: 1}, 0.9, math.MaxInt64, 90 * time.Second, 2, false},
		{"a base above the maximum", decision.BackoffRule{Base: time.Hour, Min: time.Minute, Max: time.Minute, Factor: 2}, 0, 0, time.Minute, 1, true},
		{"rounded to 10 s", decision.BackoffRule{Base: time.Minute, Min: time.Second, Max: time.Hour, Factor: 2, Jitter: 0.5, Rounding: 10 * time.Second}, 0.11, 0, 40 * time.Second, 1, false},
		{"the longest there is", decision.BackoffRule{Base: time.Minute, Min: time.Minute, Max: largest, Factor: 10}, 0.5, math.MaxInt64, largest, 153722868, true},
		{"exactly one more", decision.BackoffRule{Base: 1 << 62, Min: time.Minute, Max: largest, Factor: 2}, 0.5, 1, largest, 153722868, true},
		{"and a jitter above it", decision.BackoffRule{Base: time.Minute, Min: time.Minute, Max: largest, Factor: 10, Jitter: 0.9, Rounding: time.Minute}, almostOne, math.MaxInt64, largest, 153722868, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := tt.rule.After(tt.draw, tt.count)
			if b.Delay != tt.delay || decision.Minutes(b.Delay) != tt.minutes || b.AtMaximum != tt.atMax {
				t.Errorf("got %s, %d minutes, at maximum %v; want %s, %d, %v",
					b.Delay, decision.Minutes(b.Delay), b.AtMaximum, tt.delay, tt.minutes, tt.atMax)
			}
		})
	}
}

// TestR06DrawIsOfItsInputs: the draw depends on policy, salt, subject and count.
func TestR06DrawIsOfItsInputs(t *testing.T) {
	ratio := func(name, salt, id, count string) float64 {
		p := patient(100)
		p.Name, p.Salt = name, salt
		v := claim(count, "TIMEOUT")
		v.ID = decision.Text(id)
		return decide(p, v).Backoff.JitterRatio
	}
	different := []float64{
		ratio("tiss-submission", "s", "CLM-A-1", "1"),
		ratio("tiss-submission", "s", "CLM-A-1", "2"),
		ratio("tiss-submission", "s", "CLM-A-2", "1"),
		ratio("tiss-submission", "t", "CLM-A-1", "1"),
		ratio("tiss-submission", "", "CLM-A-1", "1"),
		ratio("other", "s", "CLM-A-1", "1"),
		// The same letters, cut elsewhere.
		ratio("tiss-submissions", "", "CLM-A-1", "1"),
		ratio("tiss-submission", "sC", "CLM-A-1", "1"),
		ratio("tiss-submissio", "ns", "CLM-A-1", "1"),
		ratio("tiss-submission", "s", "CLM-A-11", "1"),
	}
	slices.Sort(different)
	if n := len(slices.Compact(different)); n != 10 {
		t.Errorf("%d different draws of 10 that share nothing", n)
	}
}

// TestR06DrawOutlivesRelease: a claim analysed before an upgrade and again after it keeps its backoff.
// Whoever changes these figures gives every open claim another time.
func TestR06DrawOutlivesRelease(t *testing.T) {
	want := []int64{5, 9, 18, 34, 67}
	for count, minutes := range want {
		v := claim(strconv.Itoa(count), "TIMEOUT")
		v.ID = decision.Text("CLM-001-1234567890")
		if got := decision.Minutes(decide(decisiontest.TISSSubmission(), v).Backoff.Delay); got != minutes {
			t.Errorf("retryCount %d waits %d minutes, in the releases before this one %d", count, got, minutes)
		}
	}
}

// TestNoNegativeZero: a policy without jitter draws 0 and never −0, whose bits a database may not keep.
func TestNoNegativeZero(t *testing.T) {
	r := decision.BackoffRule{Base: time.Second, Factor: 5, Min: time.Second, Max: 30 * time.Second, Rounding: time.Millisecond}
	for _, draw := range []float64{0, 0.25, 0.5, 0.75} {
		if got := r.After(draw, 1).JitterRatio; got != 0 || math.Signbit(got) {
			t.Errorf("draw %v: got %v", draw, got)
		}
	}
}

// backoffMinutes lists the different backoffs of so many claims, in order.
func backoffMinutes(p *decision.Policy, count string, claims int) []int64 {
	seen := map[int64]bool{}
	for i := range claims {
		v := claim(count, "TIMEOUT")
		v.ID = decision.Text("CLM-JITTER-" + strconv.Itoa(i))
		d := decide(p, v)
		if math.Abs(d.Backoff.JitterRatio) > 0.20 {
			return nil
		}
		seen[decision.Minutes(d.Backoff.Delay)] = true
	}
	var minutes []int64
	for m := range seen {
		minutes = append(minutes, m)
	}
	slices.Sort(minutes)
	return minutes
}

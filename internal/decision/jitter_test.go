package decision_test

import (
	"strconv"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// TestJitterIsUniform over 100,000 subjects (R6, BIL-004-V4), at every step of the ladder. The subjects are always the same,
// so it is not a matter of luck.
func TestJitterIsUniform(t *testing.T) {
	const subjects, bins = 100_000, 20
	// A right generator is above this chi-square once in 10,000 times (19 degrees of freedom).
	const bound = 50.8
	p := decisiontest.TISSSubmission()
	for n := range 5 {
		var counts [bins]float64
		for i := range subjects {
			v := claim(strconv.Itoa(n), "TIMEOUT")
			v.ID = decision.Text("CLM-001-" + strconv.Itoa(1_000_000+i))
			ratio := decide(p, v).Backoff.JitterRatio
			if ratio < -0.20 || ratio >= 0.20 {
				t.Fatalf("retryCount %d: jitter of %v", n, ratio)
			}
			counts[int((ratio+0.20)/0.40*bins)]++
		}
		fit, share := 0.0, float64(subjects)/bins
		for _, count := range counts {
			fit += (count - share) * (count - share) / share
		}
		if t.Logf("retryCount %d: chi-square %.2f", n, fit); fit > bound {
			t.Errorf("retryCount %d: chi-square %.2f, want %.1f at most", n, fit, bound)
		}
	}
}

package decision_test

import (
	"math"
	"strconv"
	"sync"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

const subjects = 100_000

// A right generator is above this chi-square of 20 bins once in 10,000 times (19 degrees of freedom).
// The subjects are always the same, so the tests are not a matter of luck.
const chiSquareBound = 50.8

// worstBin is R19's bound on the jitter deviation, BIL-004's "Desvio > 30%".
const worstBin = 0.30

// ladder holds, once computed, the backoffs of 100,000 claims at each retryCount of the ladder.
var ladder = [5]func() []decision.Backoff{
	sync.OnceValue(func() []decision.Backoff { return backoffs("0") }),
	sync.OnceValue(func() []decision.Backoff { return backoffs("1") }),
	sync.OnceValue(func() []decision.Backoff { return backoffs("2") }),
	sync.OnceValue(func() []decision.Backoff { return backoffs("3") }),
	sync.OnceValue(func() []decision.Backoff { return backoffs("4") }),
}

func backoffs(count string) []decision.Backoff {
	p := decisiontest.TISSSubmission()
	all := make([]decision.Backoff, subjects)
	for i := range all {
		v := claim(count, "TIMEOUT")
		v.ID = decision.Text("CLM-001-" + strconv.Itoa(1_000_000+i))
		all[i] = decide(p, v).Backoff
	}
	return all
}

func jitterRatios(count int) []float64 {
	ratios := make([]float64, subjects)
	for i, b := range ladder[count]() {
		ratios[i] = b.JitterRatio
	}
	return ratios
}

// histogram of ratios over [−0.20, +0.20) in equal bins; outside tells how many do not belong there.
func histogram(ratios []float64, bins int) (counts []int, outside int) {
	counts = make([]int, bins)
	for _, r := range ratios {
		i := int(math.Floor((r + 0.20) / 0.40 * float64(bins)))
		if i < 0 || i >= bins {
			outside++
			continue
		}
		counts[i]++
	}
	return counts, outside
}

// chiSquare of 20 equal bins against the uniform distribution; infinite where a ratio lies outside.
func chiSquare(ratios []float64) float64 {
	counts, outside := histogram(ratios, 20)
	if outside > 0 {
		return math.Inf(1)
	}
	share := float64(len(ratios)) / float64(len(counts))
	sum := 0.0
	for _, n := range counts {
		sum += (float64(n) - share) * (float64(n) - share) / share
	}
	return sum
}

// deviation is R19's jitter deviation: the largest relative difference of eight equal bins from their share.
func deviation(ratios []float64) float64 {
	counts, outside := histogram(ratios, 8)
	if outside > 0 {
		return math.Inf(1)
	}
	share := float64(len(ratios)) / float64(len(counts))
	largest := 0.0
	for _, n := range counts {
		largest = max(largest, math.Abs(float64(n)/share-1))
	}
	return largest
}

// TestJitterIsUniform over subjects (R6, BIL-004-V4), at every step of the ladder.
func TestJitterIsUniform(t *testing.T) {
	for count := range 5 {
		ratios := jitterRatios(count)
		fit, worst := chiSquare(ratios), deviation(ratios)
		t.Logf("retryCount %d: chi-square %.2f of 20 bins (bound %.1f), deviation %.2f %% of 8 bins (bound 30 %%)", count, fit, chiSquareBound, 100*worst)
		if fit > chiSquareBound {
			t.Errorf("retryCount %d: chi-square %.2f, want %.1f at most", count, fit, chiSquareBound)
		}
		if worst > worstBin {
			t.Errorf("retryCount %d: deviation %.2f, want %.2f at most", count, worst, worstBin)
		}
	}
}

// TestJitterStepsAreIndependent: what a claim draws at one step says nothing of its next.
func TestJitterStepsAreIndependent(t *testing.T) {
	before := jitterRatios(0)
	for count := 1; count < 5; count++ {
		now := jitterRatios(count)
		r := correlation(before, now)
		t.Logf("retryCount %d and %d: correlation %+.4f", count-1, count, r)
		if math.Abs(r) > 0.0125 { // four standard errors
			t.Errorf("retryCount %d follows %d: correlation %+.4f", count, count-1, r)
		}
		before = now
	}
}

func correlation(a, b []float64) float64 {
	var ab, aa, bb float64 // both are centred on 0
	for i := range a {
		ab, aa, bb = ab+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
	}
	return ab / math.Sqrt(aa*bb)
}

// TestMinutesAreAsLikelyAsR5Says: rounding shares the draws out as R5 does: half a share at each end,
// and what falls below 5 on the 5.
func TestMinutesAreAsLikelyAsR5Says(t *testing.T) {
	for count := range 5 {
		least, most := oracleMinutes(int64(count))
		raw := 5 * math.Pow(2, float64(count))
		seen := map[int64]float64{}
		for _, b := range ladder[count]() {
			seen[decision.Minutes(b.Delay)]++
		}
		sum := 0.0
		for m := least; m <= most; m++ {
			from, to := max(float64(m)-0.5, raw*0.8), min(float64(m)+0.5, raw*1.2)
			if m == least {
				from = raw * 0.8
			}
			share := subjects * (to - from) / (raw * 0.4)
			sum += (seen[m] - share) * (seen[m] - share) / share
		}
		// Four standard deviations above the mean of a chi-square with so many degrees of freedom.
		freedom := float64(most - least)
		bound := freedom + 4*math.Sqrt(2*freedom)
		t.Logf("retryCount %d: chi-square %.2f over %d minutes (bound %.1f)", count, sum, most-least+1, bound)
		if sum > bound {
			t.Errorf("retryCount %d: chi-square %.2f, want %.1f at most: %v", count, sum, bound, seen)
		}
	}
}

package compare

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retry-worker/e2e/harness"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
)

// world is a portal whose errors have causes, of which each retry succeeds with a chance that hangs on when it is made.
type world struct {
	*rand.Rand
	chances [6][journal.RetryBuckets]float64
	records int64
	causes  []int // of the claims, one after the other; at random where there are none
}

func (w *world) chance(cause int, since time.Duration) float64 {
	return w.chances[cause][journal.RetryBucket(since)]
}

// claim fails under the policy until a retry succeeds, or it is given up; c is told.
func (w *world) claim(c *Comparison, p *decision.Policy, id string) {
	cause, at := w.IntN(len(w.chances)), time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC).Add(time.Duration(w.IntN(1e6))*time.Second)
	if n := len(w.causes); n > 0 {
		cause, w.causes = w.causes[0], append(w.causes[1:], w.causes[0])
	}
	s := journal.Subject{Tenant: journal.DefaultTenant, Policy: p.Name, ID: id}
	text := fmt.Sprintf("setor %c aguarda o auditor", 'A'+cause)
	past := decision.Past{Remembers: true}
	for n := int64(0); ; n++ {
		f, rejection := p.Read(decision.Variables{ID: decision.Text(id), Error: decision.Text(text), RetryCount: decision.Value(strconv.FormatInt(n, 10))})
		if rejection != nil {
			panic(rejection)
		}
		d := decision.Decide(&f, p, past, at)
		w.records++
		c.Add(&journal.Record{Subject: s, Attempt: &journal.Attempt{Record: w.records, At: at, Number: n + 1, Episode: 1, Error: text,
			Fingerprint: fmt.Sprint("cause-", cause), AnalysedCount: n, Decision: d}})
		if !d.ShouldRetry() {
			return
		}
		past.FirstFailure, at = d.FirstFailure, d.NextRetryTime
		if w.Float64() < w.chance(cause, at.Sub(d.FirstFailure)) {
			w.records++
			c.Add(&journal.Record{Subject: s, Entry: &journal.Entry{Record: w.records, Kind: journal.OutcomeEntry, Subject: s, At: at, Body: `{"outcome":"success"}`}})
			return
		}
	}
}

// truth is the mean chance that the retries of a side succeed, over the failures that are told.
func (w *world) truth(c *Comparison, side int, told func(i int) bool) float64 {
	n, sum := 0.0, 0.0
	for i, f := range c.failures {
		if !told(i) {
			continue
		}
		n++
		a := &f.sides[side]
		if !a.ShouldRetry() {
			continue
		}
		var cause int
		_, _ = fmt.Sscanf(f.cause.Fingerprint, "cause-%d", &cause)
		for k := range 40 {
			sum += w.chance(cause, f.at.Add(a.rule.After((float64(k)+0.5)/40, a.made).Delay).Sub(f.first)) / 40
		}
	}
	return sum / n
}

func policy(base time.Duration, jitter float64, retries int64) *decision.Policy {
	p := decisiontest.TISSSubmission()
	p.Backoff.Base, p.Backoff.Jitter, p.MaxRetries, p.TotalLimit = base, jitter, retries, 0
	p.Catalogue = fmt.Sprint(base, jitter, retries)
	return p
}

// Intervals hold the truth of simulated worlds.
func TestIntervalsHoldTheTruth(t *testing.T) {
	worlds, least := harness.Setting(t, "PROOF_WORLDS", 0), 0.93
	if worlds == 0 { // so few may miss by chance
		worlds, least = 50, 0.85
	}
	a, b := policy(20*time.Minute, 0.5, 5), policy(24*time.Minute, 0.2, 4)
	held, all := map[string]float64{}, float64(worlds)
	for seed := range worlds {
		w := &world{Rand: rand.New(rand.NewPCG(uint64(seed), 7))}
		for cause := range w.chances {
			for bucket := range w.chances[cause] {
				w.chances[cause][bucket] = w.Float64() * 0.8
			}
		}
		c := New(a, b)
		for i := range 400 {
			w.claim(c, a, fmt.Sprintf("CLM-%d-%d", seed, i))
		}
		r := c.Result()
		terms := map[Method]*terms{Matched: c.matched(), Propensity: c.weighed(), Robust: c.weighed()}
		for _, e := range r.Estimates {
			of := terms[e.Method]
			holds := func(name string, i Interval, truth float64) {
				if i.Low-1e-4 <= truth && truth <= i.High+1e-4 {
					held[string(e.Method)+" "+name]++
				}
			}
			holds("a", e.A, w.truth(c, 0, of.both))
			holds("b", e.B, w.truth(c, 1, of.both))
			holds("difference", e.Difference, w.truth(c, 1, of.both)-w.truth(c, 0, of.both))
			if e.Told < r.Failures*7/10 {
				t.Errorf("%s tells of %d failures of %d", e.Method, e.Told, r.Failures)
			}
		}
	}
	for name, n := range held {
		if t.Logf("%s: %.3f", name, n/all); n/all < least {
			t.Errorf("the interval of %s holds the truth in %.1f %% of the worlds", name, 100*n/all)
		}
	}
	if len(held) != 9 {
		t.Errorf("intervals of %v", held)
	}
}

// Two policies decide on the same failures; each claim of the first cause recovers at its first retry after half an hour.
func TestWhatIsDecidedOtherwise(t *testing.T) {
	ladder := policy(15*time.Minute, 0.1, 3)
	strict := policy(15*time.Minute, 0.1, 1)
	slow := policy(3*time.Hour, 0.1, 3)
	for name, test := range map[string]struct {
		b    *decision.Policy
		want Result
		told [3]int64 // failures that the estimates tell of, for both
	}{
		"the same":     {ladder, Result{RetriesA: 50, RetriesB: 50}, [3]int64{60, 60, 60}},
		"fewer":        {strict, Result{Otherwise: 30, RetriedByA: 30, RetriesA: 50, RetriesB: 20, MissedByB: 10}, [3]int64{60, 60, 60}},
		"much later":   {slow, Result{Otherwise: 50, Later: 50, RetriesA: 50, RetriesB: 50, Untold: 50. / 60}, [3]int64{10, 10, 10}},
		"much earlier": {policy(5*time.Minute, 0, 3), Result{Otherwise: 50, Earlier: 50, RetriesA: 50, RetriesB: 50, Untold: 40. / 60}, [3]int64{20, 10, 10}}, // the third retries are like those that were made
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{Rand: rand.New(rand.NewPCG(1, 1)), causes: []int{0, 1}}
			for bucket := journal.RetryBucket(31 * time.Minute); bucket < journal.RetryBuckets; bucket++ {
				w.chances[0][bucket] = 1
			}
			c := New(ladder, test.b)
			for i := range 20 {
				w.claim(c, ladder, fmt.Sprintf("CLM-%d-1", i))
			}
			r := c.Result()
			for i, e := range r.Estimates {
				if e.Told != test.told[i] {
					t.Errorf("%s tells of %d failures, want %d", e.Method, e.Told, test.told[i])
				}
				if name == "the same" && (e.Difference.Value != 0 || e.Difference.High != 0 || e.A.Value != round(10./60) && e.Method != Robust) {
					t.Errorf("%s: %+v", e.Method, e)
				}
			}
			test.want.Failures, test.want.EarlierBy, test.want.LaterBy, test.want.Estimates = 60, r.EarlierBy, r.LaterBy, r.Estimates
			if diff := cmp.Diff(test.want, r); diff != "" {
				t.Error(diff)
			}
			if (r.EarlierBy > 0) != (r.Earlier > 0) || (r.LaterBy > 0) != (r.Later > 0) {
				t.Errorf("earlier by %v, later by %v", r.EarlierBy, r.LaterBy)
			}
		})
	}
}

package learning

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

var day0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Case is a closed episode that had at least one retry.
type Case struct {
	Cause Cause
	// Retries are the times from the first failure to each retry. The last one succeeded where the case Recovered.
	Retries   []time.Duration
	Recovered bool
	At        time.Time
}

// Add counts a case as the journal sums it up.
func (f *Figures) Add(c *Case) {
	if len(c.Retries) == 0 {
		return
	}
	add := func(name journal.FigureName, bucket int) { f.AddSum(c.Cause, c.At, name, int64(bucket), 1) }
	for _, since := range c.Retries {
		add(journal.FigureRetryMade, journal.RetryBucket(since))
	}
	n := min(len(c.Retries), journal.MaxLearntRetries)
	if !c.Recovered {
		add(journal.FigureCaseLost, n)
		return
	}
	add(journal.FigureCaseRecovered, n)
	add(journal.FigureRetrySucceeded, journal.RetryBucket(c.Retries[len(c.Retries)-1]))
}

// worlds returns how many simulated worlds a test plays.
func worlds(t *testing.T) uint64 {
	if text := os.Getenv("PROOF_WORLDS"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 20
}

// tallies are what is known of simulated worlds, whose truth is known.
type tallies struct {
	brier                                float64
	bins                                 [10]struct{ predicted, succeeded, n float64 }
	wasted, saved, cases, givenUpWrongly float64
	worst                                float64 // share of a world's claims given up wrongly
}

// play plays a world of 40 causes of four reasons: a quarter never recovers, the others at rates that drift,
// half of those by a fault that ends in time.
func (all *tallies) play(seed uint64) (brier, base float64) {
	const ladder = 5
	r := rand.New(rand.NewPCG(seed, 1))
	f := New(nil, 100_000)
	rates, drifts, reasons := make([]float64, 40), make([]float64, 40), make([]string, 40)
	for i := range rates {
		reasons[i] = fmt.Sprint("r", r.IntN(4))
		if i%4 > 0 {
			rates[i], drifts[i] = r.Float64(), (r.Float64()-0.5)/2
		}
	}
	var n, succeeded, wrong float64
	for i := range 8000 {
		now, which := day0.Add(time.Duration(i)*time.Hour/2), min(r.IntN(len(rates)), r.IntN(len(rates)))
		cause := Cause{"p", reasons[which], fmt.Sprint(which), ""}
		rate := 0.0
		if rates[which] > 0 {
			rate = min(1, max(0.01, rates[which]+drifts[which]*float64(i)/8000))
		}
		var times [ladder]time.Duration
		passes := time.Duration(r.ExpFloat64() * float64(time.Hour))
		recovers := 0 // the retry that would succeed
		for k := 1; k <= ladder && recovers == 0; k++ {
			times[k-1] = time.Duration((0.5 + r.Float64()) * float64(5*time.Minute<<k))
			passed := which%2 > 0 || times[k-1] > passes
			if passed && r.Float64() < rate {
				recovers = k
			}
		}
		_, _, hopeless := f.Hopeless(cause, now)
		if rate == 0 {
			all.wasted += ladder
		}
		all.cases++
		c, handed := &Case{Cause: cause, At: now}, false
		for k := 1; k <= ladder && !c.Recovered; k++ {
			if hopeless && !(prospects{}).Explores(fmt.Sprint(seed, i), int64(k-1)) {
				handed = true
				if rate == 0 {
					all.saved += float64(ladder - k + 1)
				} else if recovers > 0 {
					wrong++
				}
				break
			}
			c.Retries, c.Recovered = times[:k], k == recovers
			y := 0.0
			if c.Recovered {
				y = 1
			}
			if p, ok := f.Probability(cause, k, times[k-1], now); ok {
				b := (succeeded + 1) / (n + 2)
				brier, base = brier+(p-y)*(p-y), base+(b-y)*(b-y)
				bin := &all.bins[min(9, int(p*10))]
				bin.predicted, bin.succeeded, bin.n = bin.predicted+p, bin.succeeded+y, bin.n+1
			}
			n, succeeded = n+1, succeeded+y
		}
		if !handed || c.Recovered {
			f.Add(c)
		}
	}
	all.givenUpWrongly += wrong
	all.worst = max(all.worst, wrong/8000)
	return brier, base
}

func TestLearnsInSimulatedWorlds(t *testing.T) {
	var all tallies
	n := worlds(t)
	for seed := range n {
		brier, base := all.play(seed)
		all.brier += brier / base / float64(n)
	}
	var calibration, total float64
	for _, b := range all.bins {
		calibration, total = calibration+math.Abs(b.predicted-b.succeeded), total+b.n
	}
	saved, wrong := all.saved/all.wasted, all.givenUpWrongly/all.cases
	t.Logf("Brier %.3f of the base rate's, calibration error %.4f, %.1f %% of wasted attempts saved, "+
		"%.3f %% given up wrongly, %.2f %% in the worst world",
		all.brier, calibration/total, 100*saved, 100*wrong, 100*all.worst)
	if all.brier > 0.9 || calibration/total > 0.05 || saved < 0.6 || wrong > 0.005 || all.worst > 0.01 {
		t.Error("expected at most 0.9, at most 0.05, at least 60 %, at most 0.5 %, at most 1 %")
	}
}

// retries returns the times of retries that were made so many minutes after the first failure.
func retries(minutes ...time.Duration) []time.Duration {
	for i := range minutes {
		minutes[i] *= time.Minute
	}
	return minutes
}

func TestHopelessNeedsProof(t *testing.T) {
	for _, test := range []struct {
		lost, recovered int
		after           time.Duration
		want            bool
	}{
		{28, 0, 0, false}, {29, 0, 0, true}, {44, 1, 0, false}, {45, 1, 0, true}, {4000, 0, 0, true},
		{3600, 400, 0, false}, {41, 0, 90 * 24 * time.Hour, false}, // half forgotten
	} {
		f := New(nil, 100)
		for i := range test.lost + test.recovered {
			f.Add(&Case{Cause: Cause{"p", "r", "c", "d"}, Retries: retries(10), Recovered: i < test.recovered, At: day0})
		}
		n, k, got := f.Hopeless(Cause{"p", "r", "c", ""}, day0.Add(test.after))
		if got != test.want {
			t.Errorf("%+v: hopeless %t by %d of %d", test, got, k, n)
		}
	}
}

func TestSaysWhenTooLittleIsKnown(t *testing.T) {
	f := New(map[string]time.Duration{"p": time.Hour}, 100)
	cause := Cause{"p", "r", "c", "d"}
	if p, ok := f.Probability(cause, 1, time.Minute, day0); ok {
		t.Errorf("nothing is known, yet the probability is %v", p)
	}
	for range 40 {
		f.Add(&Case{Cause: cause, Retries: retries(10, 20), Recovered: true, At: day0})
	}
	first, _ := f.Probability(Cause{"p", "r", "new", "d"}, 1, 10*time.Minute, day0)
	second, ok := f.Probability(Cause{"p", "r", "new", "d"}, 2, 20*time.Minute, day0)
	if !ok || first > 0.2 || second < 0.8 {
		t.Errorf("a new cause of a known reason: %v, %v, %t", first, second, ok)
	}
	if early, _ := f.Probability(cause, 2, 5*time.Minute, day0); early >= second {
		t.Errorf("at a time when none succeeded: %v, otherwise %v", early, second)
	}
	if p, ok := f.Probability(cause, 2, 20*time.Minute, day0.Add(10*time.Hour)); ok {
		t.Errorf("all is long ago, yet the probability is %v", p)
	}
}

// flood is of an adversary who makes up a cause for every claim, in the last of the weeks that are read; one cause recurs.
type flood struct{ causes int }

func (s flood) Learnt(_ context.Context, weeks []int64, take func(*journal.LearntFigure)) (journal.Head, error) {
	add := func(cause string, name journal.FigureName, value int64) {
		f := journal.LearntFigure{Figure: journal.Figure{Policy: "p", Slot: weeks[len(weeks)-1], Name: name, Bucket: 1, Value: value}, Reason: "r"}
		f.Cause, f.Destination = cause, "tiss"
		take(&f)
	}
	for i := range s.causes {
		if i%1000 == 0 {
			add("often", journal.FigureCaseLost, 1)
		}
		cause := fmt.Sprintf("%016x", i)
		add(cause, journal.FigureRetryMade, 1)
		add(cause, journal.FigureCaseRecovered, 1)
	}
	return journal.Head{Record: 1}, nil
}

func TestForgetsRareCauses(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l, p := NewLearner(flood{100_000}), &decision.Policy{Name: "p"}
	for range 2 {
		if err := l.Refresh(t.Context(), decision.Policies{"p": p}, day0); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	n, _, hopeless := l.Prospects(p, &journal.Fingerprint{ID: "often", Reason: "r"}, "tiss").Hopeless()
	if n < 185 || n > 200 || !hopeless {
		t.Errorf("%d cases of the cause that recurs, hopeless %t, want 200 but for what a week forgets", n, hopeless)
	}
	bytes, cells := int64(after.HeapAlloc)-int64(before.HeapAlloc), len(l.current.Load().cells)+len(l.past.cells)
	t.Logf("%.1f MB for %d cells", float64(bytes)/1e6, cells)
	if bytes > 40e6 || cells > 100_000 {
		t.Error("expected at most 40 MB, and 100,000 cells")
	}
}

func TestExploresOneInTwenty(t *testing.T) {
	n := 0
	for i := range 20_000 {
		if (prospects{}).Explores(fmt.Sprint("CLM-", i/5), int64(i%5)) {
			n++
		}
	}
	if n < 900 || n > 1100 {
		t.Errorf("%d of 20,000", n)
	}
}

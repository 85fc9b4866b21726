package destination

import (
	"cmp"
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// recordedOutages returns recorded outages by service, in their order. They were recorded in steps of up to 20 minutes: each
// ends somewhere in its last step, or canaries would know the instants beforehand.
func recordedOutages(t *testing.T) map[string][]time.Duration {
	file, err := os.Open("../../bench/outages/testdata/outages.csv")
	must(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	must(t, err)
	r, services := rand.New(rand.NewPCG(1, 1)), map[string][]time.Duration{}
	for _, row := range rows[1:] {
		minutes, err := strconv.Atoi(row[3])
		must(t, err)
		length := time.Duration(minutes) * time.Minute
		services[row[0]] = append(services[row[0]], length-time.Duration(r.Int64N(int64(min(length, 20*time.Minute)))))
	}
	return services
}

// The first half of each service's outages teaches, the second is played.
func TestLengthsOfRecordedOutages(t *testing.T) {
	services, registry := recordedOutages(t), NewRegistry(nil, Defaults(), time.Time{})
	for name, outages := range services {
		g := registry.Gate(name, start)
		for _, length := range outages[max(0, len(outages)/2-keptOutages) : len(outages)/2] {
			g.State.Lasted = append(g.State.Lasted, Lasted{For: length})
		}
	}
	var canaries, minutes, within, told float64
	var later []time.Duration
	for name, outages := range services {
		g := registry.Gate(name, start)
		g.State.Phase, g.State.Outage = Down, Outage{Since: start, Cause: CauseFailures}
		for i, length := range outages[len(outages)/2:] {
			if i%3 > 0 {
				continue // some are enough
			}
			over, at, minute := start.Add(length), start, start
			for ; at.Before(over); at = at.Add(cmp.Or(g.testDistance(at), g.Settings.Probe.Every)) {
				canaries++
			}
			for ; minute.Before(over); minute = minute.Add(time.Minute) {
				minutes++
			}
			later = append(later, at.Sub(minute))
			if b, ok := g.Back(start); ok {
				told++
				if !over.Before(b.Low) && !over.After(b.High) {
					within++
				}
			}
		}
		g.State.Phase = Up
	}
	slices.Sort(later)
	share, median := canaries/minutes, later[len(later)/2]
	t.Logf("%.1f %% of the tries of one a minute, at the median %v later; 80 %% intervals hold %.1f %% of %.0f", 100*share, median, 100*within/told, told)
	if share > 0.4 || median > 2*time.Minute || within/told < 0.75 || told == 0 {
		t.Error("expected at most 40 %, at most 2m, at least 75 %")
	}
}

// Outages that end by themselves are remembered; what is known of them says when the next one ends, and how far apart its
// canaries go.
func TestLasted(t *testing.T) {
	f := newFixture(t, settings(600))
	outage := func(end func()) {
		f.fail()
		f.arrive("claim")
		end()
		f.until(f.now.Add(time.Hour))
		f.want(Up)
	}
	answered := func() {
		for f.gate.State.Phase != Testing {
			f.until(f.now.Add(time.Minute))
		}
		f.until(f.now.Add(9 * time.Minute))
		f.apply(Answered{f.gate.State.Canary.Claim, f.now})
	}
	outage(func() { f.apply(Hold{Until: f.now.Add(time.Minute)}); answered() })
	for range 4 {
		outage(answered)
	}
	outage(func() { f.now = f.now.Add(time.Minute); f.apply(TreatAsUp{Until: f.now.Add(time.Minute)}) })
	f.fail()
	if _, known := f.gate.Back(f.now); known || f.gate.testDistance(f.now) != 0 {
		t.Error("four outages that ended tell when the fifth does")
	}
	f.arrive("claim")
	answered()
	f.until(f.now.Add(time.Hour))
	var cut []int
	for i, l := range f.gate.State.Lasted {
		if l.Cut {
			cut = append(cut, i)
		} else if l.For < 10*time.Minute || l.For > 12*time.Minute {
			t.Errorf("outage %d lasted %v", i, l.For)
		}
	}
	if len(f.gate.State.Lasted) != 6 || !slices.Equal(cut, []int{4}) {
		t.Errorf("remembered are %v, those at %v cut", f.gate.State.Lasted, cut)
	}
	f.fail()
	since := f.gate.State.Outage.Since
	b, known := f.gate.Back(f.now)
	if !known || b.Low.Before(since) || b.Median.Before(b.Low) || b.High.Before(b.Median) || b.High.After(since.Add(12*time.Minute)) || !f.gate.Expected(f.now).Equal(b.Median) {
		t.Errorf("down since %v, expected back %+v", since, b)
	}
	minute := since.Truncate(time.Minute)
	curve := f.gate.lengths(minute)
	if f.apply(Admitted{}); f.gate.lengths(minute.Add(59*time.Second)) != curve {
		t.Error("outages are gone through twice a minute")
	}
	if d := f.gate.testDistance(since.Add(8 * time.Minute)); d != time.Minute {
		t.Errorf("canaries go %v apart where all outages ended", d)
	}
	if _, known := f.gate.Back(since.Add(time.Hour)); known {
		t.Error("it lasts longer than all before, and is expected back")
	}
	f.apply(Hold{Until: f.now.Add(time.Hour)})
	if _, known := f.gate.Back(f.now); known {
		t.Error("a person holds it, and it is expected back")
	}
	for range 2 * keptOutages {
		f.apply(TreatAsUp{})
		f.fail()
	}
	if kept := f.gate.State.Lasted; len(kept) != keptOutages || !kept[0].Cut {
		t.Errorf("remembered are %v", kept)
	}
}

// TestEstimate: the curve is what the formula of Kaplan and Meier comes to, straight between its points, and quantile turns it
// around.
func TestEstimate(t *testing.T) {
	dice := rand.New(rand.NewPCG(7, 7))
	for _, destinations := range []int{1, 3, 125} {
		registry, own := NewRegistry(nil, Defaults(), time.Time{}), []Lasted(nil)
		var others []Lasted
		for i := range destinations {
			g := registry.Gate(strconv.Itoa(i), start)
			for range 12 {
				g.State.Lasted = append(g.State.Lasted, Lasted{time.Duration(1+dice.IntN(9)) * time.Minute, dice.IntN(4) == 0})
			}
			lasts := time.Duration(i%9) * time.Minute
			g.State.Outage = Outage{Since: start.Add(-lasts), Cause: []Cause{CauseFailures, CausePerson}[i%2]}
			if i%3 < 2 {
				g.State.Phase = Down
			}
			if i == 0 {
				own = g.State.Lasted
				continue
			}
			others = append(others, g.State.Lasted[max(0, 12-1000/destinations):]...)
			if i%3 < 2 && i%2 == 0 {
				others = append(others, Lasted{lasts, true})
			}
		}
		count := func(all []Lasted, length time.Duration) (risk, ended float64) {
			for _, l := range all {
				if l.For >= length {
					risk++
				}
				if l.For == length && !l.Cut {
					ended++
				}
			}
			return risk, ended
		}
		curve := registry.gates["0"].estimate(start)
		near := func(length time.Duration, want float64) {
			if got := curve.lasting(length); math.Abs(got-want) > 1e-9 {
				t.Errorf("of %d destinations %g last longer than %v, want %g", destinations, got, length, want)
			}
		}
		left, before := 1.0, time.Duration(0)
		for length := time.Minute; length < 10*time.Minute; length += time.Minute {
			risk, ended := count(own, length)
			lentRisk, lentEnded := count(others, length)
			weight := lent / float64(max(1, len(others)))
			if ended += weight * lentEnded; ended == 0 {
				continue
			}
			was := left
			left *= 1 - ended/(risk+weight*lentRisk)
			near(length, left)
			near((before+length)/2, (was+left)/2)
			before = length
		}
		near(time.Hour, left)
		for _, elapsed := range []time.Duration{0, 90 * time.Second, 4 * time.Minute, time.Hour} {
			for _, q := range []float64{0.03, 0.1, 0.5, 0.9} {
				want := curve.lasting(elapsed) * (1 - q)
				length, known := curve.quantile(elapsed, q)
				if known != (want > left+1e-9) {
					t.Errorf("of %d destinations, after %v, %g: known %t", destinations, elapsed, q, known)
				}
				if known && math.Abs(curve.lasting(length)-want) > 1e-9 {
					t.Errorf("of %d destinations, after %v, %g end within %v", destinations, elapsed, q, length)
				}
			}
		}
	}
}

// TestExpected: an outage is expected to last as long again as it has lasted, within bounds, or until when a person said.
func TestExpected(t *testing.T) {
	f := newFixture(t, settings(60))
	if at := f.gate.Expected(f.now); !at.IsZero() {
		t.Errorf("up, it is expected back at %v", at)
	}
	f.fail()
	since := f.gate.State.Since
	for lasted, more := range map[time.Duration]time.Duration{
		time.Minute: 25 * time.Minute, 40 * time.Minute: 40 * time.Minute, 5 * time.Hour: 2 * time.Hour,
	} {
		if at := f.gate.Expected(since.Add(lasted)); !at.Equal(since.Add(lasted + more)) {
			t.Errorf("after %v it is expected back at %v", lasted, at.Sub(since))
		}
	}
	until := f.now.Add(3 * time.Hour)
	f.apply(Hold{Until: until})
	if at := f.gate.Expected(f.now); !at.Equal(until) {
		t.Errorf("held until %v, it is expected back at %v", until, at)
	}
}

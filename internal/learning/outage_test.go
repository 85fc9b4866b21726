package learning

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"retry-worker/internal/simulate"
)

// recorded returns recorded outages by service, in their order. They were recorded in steps of up to 20 minutes: each
// ends somewhere in its last step, or canaries would know the instants beforehand.
func recorded(t *testing.T) [][]Outage {
	file, err := os.Open("../simulate/testdata/outages.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	trace, err := simulate.Read("outages.csv", file)
	if err != nil {
		t.Fatal(err)
	}
	r, index, services := rand.New(rand.NewPCG(1, 1)), map[string]int{}, [][]Outage{}
	for _, o := range trace {
		i, ok := index[o.Service]
		if !ok {
			i = len(services)
			index[o.Service], services = i, append(services, nil)
		}
		length := o.End - o.Start
		step := min(length, 20*time.Minute)
		services[i] = append(services[i], Outage{length - time.Duration(r.Int64N(int64(step))), true})
	}
	return services
}

// tries returns how many canaries an outage takes, and how late the one that finds it ended is.
func tries(o Outage, next func(elapsed time.Duration) time.Duration) (n int, late time.Duration) {
	at := time.Duration(0)
	for at < o.Length {
		at += next(at)
		n++
	}
	return n, at - o.Length
}

// The first half of each service's outages teaches, the second is played.
func TestCanariesFindRecordedRecoveries(t *testing.T) {
	services := recorded(t)
	var all []Outage
	for _, outages := range services {
		all = append(all, outages[:len(outages)/2]...)
	}
	var canaries, minutes, within, estimated int
	var lates []time.Duration
	for _, outages := range services {
		half := len(outages) / 2
		s := NewSurvival(outages[:half], all)
		for _, o := range outages[half:] {
			n, late := tries(o, s.NextCanary)
			m, lateMinute := tries(o, func(time.Duration) time.Duration { return time.Minute })
			canaries, minutes, lates = canaries+n, minutes+m, append(lates, late-lateMinute)
			if _, low, high, ok := s.Estimate(0); ok {
				estimated++
				if low <= o.Length && o.Length <= high {
					within++
				}
			}
		}
	}
	slices.Sort(lates)
	share, median := float64(canaries)/float64(minutes), lates[len(lates)/2]
	held := float64(within) / float64(estimated)
	t.Logf("%.1f %% of the tries of one a minute, at the median %v later; 80 %% intervals hold %.1f %%",
		100*share, median, 100*held)
	if share > 0.4 || median > 2*time.Minute || held < 0.75 {
		t.Error("expected at most 40 %, at most 2m, at least 75 %")
	}
}

func TestSurvivalOfOutagesThatGoOn(t *testing.T) {
	hours := func(n int, ended bool) Outage { return Outage{time.Duration(n) * time.Hour, ended} }
	s := NewSurvival([]Outage{hours(1, true), hours(2, false), hours(3, true), hours(4, true)}, nil)
	for at, want := range map[int]float64{0: 1, 1: 0.75, 2: 0.75, 3: 0.375, 4: 0} {
		if got := s.lasting(time.Duration(at) * time.Hour); got != want {
			t.Errorf("%d h: %v lasts longer, expected %v", at, got, want)
		}
	}
	median, low, high, ok := s.Estimate(time.Hour)
	if !ok || median != 3*time.Hour || low != median || high != 4*time.Hour {
		t.Errorf("after an hour: %v (%v to %v), %t", median, low, high, ok)
	}
	if _, _, _, ok := s.Estimate(4 * time.Hour); ok {
		t.Error("it lasts longer than all before, yet its end is estimated")
	}
	if next := s.NextCanary(5 * time.Hour); next != 15*time.Minute {
		t.Errorf("next canary after %v", next)
	}
}

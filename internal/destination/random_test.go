package destination

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// TestRandom plays random events: never more than the pace in 10 s, never while it is closed, never two canaries, everything released or given up,
// and a State that came through JSON does what the other does.
func TestRandom(t *testing.T) {
	for seed := range uint64(300) {
		dice := rand.New(rand.NewPCG(seed, 1))
		most := []float64{1, 7, 20, 60, 300, 6000}[dice.IntN(6)]
		s := settings(most)
		if dice.IntN(3) == 0 {
			s.Probe.URL = "https://portal.example/"
		}
		if dice.IntN(2) == 0 {
			s.Calendar = closing(t, "08:10-08:30", "08:31-08:45", "10:00-12:00", "23:00-01:00")
		}
		f := newFixture(t, s)
		held, bad := 0, dice.Float64()
		sent := []Release{{Held: Held{Claim: anotherClaim}}}
		for range 600 {
			f.now = f.now.Add(time.Duration(dice.ExpFloat64() * float64([]time.Duration{time.Second, 10 * time.Second, time.Minute}[dice.IntN(3)])))
			next := f.gate.Next(f.now)
			if !next.IsZero() && next.Before(f.now) && next.After(start) && dice.IntN(4) > 0 {
				f.now = latest(next, f.acted)
			}
			sent = append(sent, f.due()...)
			r := sent[dice.IntN(len(sent))]
			switch n := dice.IntN(100); {
			case n < 50:
				held++
				f.arrive(int64(held))
				sent = append(sent, f.all[max(0, len(f.all)-1):]...)
			case n < 90 && dice.Float64() < bad:
				f.apply(failed(r.Claim, r.At))
			case n < 90:
				f.apply(answered(r.Claim, r.At))
			case n < 94:
				f.apply(Outcome{TellsRateLimited, r.Claim, r.At, time.Duration(dice.IntN(100)) * time.Second})
			case n < 96:
				f.apply(Probed{dice.IntN(2) == 0})
			case n == 96:
				f.apply(Order{Verb: HoldClaims, Until: f.now.Add(time.Hour)})
			case n == 97:
				f.apply(Order{Verb: SendCanary})
			case n == 98:
				f.apply(Order{Verb: ReleaseAt, PerMinute: 1 + dice.Float64()*100})
			default:
				f.apply(Order{Verb: TreatAsUp, Until: f.now.Add(time.Minute)})
			}
			f.restart()
		}
		f.until(f.now.Add(100 * time.Hour))
		f.check(held, most)
	}
}

// restart replaces the State by what was recorded of it.
func (f *fixture) restart() {
	b, err := json.Marshal(f.gate.State)
	must(f.t, err)
	var again State
	must(f.t, json.Unmarshal(b, &again))
	if !reflect.DeepEqual(again, f.gate.State) {
		f.t.Fatalf("after a restart it is\n%+v\nnot\n%+v", again, f.gate.State)
	}
	if len(b) > 2000 {
		f.t.Fatalf("a state of %d bytes", len(b))
	}
	f.gate.State = again
}

func (f *fixture) check(held int, most float64) {
	seen := make(map[int64]bool)
	for _, r := range f.all {
		seen[r.Claim] = true
	}
	for _, h := range f.lost {
		if seen[h.Claim] {
			f.t.Fatalf("%d goes and is given up", h.Claim)
		}
		seen[h.Claim] = true
	}
	if len(seen) != held || f.gate.Queue.Len() != 0 || len(f.all)+len(f.lost) != held {
		f.t.Fatalf("%d of %d claims are released or given up, %d wait", len(seen), held, f.gate.Queue.Len())
	}
	allowed := int(1.1 * math.Ceil(most/6))
	for i, first := 0, 0; i < len(f.all); i++ {
		for f.all[first].At.Before(f.all[i].At.Add(-10*time.Second + 1)) {
			first++
		}
		tests := 0
		for _, r := range f.all[first : i+1] {
			if r.Kind == Test {
				tests++
			}
		}
		if i-first+1-tests > allowed {
			f.t.Fatalf("%d go in 10 s, want at most %d of %g/min", i-first+1, allowed, most)
		}
	}
}

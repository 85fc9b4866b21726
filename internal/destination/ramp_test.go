package destination

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestRamp: it grows with each step unless claims went and none was answered, and ends when all that went was answered.
func TestRamp(t *testing.T) {
	f := newFixture(t, settings(60))
	f.apply(Order{Verb: HoldClaims, Until: start.Add(time.Hour)})
	for i := range 3 {
		f.arrive(int64(i + 1))
	}
	f.apply(Order{Verb: SendCanary})
	f.apply(answered(f.due()[0].Claim, f.now))
	for i, want := range []float64{2, 4, 8, 8, 8, 8, 16, 16} {
		f.now = f.now.Add(15 * time.Second)
		if f.due(); f.gate.Flow.Ramp != want || f.gate.Outage.Tests != 1 {
			t.Errorf("step %d: %g a minute, want %g", i, f.gate.Flow.Ramp, want)
		}
		if i == 5 {
			f.apply(answered(2, f.now))
		}
	}
	f.want(Ramping)
	f.apply(answered(3, f.now))
	f.due()
	f.want(Up)
	f.fail()
	f.arrive(anotherClaim)
	for _, want := range []float64{1, 0.5, 0.25, 0.125, 0.0625, 0.0625} {
		f.apply(Order{Verb: SendCanary})
		f.apply(answered(f.due()[0].Claim, f.now))
		if f.gate.Flow.Ramp != want {
			t.Errorf("it begins at %g a minute, want %g", f.gate.Flow.Ramp, want)
		}
		f.apply(failed(anotherClaim, f.now))
		f.arrive(anotherClaim)
	}
	f.apply(Order{Verb: SendCanary})
	f.apply(answered(f.due()[0].Claim, f.now))
	f.arrive(anotherClaim + 1)
	if went := f.until(f.now.Add(5 * time.Minute)); len(went) != 1 {
		t.Fatalf("%v goes", went)
	}
	f.want(Ramping)
	f.until(f.all[len(f.all)-1].At.Add(CanaryTimeout)) // nothing was heard of it
	f.want(Up)
}

// TestFlow: what goes is spread evenly, and a late call makes up for nothing; a pace that changes changes what is left to
// wait.
func TestFlow(t *testing.T) {
	for pace, apart := range map[float64]time.Duration{0.5: 2 * time.Minute, 239: 251046026, 1200: 50 * time.Millisecond} {
		f := Flow{Next: start}
		f.change(pace, start)
		late := start.Add(time.Minute)
		if !f.take(late) || f.take(late) || !f.Next.Equal(late.Add(apart)) {
			t.Errorf("at %g a minute the next goes %s after the one before", pace, f.Next.Sub(late))
		}
	}
	f := Flow{Next: start.Add(time.Minute), Pace: 1}
	f.change(4, start.Add(20*time.Second))
	if left := f.Next.Sub(start.Add(20 * time.Second)); left != 10*time.Second {
		t.Errorf("of 40 s at a fourth of the pace %s are left", left)
	}
}

// TestTaken: behind a state that is taken over, a claim goes no sooner than if one had gone just then.
func TestTaken(t *testing.T) {
	g := Gate{Settings: settings(6)}
	g.Take(New(start), start)
	if g.Admit(start) || g.Admit(start.Add(9*time.Second)) || !g.Admit(start.Add(10*time.Second)) {
		t.Errorf("the next claim goes at %s, a pace of 10 s from %s on", g.Flow.Next, start)
	}
}

// TestFastPace: whoever lets claims go takes some time over each; as many as the pace says go all the same, and no more in
// any minute.
func TestFastPace(t *testing.T) {
	for _, pace := range []int{1201, 3000, 6000, 60_000} {
		f, dice := Flow{Next: start, Pace: float64(pace)}, rand.New(rand.NewPCG(uint64(pace), 1))
		var went []time.Time
		for now := start; now.Before(start.Add(3 * time.Minute)); now = now.Add(time.Duration(dice.Int64N(int64(lateBy)))) {
			for f.take(now) {
				went = append(went, now)
			}
			first, _ := slices.BinarySearchFunc(went, now.Add(-time.Minute+1), time.Time.Compare)
			if n := len(went) - first; n > pace {
				t.Fatalf("%d claims go in the minute before %s, at most %d may", n, now.Sub(start), pace)
			}
		}
		if len(went) < pace*3*998/1000 {
			t.Errorf("%d claims go in three minutes at %d a minute", len(went), pace)
		}
	}
}

// TestSlowestPace: however slow a person wants them to go, they go one by one.
func TestSlowestPace(t *testing.T) {
	for _, pace := range []float64{1e-3, 1e-9, 1e-300, 5e-324} {
		f := newFixture(t, settings(60))
		f.apply(Order{Verb: HoldClaims, Until: start.Add(time.Hour)})
		for _, claim := range []int64{101, 102, 103} {
			f.arrive(claim)
		}
		f.apply(Order{Verb: ReleaseAt, PerMinute: pace})
		if went := f.until(f.now.Add(time.Hour)); len(went) != 1 {
			t.Errorf("at %g a minute %d claims go in an hour, want the first", pace, len(went))
		}
		f.apply(Order{Verb: ReleaseAt, PerMinute: 60})
		if went := f.until(f.now.Add(10 * time.Second)); len(went) != 2 {
			t.Errorf("after %g a minute %d claims go at once a second, want the others", pace, len(went))
		}
	}
}

// TestHeldRamp: a person's hold ends a ramp, and the next one counts those that wait then.
func TestHeldRamp(t *testing.T) {
	f := newFixture(t, settings(60))
	f.fail()
	for _, claim := range []int64{101, 102, 103} {
		f.arrive(claim)
	}
	canary := f.until(f.now.Add(5 * time.Minute))
	f.apply(answered(canary[0].Claim, f.now))
	f.due()
	f.apply(Order{Verb: HoldClaims, Until: f.now.Add(time.Hour)})
	if !f.gate.Outage.Until.IsZero() {
		t.Errorf("the outage that a person goes on with has ended at %s", f.gate.Outage.Until)
	}
	for i := range 5 {
		f.arrive(int64(i + 1))
	}
	f.now = f.now.Add(time.Second)
	f.apply(Order{Verb: ReleaseAt, PerMinute: 60})
	went := f.until(f.now.Add(10 * time.Second))
	if last := went[len(went)-1]; len(went) != 6 || last.Number != 6 || last.Outage.Held != 6 {
		t.Errorf("the last of %d is released as %d of %d", len(went), last.Number, last.Outage.Held)
	}
}

// TestUnavailableFor: a destination that is unavailable is down, also if it says for how long, and is not tested before.
func TestUnavailableFor(t *testing.T) {
	f := newFixture(t, settings(60))
	for range 5 {
		f.gate.Apply(Admitted{1}, f.now)
		f.apply(Outcome{TellsFailed, 0, time.Time{}, 10 * time.Minute})
	}
	f.want(Down)
	f.arrive(1)
	if went := f.until(start.Add(10*time.Minute - time.Second)); len(went) != 0 {
		t.Errorf("%d is sent ahead %s after the destination asked for 10 minutes", went[0].Claim, went[0].At.Sub(start))
	}
	if went := f.until(start.Add(10 * time.Minute)); len(went) != 1 {
		t.Fatal("no claim is sent ahead then")
	}
	f.apply(Outcome{TellsFailed, 1, f.now, time.Minute})
	f.want(Down)
	f = newFixture(t, settings(60))
	f.apply(Outcome{TellsFailed, 0, time.Time{}, 30 * time.Second})
	if f.want(Up); f.gate.PerMinute(&f.gate.Settings, f.now) != 30 || f.arrive(2) != "" {
		t.Error("one that is up is not left alone")
	}
}

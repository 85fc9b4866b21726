package destination

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// TestRamp: it grows with each step unless claims went and none was answered, and ends when all that went was answered.
func TestRamp(t *testing.T) {
	f := newFixture(t, settings(60))
	f.apply(Hold{start.Add(time.Hour)})
	for i := range 3 {
		f.arrive(fmt.Sprint(i))
	}
	f.apply(TestNow{})
	f.apply(Answered{f.due()[0].Claim, f.now})
	for i, want := range []float64{2, 4, 8, 8, 8, 8, 16, 16} {
		f.now = f.now.Add(15 * time.Second)
		if f.due(); f.gate.State.Flow.Ramp != want || f.gate.State.Outage.Tests != 1 {
			t.Errorf("step %d: %g a minute, want %g", i, f.gate.State.Flow.Ramp, want)
		}
		if i == 5 {
			f.apply(Answered{"1", f.now})
		}
	}
	f.want(Ramping)
	f.apply(Answered{"2", f.now})
	f.due()
	f.want(Up)
	f.fail()
	f.arrive("x")
	for _, want := range []float64{1, 0.5, 0.25, 0.125, 0.0625, 0.0625} {
		f.apply(TestNow{})
		f.apply(Answered{f.due()[0].Claim, f.now})
		if f.gate.State.Flow.Ramp != want {
			t.Errorf("it begins at %g a minute, want %g", f.gate.State.Flow.Ramp, want)
		}
		f.apply(Failed{"x", f.now})
		f.arrive("x")
	}
	f.apply(TestNow{})
	f.apply(Answered{f.due()[0].Claim, f.now})
	f.arrive("y")
	if went := f.until(f.now.Add(5 * time.Minute)); len(went) != 1 {
		t.Fatalf("%v goes", went)
	}
	f.want(Ramping)
	f.until(f.all[len(f.all)-1].At.Add(CanaryTimeout)) // nothing was heard of it
	f.want(Up)
}

// TestFlow: a fast pace lets the caller be 50 ms late, and makes up for it.
func TestFlow(t *testing.T) {
	for pace, want := range map[float64]struct {
		saved, soon float64 // credit after a minute, and after 100 ms
		ready       time.Duration
	}{
		0:    {0, 0, -1},
		239:  {1, 239.0 / 600, 251046026},
		240:  {1.2, 0.995 * 0.4, 251256282},
		6000: {6, 6, 10050252},
	} {
		saved, soon := Flow{At: start}, Flow{At: start}
		saved.fill(pace, start.Add(time.Minute))
		soon.fill(pace, start.Add(100*time.Millisecond))
		at := (&Flow{At: start}).ready(pace)
		if math.Abs(saved.Credit-want.saved)+math.Abs(soon.Credit-want.soon) > 1e-9 || at.IsZero() != (want.ready < 0) ||
			!at.IsZero() && at.Sub(start) != want.ready {
			t.Errorf("at %g a minute: %g, %g, ready after %d", pace, saved.Credit, soon.Credit, at.Sub(start))
		}
	}
}

package destination

import (
	"fmt"
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
}

package destination

import (
	"testing"
	"time"
)

// TestRefutedProbe: a portal works, and its status URL is wrong. Its claims show that once, and it is shut no more;
// once the URL has answered, two probes that fail are believed again.
func TestRefutedProbe(t *testing.T) {
	s := settings(60)
	s.Probe.URL = "https://portal.example/"
	f := newFixture(t, s)
	shut, was := 0, Up
	for minute := range 24 * 60 {
		f.now = start.Add(time.Duration(minute) * time.Minute)
		if minute%s.probeMinutes() == 0 {
			f.apply(Probed{})
		}
		if minute%20 == 0 {
			f.gate.Hold(Held{Claim: int64(minute + 1), Since: f.now, Limit: f.now.Add(48 * time.Hour)})
		}
		for _, r := range f.due() {
			if r.Kind.Wanted() {
				f.apply(answered(r.Claim, r.At))
			}
		}
		if now := f.gate.Phase; now != was {
			if was = now; now == Down {
				shut++
			}
		}
	}
	if f.want(Up); shut != 1 {
		t.Errorf("a portal that works is shut %d times in a day, want once", shut)
	}
	for range 9 {
		f.apply(Probed{})
	}
	f.want(Up)
	f.apply(Probed{OK: true})
	f.apply(Probed{})
	f.apply(answered(0, time.Time{}))
	f.apply(Probed{})
	f.want(Up) // a claim was answered since the first failed
	f.apply(Probed{OK: true})
	f.apply(Probed{})
	f.want(Up)
	f.apply(Probed{})
	f.want(Down)
}

func (s *Settings) probeMinutes() int { return int(s.Probe.Every / time.Minute) }

// TestRefusalsAmongTimeouts: no claim passes a gate, and some meet a time-out, the others a refusal, many a second.
// What share of them fails opens the breaker, and an outage lasts until a test.
func TestRefusalsAmongTimeouts(t *testing.T) {
	const most = 8 // changes of phase in seven minutes: three in a minute and a half at the most
	for _, share := range []float64{0.2, 0.4, 0.6, 0.9} {
		f := newFixture(t, settings(60))
		changes, since := 0, f.now
		for i := 0; f.now.Before(start.Add(7 * time.Minute)); i++ {
			f.now = f.now.Add(50 * time.Millisecond)
			before := f.gate.Phase
			if int(float64(i+1)*share) > int(float64(i)*share) {
				f.apply(failed(0, time.Time{}))
			} else {
				f.apply(answered(0, time.Time{}))
			}
			f.due()
			now := f.gate.Phase
			if now == before {
				continue
			}
			changes++
			if before == Down && f.now.Sub(since) < time.Minute {
				t.Fatalf("%.0f %% time out: an outage lasts %s", 100*share, f.now.Sub(since))
			}
			since = f.now
		}
		if opened := changes > 0; opened != (share > 0.5) || changes > most {
			t.Errorf("%.0f %% time out: %d changes", 100*share, changes)
		}
		for _, l := range f.gate.Lasted {
			if l < time.Minute {
				t.Errorf("%.0f %% time out: an outage of %s is remembered", 100*share, l)
			}
		}
	}
}

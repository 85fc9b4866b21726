package destination

import (
	"testing"
	"time"

	"retry-worker/internal/calendar"
)

var start = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

func settings(most float64) Settings {
	s := Defaults()
	s.Pace.Most, s.Pace.Limited = most, true
	return s
}

// failedClaim is the first of the claims that fixture.fail sends; anotherClaim is one that no gate held.
const (
	failedClaim  = 1_000_000
	anotherClaim = 2_000_000
)

// fixture is a Gate with what a test sees of it.
type fixture struct {
	t    *testing.T
	gate Gate
	now  time.Time
	// acted is when the gate was last called.
	acted time.Time
	all   []Release
	lost  []Held
	asked bool // the probe's URL was to be asked
	// out are canaries without a result.
	out map[int64]time.Time
}

func newFixture(t *testing.T, s Settings) *fixture {
	return &fixture{t: t, gate: Gate{Name: "unimed-sp", Settings: s, State: New(start)}, now: start, out: make(map[int64]time.Time)}
}

// due lets the gate act, and checks what must always hold.
func (f *fixture) due() []Release {
	f.acted = f.now
	released, lost, probe := f.gate.Due(f.now)
	f.asked = f.asked || probe
	for _, r := range released {
		if !f.gate.Settings.Calendar.IsOpen(f.now) {
			f.t.Fatalf("%d goes at %s, when it is closed", r.Claim, f.now)
		}
		if r.Kind == Test {
			for claim, sent := range f.out {
				if f.now.Sub(sent) < CanaryTimeout {
					f.t.Fatalf("%d is sent ahead while %d is", r.Claim, claim)
				}
			}
			f.out = map[int64]time.Time{r.Claim: f.now}
		}
	}
	f.all, f.lost = append(f.all, released...), append(f.lost, lost...)
	return released
}

func (f *fixture) apply(e Event) {
	switch e := e.(type) {
	case Outcome:
		delete(f.out, e.Claim)
	case Lost:
		delete(f.out, e.Claim)
	}
	f.acted = f.now
	f.gate.Apply(e, f.now)
}

func failed(claim int64, sent time.Time) Outcome {
	return Outcome{Tells: TellsFailed, Claim: claim, Sent: sent}
}
func answered(claim int64, sent time.Time) Outcome {
	return Outcome{Tells: TellsAnswered, Claim: claim, Sent: sent}
}

// arrive holds a claim and returns the reason for which it may go at once, empty if it waits.
func (f *fixture) arrive(claim int64) Kind {
	f.gate.Hold(Held{Claim: claim, Since: f.now, Limit: f.now.Add(48 * time.Hour), RetriesLeft: 5})
	for _, r := range f.due() {
		if r.Claim == claim {
			return r.Kind
		}
	}
	return ""
}

// fail lets five claims fail.
func (f *fixture) fail() {
	for i := range inARow {
		f.now = f.now.Add(10 * time.Second)
		claim := int64(failedClaim + i)
		f.arrive(claim)
		f.apply(failed(claim, f.now))
	}
}

func (f *fixture) want(phase Phase) {
	f.t.Helper()
	if f.gate.Phase != phase {
		f.t.Fatalf("%s, want %s: %+v", f.gate.Phase, phase, f.gate.State)
	}
}

// until lets time pass from one wake-up of the gate to the next, and returns what goes.
func (f *fixture) until(end time.Time) (released []Release) {
	inVain := 0
	for next := f.gate.Next(f.now); !next.IsZero() && !next.After(end); next = f.gate.Next(f.now) {
		if inVain++; next.After(f.now) {
			inVain = 0
		}
		if inVain > 100 {
			f.t.Fatalf("at %s it asks to be woken at %s, again and again", f.now, next)
		}
		f.now = latest(f.now, next)
		released = append(released, f.due()...)
	}
	f.now = end
	return append(released, f.due()...)
}

// closing returns a calendar of some hours of each day.
func closing(t *testing.T, hours ...string) *calendar.Calendar {
	t.Helper()
	windows := make([]calendar.Window, len(hours))
	for i, text := range hours {
		windows[i].Hours = text
	}
	c, err := calendar.New(time.UTC, windows, nil)
	must(t, err)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

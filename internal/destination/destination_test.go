package destination

import (
	"testing"
	"time"

	"retry-worker/internal/calendar"
)

// TestOutage: the whole way of an outage, by the clock.
func TestOutage(t *testing.T) {
	f := newFixture(t, settings(20))
	f.fail()
	f.want(Down)
	for i := range int64(50) {
		if kind := f.arrive(100 + i); kind != "" {
			t.Fatalf("claim %d goes as %s", i, kind)
		}
	}
	opened := f.now
	for i, at := range []time.Duration{time.Minute, 6 * time.Minute, 11 * time.Minute} {
		released := f.until(opened.Add(at))
		if len(released) != 1 || released[0].Kind != Test || released[0].Claim != int64(100+i) {
			t.Fatalf("after %s %v goes, want the canary %d", at, released, 100+i)
		}
		if i < 2 {
			f.apply(Outcome{Claim: anotherClaim})
			f.want(Testing)
			f.apply([]Event{failed(released[0].Claim, f.now), Outcome{Claim: released[0].Claim}}[i])
			f.want(Down)
		}
	}
	f.want(Testing)
	f.apply(answered(102, f.now))
	f.want(Ramping)
	var released []Release
	for second := range 600 {
		for _, r := range f.until(f.now.Add(time.Second)) {
			released = append(released, r)
			f.apply(answered(r.Claim, r.At))
		}
		if second == 73 {
			f.want(Ramping)
		}
		if second == 74 {
			f.want(Up) // at its pace, though most claims wait still
		}
	}
	if f.gate.Left != Up {
		t.Errorf("it left %q first", f.gate.Left)
	}
	if len(released) != 47 || released[46].Claim != 149 || released[46].Reason("unimed-sp", time.UTC) != "unimed-sp down 08:00–08:11; released 47th of 47" {
		t.Errorf("%d go, the last as %q", len(released), released[len(released)-1].Reason("unimed-sp", time.UTC))
	}
	if f.arrive(anotherClaim); f.gate.Outage.Released != 47 {
		t.Errorf("%d of 47 are released", f.gate.Outage.Released)
	}
}

// TestRateLimit lowers the pace at once, raises it slowly, and opens nothing.
func TestRateLimit(t *testing.T) {
	f := newFixture(t, settings(60))
	pace := func() float64 { return f.gate.PerMinute(&f.gate.Settings, f.now) }
	for range 20 {
		f.apply(Outcome{TellsRateLimited, anotherClaim, start, 30 * time.Second})
	}
	if f.want(Up); pace() != 30 {
		t.Errorf("the pace is %g after one burst of rate limits, want 30", pace())
	}
	if f.arrive(1) != "" || len(f.until(start.Add(29*time.Second))) != 0 || len(f.until(start.Add(30*time.Second))) != 1 {
		t.Error("Retry-After is not kept")
	}
	if f.now = start.Add(time.Minute); pace() != 42 {
		t.Errorf("the pace is %g after a minute, want 42", pace())
	}
	if f.now = start.Add(time.Hour); pace() != 60 {
		t.Errorf("the pace is %g after an hour, want 60", pace())
	}
}

// TestReasons: why a claim went.
func TestReasons(t *testing.T) {
	f := newFixture(t, settings(12))
	if f.arrive(1) != Pass || f.arrive(2) != "" || len(f.until(start.Add(5*time.Second))) != 1 {
		t.Errorf("%+v go", f.all)
	}
	for i, want := range []string{"x up", "x takes no more at once; waited its turn"} {
		if why := f.all[i].Reason("x", time.UTC); why != want {
			t.Errorf("%q, want %q", why, want)
		}
	}
}

// TestFree: claims go at once, past those that wait, while their destination is up and open, the policies set it no pace,
// and it has asked for none.
func TestFree(t *testing.T) {
	s := Defaults()
	s.Calendar = closing(t, "06:00-18:00")
	f := newFixture(t, s)
	free := func(want bool, when string) {
		t.Helper()
		if f.gate.IsFree(f.now) != want {
			t.Errorf("%s: claims go at once: %t", when, !want)
		}
	}
	free(true, "up")
	f.gate.Settings.Pace.Limited = true
	free(false, "with a pace of its own")
	f.gate.Settings.Pace.Limited = false
	f.gate.Queue.Add(Held{Claim: 1})
	for range 1000 {
		if !f.gate.Admit(f.now) {
			t.Fatal("one waits, and those that come do, too")
		}
	}
	if admitted, _ := f.gate.Evidence.counts(); admitted != 1000 {
		t.Errorf("%d are counted", admitted)
	}
	f.gate.Queue.Remove(1)
	f.apply(Outcome{TellsRateLimited, anotherClaim, f.now, 10 * time.Minute})
	free(false, "asked to wait")
	f.now = f.now.Add(10*time.Minute - time.Second)
	free(false, "asked to wait for a second more")
	f.now = f.now.Add(time.Second)
	free(true, "its pace has grown to the whole since")
	f.apply(Outcome{TellsRateLimited, anotherClaim, f.now, 0})
	f.now = f.now.Add(2 * time.Minute)
	free(false, "its pace grows")
	f.now = f.now.Add(time.Minute)
	free(true, "its pace has grown")
	f.now = start.Add(10*time.Hour - time.Second)
	free(true, "open")
	f.now = start.Add(10 * time.Hour)
	free(false, "closed")
	f.now = start.Add(24 * time.Hour)
	f.fail()
	free(false, "down")
}

// TestCommands: what persons may do.
func TestCommands(t *testing.T) {
	f := newFixture(t, settings(60))
	if !f.gate.Admit(f.now) || f.gate.Admit(f.now) {
		t.Error("at a pace of one a second the first may go at once, and none with it")
	}
	f.gate.Queue.Add(Held{Claim: 1})
	if f.now = f.now.Add(time.Second); f.gate.Admit(f.now) || len(f.due()) != 1 {
		t.Error("one that comes goes before the one that waits")
	}
	f.apply(Order{Verb: HoldClaims, Until: start.Add(time.Hour)})
	if !f.gate.Outage.Since.Equal(f.now) || f.gate.Admit(f.now.Add(time.Second)) {
		t.Error("a person's hold is no outage")
	}
	if f.arrive(2) != "" || f.arrive(3) != "" || len(f.until(start.Add(59*time.Minute))) != 0 {
		t.Fatal("a claim passes what a person holds")
	}
	f.apply(Order{Verb: SendCanary})
	if r := f.due(); len(r) != 1 || r[0].Kind != Test {
		t.Fatalf("%v goes, want a canary", r)
	}
	f.apply(Order{Verb: ReleaseAt, PerMinute: 6})
	if r := f.until(f.now.Add(time.Minute)); len(r) != 1 || r[0].Kind != RampedUp {
		t.Fatalf("%v goes, want the other claim at the pace", r)
	}
	f.apply(Order{Verb: TreatAsUp, Until: f.now.Add(time.Hour)})
	for range 3 {
		f.fail()
	}
	f.want(Up)
	f.now = f.now.Add(time.Hour)
	f.fail()
	f.want(Down)
	f.apply(Order{Verb: TreatAsUp, Until: f.now.Add(time.Hour)})
	f.apply(Order{Verb: HoldClaims, Until: f.now.Add(time.Minute)}) // who ordered it thinks better of it
	f.arrive(4)
	f.until(f.now.Add(time.Minute))
	f.apply(answered(4, time.Time{}))
	f.until(f.now.Add(20 * time.Minute))
	f.want(Up)
	f.fail()
	f.want(Down)
}

// TestProbe: two that fail hold, one that succeeds lets a canary go, and no probe holds for ever.
func TestProbe(t *testing.T) {
	s := settings(60)
	s.Probe.URL = "https://portal.example/"
	f := newFixture(t, s)
	f.gate.Lead(start)
	if f.now = f.gate.Next(f.now); !f.now.Equal(start.Add(firstTest)) {
		t.Errorf("who begins to lead asks the URL at %s", f.now)
	}
	if f.due(); !f.gate.Next(f.now).Equal(f.now.Add(s.Probe.Every)) {
		t.Errorf("the next probe is at %s", f.gate.Next(f.now))
	}
	f.now = f.gate.Next(f.now)
	f.gate.Admit(f.now)
	if _, _, probe := f.gate.Due(f.now); !probe {
		t.Error("a claim that goes as a probe is due takes it away")
	}
	f.apply(Probed{})
	f.want(Up)
	f.apply(Probed{})
	f.want(Down)
	f.arrive(1)
	f.arrive(2)
	f.now = f.now.Add(30 * time.Minute)
	if r := f.due(); len(r) != 0 {
		t.Fatalf("%v goes", r)
	}
	f.apply(Probed{OK: true})
	if r := f.due(); len(r) != 1 || r[0].Kind != Test {
		t.Fatalf("%v goes, want one canary", r)
	}
	f.apply(failed(1, f.now))
	if r := f.until(f.now.Add(time.Hour)); len(r) != 1 || r[0].Kind != Test {
		t.Errorf("%v goes, want one canary that distrusts the probe", r)
	}
	f.arrive(3)
	f.apply(Order{Verb: HoldClaims, Until: f.now.Add(time.Hour)})
	f.apply(Probed{OK: true})
	if r := f.until(f.now.Add(59 * time.Minute)); len(r) != 0 {
		t.Errorf("%v goes by a probe while a person holds all", r)
	}
}

// TestFewWait: canaries go further apart where more went than claims wait. Another follows after ten minutes without word, and
// at once where the first never went.
func TestFewWait(t *testing.T) {
	f := newFixture(t, settings(60))
	f.fail()
	for i, minutes := range []time.Duration{1, 5, 10, 15, 15, 10} {
		f.arrive(int64(i + 1))
		at := f.now.Add(minutes * time.Minute)
		if len(f.until(at.Add(-time.Second))) != 0 || len(f.until(at)) != 1 {
			t.Fatalf("canary %d does not go %d minutes after the one before", i, minutes)
		}
		if i < 4 {
			f.apply(failed(int64(i+1), f.now))
		}
	}
	f.arrive(7)
	f.apply(Lost{anotherClaim})
	f.want(Testing)
	f.apply(Lost{6})
	if released := f.due(); len(released) != 1 || released[0].Claim != 7 {
		t.Errorf("%v goes in the place of the one that is lost", released)
	}
}

// TestLateCanary: a canary that left only when it had timed out, or nearly, as the engine was away, is waited for from then on.
// Where a person holds all but it, no other goes either.
func TestLateCanary(t *testing.T) {
	for late, held := range map[time.Duration]bool{time.Minute: false, -time.Second: false, time.Hour: true} {
		f := newFixture(t, settings(60))
		f.fail()
		f.arrive(1)
		f.arrive(2)
		if held {
			f.apply(Order{Verb: HoldClaims, Until: f.now.Add(2 * time.Hour)})
			f.apply(Order{Verb: SendCanary})
		}
		f.until(f.now.Add(time.Minute))
		f.want(Testing)
		f.now = f.now.Add(CanaryTimeout + late)
		f.apply(Departed{1})
		f.now = f.now.Add(time.Minute)
		if released := f.due(); len(released) != 0 {
			t.Errorf("held %t: %v goes beside the canary that has just left", held, released)
		}
		if f.want(map[bool]Phase{false: Testing, true: Down}[held]); held {
			continue
		}
		f.apply(answered(1, f.now))
		f.want(Ramping)
	}
}

// TestChanged: the State is to be recorded, with the phase that it left, where claims are held or go by it.
func TestChanged(t *testing.T) {
	f := newFixture(t, settings(60))
	for i, step := range []struct {
		after time.Duration
		do    func()
		want  bool
		left  Phase
	}{
		{0, func() { f.arrive(1) }, false, ""},
		{0, f.fail, true, Up},
		{0, func() { f.arrive(2); f.arrive(3) }, false, ""},
		{firstTest, func() { f.due() }, true, Down},
		{CanaryTimeout, func() { f.due() }, true, ""}, // another canary
		{0, func() { f.apply(answered(3, f.now)) }, true, Testing},
		{14 * time.Second, func() { f.apply(Admitted{}) }, false, ""},
		{time.Second, func() { f.apply(Admitted{}) }, true, ""}, // the pace grows
		{0, func() { f.due() }, true, Ramping},
		{time.Second, func() { f.apply(Outcome{TellsRateLimited, 0, f.now, 0}) }, true, ""},
		{time.Second, func() { f.apply(Outcome{TellsRateLimited, 0, start, 0}) }, true, ""}, // the pause grows
		{0, func() { f.apply(Outcome{TellsRateLimited, 0, start, 0}) }, false, ""},
	} {
		f.now = f.now.Add(step.after)
		f.gate.Changed, f.gate.Left = false, ""
		if step.do(); f.gate.Changed != step.want || f.gate.Left != step.left {
			t.Errorf("step %d: changed %t, left %q, want %t and %q", i, f.gate.Changed, f.gate.Left, step.want, step.left)
		}
	}
}

// TestOrder: the nearest deadline first, then what is worth most, then what waits longest; what runs out of time is given up before.
func TestOrder(t *testing.T) {
	f := newFixture(t, settings(60))
	f.apply(Order{Verb: HoldClaims, Until: start.Add(3 * time.Hour)})
	for claim, deadline := range map[rune]time.Duration{
		'a': 0, 'b': 10 * time.Hour, 'c': 9 * time.Hour, 'x': 10 * time.Hour, 'd': 2 * time.Hour, 'e': 20 * time.Minute,
	} {
		h := Held{Claim: int64(claim), Since: InstantOf(start), RetriesLeft: 5}
		if claim == 'x' {
			h.Since, h.Cents = InstantOf(start.Add(time.Second)), 100
		}
		if deadline > 0 {
			h.Deadline = InstantOf(start.Add(deadline))
		}
		f.gate.Hold(h)
	}
	if f.until(start.Add(10*time.Minute - time.Second)); len(f.lost) != 0 {
		t.Errorf("%v are given up before half of their time is over", f.lost)
	}
	f.until(start.Add(10 * time.Minute))
	f.until(start.Add(time.Hour))
	if len(f.lost) != 2 || f.lost[0].Claim != 'e' || f.lost[1].Claim != 'd' {
		t.Errorf("%v are given up", f.lost)
	}
	since, deadline, cents := f.gate.Queue.Sum()
	if next := f.gate.Queue.Next(2); cents != 100 || since != InstantOf(start) || deadline != InstantOf(start.Add(9*time.Hour)) || len(next) != 2 ||
		next[1].Claim != 'x' {
		t.Errorf("they wait since %d, the nearest deadline is %d, the next are %v", since, deadline, next)
	}
	if since, deadline, cents := new(Queue).Sum(); cents != 0 || since != 0 || deadline != 0 {
		t.Errorf("nobody waits since %d, until %d", since, deadline)
	}
	f.apply(Order{Verb: ReleaseAt, PerMinute: 60})
	var order string
	for _, r := range f.until(f.now.Add(10 * time.Second)) {
		order += string(rune(r.Claim))
	}
	if order != "cxba" {
		t.Errorf("they go as %s, want cxba", order)
	}
}

// TestInstant: an instant of 1970 is one, and none is none.
func TestInstant(t *testing.T) {
	if InstantOf(time.Unix(0, 0)) == 0 || InstantOf(time.Time{}) != 0 || !Instant(0).Time().IsZero() {
		t.Error("the first instant of 1970 is none, or none is an instant")
	}
	if at := start.Add(time.Millisecond); InstantOf(at).Time() != at {
		t.Errorf("%s becomes %s", at, InstantOf(at).Time())
	}
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

// TestClosed: what comes while it is closed goes when it opens, at the pace; a probe, or a canary, waits for that, too; what
// cannot be sent before it closes is given to a person an hour before.
func TestClosed(t *testing.T) {
	s := settings(6)
	s.Calendar = closing(t, "10:00-18:00")
	f := newFixture(t, s)
	if kind := f.arrive(1); kind != "" || !f.gate.Next(f.now).Equal(start.Add(2*time.Hour)) {
		t.Fatalf("it goes (%q), or next is %s", kind, f.gate.Next(f.now))
	}
	f.arrive(2)
	released := f.until(start.Add(3 * time.Hour))
	if len(released) != 2 || !released[0].At.Equal(start.Add(2*time.Hour)) || released[1].At.Sub(released[0].At) != 10*time.Second {
		t.Fatalf("released %+v", released)
	}
	if why := released[0].Reason("unimed-sp", time.UTC); why != "unimed-sp closed until 10:00" {
		t.Errorf("reason %q", why)
	}
	f.fail()
	f.want(Down)
	f.now = start.Add(11 * time.Hour)
	f.gate.Hold(Held{Claim: 3, Since: InstantOf(f.now), Deadline: InstantOf(start.Add(100 * time.Hour)), RetriesLeft: 5})
	f.gate.Hold(Held{Claim: 4, Since: InstantOf(f.now), Deadline: InstantOf(start.Add(25 * time.Hour)), RetriesLeft: 5})
	if f.due(); len(f.lost) != 1 || f.lost[0].Claim != 4 {
		t.Fatalf("given up: %+v", f.lost)
	}
	released = f.until(start.Add(26 * time.Hour))
	if len(released) != 1 || released[0].Kind != Test || !released[0].At.Equal(start.Add(26*time.Hour)) {
		t.Fatalf("released %+v", released)
	}
	f.gate.Hold(Held{Claim: 5, Since: InstantOf(f.now), Deadline: InstantOf(start.Add(40 * time.Hour))})
	if at := f.gate.Queue.endsAt.Time(); !at.Equal(start.Add(33*time.Hour - time.Millisecond)) {
		t.Errorf("given up at %s", at)
	}
}

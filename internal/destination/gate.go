package destination

import (
	"fmt"
	"strconv"
	"time"
)

// Gate is a destination with the claims that wait for it. It is not safe for concurrent use.
//
// The one who holds the lease owns the Gates. It makes them of the States that were recorded last and of the claims
// that are held, tells them what happens by Apply, and calls Due whenever something was told and at Next. It records
// State where Changed says so, before it carries out what Due returns. The others take over what it records, and let
// claims through where IsFree says so.
type Gate struct {
	Name     string
	Settings Settings
	State
	Queue Queue
	// Changed reports whether the State is to be recorded, Left the phase that it left first since that was done; who
	// records it sets both back.
	Changed bool
	Left    Phase
	// Leaving reports that what Due returned is being recorded: until then nobody goes before it.
	Leaving bool

	used time.Time // when the Registry was asked for it last
	now  time.Time // of the event that is being applied
	goes Kind      // why a claim goes by it
}

// Release is a claim that may go.
type Release struct {
	Held
	Kind Kind
	At   time.Time
	// Opened is when the destination did that was closed at Since; zero where it was open.
	Opened time.Time
	// Number of the Outage's held claims that this one is, as far as it waited for its end; otherwise 0.
	Number int
	Outage Outage
}

// Due lists what may go, and what is to be given up, at now; probe reports whether the URL is to be asked for.
func (g *Gate) Due(now time.Time) (released []Release, givenUp []Held, probe bool) {
	for at := g.Queue.GiveUpAt(); !at.IsZero() && !now.Before(at); at = g.Queue.GiveUpAt() {
		h, _ := g.Queue.Remove(g.Queue.byEnd()[0].Claim)
		givenUp = append(givenUp, h)
	}
	for {
		turn := Turn{Waiting: g.Queue.Len()}
		if g.isDown() && !now.Before(g.testAt()) {
			turn.Canary = g.Queue.Canary()
		}
		kind := g.Apply(turn, now)
		if kind == "" {
			return released, givenUp, g.asks(now)
		}
		if kind != Test {
			turn.Canary = g.Queue.byTurn()[0].Claim
		}
		h, _ := g.Queue.Remove(turn.Canary)
		r := Release{Held: h, Kind: kind, At: now, Outage: g.Outage}
		if opened := g.Settings.Calendar.Next(h.Since); opened.After(h.Since) {
			r.Opened = opened
		}
		if h.Since.Before(r.Outage.Until) {
			r.Number = r.Outage.Released
		}
		released = append(released, r)
	}
}

// asks reports whether the URL is to be asked now, and plans when next. The answer is a Probed event.
func (g *Gate) asks(now time.Time) bool {
	c := &g.Settings
	if c.Probe.URL == "" || !g.HeldUntil.IsZero() || now.Before(g.NextProbe) || !c.Calendar.IsOpen(now) {
		return false
	}
	g.NextProbe = now.UTC().Round(0).Add(c.Probe.Every)
	return true
}

// Hold adds a claim to the queue. Where the destination is closed at the deadline, the claim must go before that.
func (g *Gate) Hold(h Held) {
	if !h.Deadline.IsZero() {
		h.SendBy = g.Settings.Calendar.LastSafe(h.Deadline)
	}
	g.Queue.Add(h)
}

// Take takes a State over that was recorded. Claims go no sooner than if one had gone just now: who recorded it may
// have let one go since.
func (g *Gate) Take(s State, now time.Time) {
	g.State, g.Changed, g.Left = s, false, ""
	g.wait(now)
}

// wait has the next claim go no sooner than if one had gone just now.
func (g *Gate) wait(now time.Time) {
	now = now.UTC().Round(0)
	g.Flow.change(g.PerMinute(&g.Settings, now), now)
	g.Flow.Next = latest(g.Flow.Next, now.Add(g.Flow.interval()))
}

// Lead begins to let claims go: who did before may have let one go, and asked the URL, just now. Where he ended before
// the canary could go, another may.
func (g *Gate) Lead(now time.Time) {
	g.wait(now)
	g.NextProbe = latest(g.NextProbe, now.UTC().Round(0).Add(firstTest))
	if g.Phase == Testing && g.Queue.claims[g.Canary.Claim] != nil {
		g.Apply(Lost{g.Canary.Claim}, now)
		g.NextTest = g.now
	}
}

// Believe bounds instants that lie further ahead than is ever recorded: whoever recorded them had a wrong clock, and
// what waits for them would wait until then.
func (g *Gate) Believe(now time.Time) {
	now = now.UTC().Round(0)
	bound := func(ahead time.Duration, instants ...*time.Time) {
		for _, t := range instants {
			if t.After(now.Add(ahead + clockTolerance)) {
				*t, g.Changed = now.Add(ahead), true
			}
		}
	}
	f, o := &g.Flow, &g.Outage
	bound(0, &g.Since, &o.Since, &o.Until, &o.LastTest, &g.Canary.Sent, &g.Evidence.StreakSince, &f.Stepped, &f.Last,
		&f.LimitAt)
	bound(longestPause, &f.PauseUntil)
	bound(max(firstTest, g.Settings.Probe.Every), &g.NextProbe)
	bound(LongestOrder, &g.HeldUntil, &g.UpUntil)
	bound(max(g.longestTest(), g.HeldUntil.Sub(now)), &g.NextTest)
	f.change(g.PerMinute(&g.Settings, now), now)
	bound(f.interval(), &f.Next)
}

// longestTest returns the most between two canaries.
func (g *Gate) longestTest() time.Duration {
	if g.Settings.Probe.URL != "" {
		return distrustProbe
	}
	return longestTest
}

// IsFree reports whether claims may go at once, whoever else waits: the destination is up and open, the policies set it
// no pace, and it has asked for none.
func (g *Gate) IsFree(now time.Time) bool {
	p, f := &g.Settings.Pace, &g.Flow
	return g.Phase == Up && !p.Limited && f.limit(p, now) >= p.Most && !now.Before(f.PauseUntil) &&
		g.Settings.Calendar.IsOpen(now)
}

// Admit reports whether a claim that has just come may go at once: claims are free to, or the destination is up, nobody
// waits or leaves, and the pace allows it.
func (g *Gate) Admit(now time.Time) bool {
	switch {
	case g.IsFree(now):
		g.Apply(Admitted{1}, now)
		return true
	case g.Queue.Len() > 0 || g.Leaving || g.Phase != Up:
		return false
	}
	return g.Apply(Turn{Waiting: 1}, now) == Pass
}

// Next returns when Due has something to do if nothing happens until then; zero is never.
func (g *Gate) Next(now time.Time) time.Time {
	next := g.Queue.GiveUpAt()
	at := func(t time.Time) { // what comes due while it is closed is done when it opens
		next = soonest(next, g.Settings.Calendar.Next(latest(t, now)))
	}
	if g.Settings.Probe.URL != "" && g.HeldUntil.IsZero() {
		at(g.NextProbe)
	}
	switch waits := g.Queue.Len() > 0; {
	case g.Phase == Testing, g.Phase == Down && waits:
		at(g.testAt())
	case g.Phase == Ramping && !waits:
		at(g.Flow.Last.Add(CanaryTimeout))
	case waits:
		if at(g.Flow.ready()); g.Phase == Ramping {
			at(g.Flow.Stepped.Add(g.Settings.Pace.Step))
		}
	}
	return next
}

// latest of two instants.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// ordinal returns 1st, 2nd, 3rd, 4th and so on.
func ordinal(n int) string {
	suffix := "th"
	if last := n % 10; last >= 1 && last <= 3 && n/10%10 != 1 {
		suffix = []string{"st", "nd", "rd"}[last-1]
	}
	return strconv.Itoa(n) + suffix
}

// Reason says why a claim waited and went, in the hours of a zone: what gateReason holds.
func (r *Release) Reason(name string, zone *time.Location) string {
	clock := func(t time.Time) string { return t.In(zone).Format("15:04") }
	o := &r.Outage
	switch {
	case r.Kind == Test:
		return fmt.Sprintf("%s down since %s; sent ahead to test it", name, clock(o.Since))
	case r.Number > 0:
		return fmt.Sprintf("%s down %s–%s; released %s of %d", name, clock(o.Since), clock(o.Until), ordinal(r.Number), o.Held)
	case !r.Opened.IsZero():
		return name + " closed until " + clock(r.Opened)
	case r.At.Sub(r.Since) > 0:
		return name + " takes no more at once; waited its turn"
	}
	return name + " up"
}

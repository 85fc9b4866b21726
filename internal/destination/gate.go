package destination

import (
	"fmt"
	"strconv"
	"time"
)

// Gate is a destination with the claims that wait for it. It is not safe for concurrent use.
//
// The leader, which holds the lease, makes the Gates from the recorded States and the held claims, calls Apply for
// every event, and calls Due after an event and at Next. If Changed is set, it records State before it carries out what
// Due returned. Other replicas take over the recorded States, and let claims through while IsFree.
type Gate struct {
	Name     string
	Settings Settings
	State
	Queue Queue
	// Changed reports whether State must be recorded, which resets it.
	Changed bool
	// Leaving reports whether Due's result is being recorded; until it is, no other claim may go.
	Leaving bool

	used time.Time // when the Registry was last asked for it
	now  time.Time // the instant of the event that is being applied
	goes Kind      // why that event lets a claim go
}

// Release is a claim that may go.
type Release struct {
	Held
	Kind Kind
	At   time.Time
	// Opened is when the destination opened, if it was closed at Since; otherwise zero.
	Opened time.Time
	Outage Outage
}

// Due returns the claims that may go, and those to give up, at now. probe reports whether to ask the URL.
func (g *Gate) Due(now time.Time) (released []Release, givenUp []Held, probe bool) {
	givenUp = g.Queue.GiveUp(now)
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
			turn.Canary = g.Queue.turns[0].Claim
		}
		h, _ := g.Queue.Remove(turn.Canary)
		r := Release{Held: h, Kind: kind, At: now, Outage: g.Outage}
		if opened := g.Settings.Calendar.Next(h.Since); opened.After(h.Since) {
			r.Opened = opened
		}
		released = append(released, r)
	}
}

// asks reports whether to ask the URL now, and plans the next time. The answer is a Probed event.
func (g *Gate) asks(now time.Time) bool {
	c := &g.Settings
	if c.Probe.URL == "" || !g.HeldUntil.IsZero() || now.Before(g.NextProbe) || !c.Calendar.IsOpen(now) {
		return false
	}
	g.NextProbe = now.UTC().Round(0).Add(c.Probe.Every)
	return true
}

// Hold adds a claim to the queue. If the destination is closed at the deadline, the claim must go before it closes.
func (g *Gate) Hold(h Held) {
	h.plan(g.Settings.Calendar)
	g.Queue.Add(h)
}

// Take takes over a recorded State. As its writer may have just let a claim go, the next one waits as after that.
func (g *Gate) Take(s State, now time.Time) {
	g.State, g.Changed = s, false
	g.wait(now)
}

// wait makes the next claim wait as if one had gone just now.
func (g *Gate) wait(now time.Time) { g.Flow.Went = latest(g.Flow.Went, now.UTC().Round(0)) }

// Lead begins to lead. The previous leader may have just let a claim go and asked the URL, so both wait. If the canary
// is still in the queue, another may go.
func (g *Gate) Lead(now time.Time) {
	g.wait(now)
	g.NextProbe = latest(g.NextProbe, now.UTC().Round(0).Add(firstTest))
	if g.Phase == Testing && g.Queue.Has(g.Canary.Claim) {
		g.Apply(Lost{g.Canary.Claim}, now)
		g.NextTest = g.now
	}
}

// Believe bounds instants that lie too far ahead: a leader with a wrong clock recorded them, and claims would wait
// until then.
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
		&f.Went, &f.LimitAt)
	bound(longestPause, &f.PauseUntil)
	bound(max(firstTest, g.Settings.Probe.Every), &g.NextProbe)
	bound(LongestOrder, &g.HeldUntil, &g.UpUntil)
	bound(max(g.longestTest(), g.HeldUntil.Sub(now)), &g.NextTest)
}

// longestTest returns the longest time between two canaries.
func (g *Gate) longestTest() time.Duration {
	if g.Settings.Probe.URL != "" {
		return distrustProbe
	}
	return longestTest
}

// IsFree reports whether claims may go at once, even if others wait: the destination is up and open, and neither the
// policies nor the destination limit the pace.
func (g *Gate) IsFree(now time.Time) bool {
	p, f := &g.Settings.Pace, &g.Flow
	return g.Phase == Up && !p.Limited && f.limit(p, now) >= p.Most && !now.Before(f.PauseUntil) &&
		g.Settings.Calendar.IsOpen(now)
}

// Admit reports whether a new claim may go at once: the gate is free, or the destination is up, no other claim waits or
// leaves, and the pace allows it.
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

// Next returns when Due will have something to do without an event; zero means never.
func (g *Gate) Next(now time.Time) time.Time {
	next := g.Queue.endsAt
	at := func(t time.Time) { // not before the destination opens
		if t = g.Settings.Calendar.Next(latest(t, now)); next.IsZero() || t.Before(next) {
			next = t
		}
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
		if at(g.ready(now)); g.Phase == Ramping {
			at(g.Flow.Stepped.Add(g.Settings.Pace.Step))
		}
	}
	return next
}

// latest returns the later of two instants.
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

// Reason returns why a claim waited and went, for gateReason, with times in a zone.
func (r *Release) Reason(name string, zone *time.Location) string {
	clock := func(t time.Time) string { return t.In(zone).Format("15:04") }
	o := &r.Outage
	switch {
	case r.Kind == Test:
		return fmt.Sprintf("%s down since %s; sent ahead to test it", name, clock(o.Since))
	case r.Since.Before(o.Until) && o.Released > 0:
		return fmt.Sprintf("%s down %s–%s; released %s of %d", name, clock(o.Since), clock(o.Until), ordinal(o.Released), o.Held)
	case !r.Opened.IsZero():
		return name + " closed until " + clock(r.Opened)
	case r.At.After(r.Since):
		return name + " takes no more at once; waited its turn"
	}
	return name + " up"
}

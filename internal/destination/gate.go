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
	State    State
	Queue    Queue
	// Changed reports whether the State is to be recorded, Left the phase that it left first since that was done; who
	// records it sets both back.
	Changed bool
	Left    Phase
	// Leaving reports that what Due returned is being recorded: until then nobody goes before it.
	Leaving bool
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
		h, _ := g.Queue.Remove(g.Queue.end.claims[0].Claim)
		givenUp = append(givenUp, h)
	}
	for {
		turn := Turn{Waiting: g.Queue.Len()}
		if g.State.isDown() && !now.Before(g.State.testAt()) {
			turn.Canary = g.Queue.Canary(now)
		}
		a := g.step(turn, now)
		if a.Release == "" {
			return released, givenUp, g.State.asks(&g.Settings, now)
		}
		if a.Release != Test {
			turn.Canary = g.Queue.First().Claim
		}
		h, _ := g.Queue.Remove(turn.Canary)
		r := Release{Held: h, Kind: a.Release, At: now, Outage: g.State.Outage}
		if opened := g.Settings.Calendar.Next(h.Since); opened.After(h.Since) {
			r.Opened = opened
		}
		if h.Since.Before(r.Outage.Until) {
			r.Number = r.Outage.Released
		}
		released = append(released, r)
	}
}

// Hold adds a claim to the queue. Where the destination is closed at the deadline, the claim must go before that.
func (g *Gate) Hold(h Held) {
	if !h.Deadline.IsZero() {
		h.SendBy = g.Settings.Calendar.LastSafe(h.Deadline)
	}
	g.Queue.Add(h)
}

// Apply tells the gate what happened.
func (g *Gate) Apply(e Event, now time.Time) { g.step(e, now) }

func (g *Gate) step(e Event, now time.Time) (a Actions) {
	before := g.State
	g.State, a = g.State.Step(&g.Settings, e, now)
	if g.Left == "" {
		g.Left = a.Went
	}
	flow := &g.State.Flow
	g.Changed = g.Changed || a.Went != "" || g.State.Canary.Sent.After(before.Canary.Sent) ||
		!flow.LimitAt.Equal(before.Flow.LimitAt) || !flow.PauseUntil.Equal(before.Flow.PauseUntil) ||
		g.State.Phase == Ramping && !flow.Stepped.Equal(before.Flow.Stepped)
	return a
}

// Take takes a State over that was recorded. Claims go no sooner than if one had gone just now: who recorded it may
// have let one go since.
func (g *Gate) Take(s State, now time.Time) {
	g.State, g.Changed, g.Left = s, false, ""
	g.Wait(now)
}

// Believe bounds what a wrong clock left in the State, by the clock of who acts now.
func (g *Gate) Believe(now time.Time) { g.Changed = g.State.believe(&g.Settings, now) || g.Changed }

// Wait takes what credit there is.
func (g *Gate) Wait(now time.Time) { g.State.Flow.Credit, g.State.Flow.At = 0, now }

// Lead begins to let claims go: who did before may have let one go, and asked the URL, just now.
func (g *Gate) Lead(now time.Time) {
	g.Wait(now)
	g.State.NextProbe = latest(g.State.NextProbe, now.UTC().Round(0).Add(firstTest))
}

// IsFree reports whether claims may go at once, whoever else waits: the destination is up and open, the policies set it
// no pace, and it has asked for none.
func (g *Gate) IsFree(now time.Time) bool {
	p, f := &g.Settings.Pace, &g.State.Flow
	return g.State.Phase == Up && !p.Limited && f.limit(p, now) >= p.Most && !now.Before(f.PauseUntil) &&
		g.Settings.Calendar.IsOpen(now)
}

// Admit reports whether a claim that has just come may go at once: claims are free to, or the destination is up, nobody
// waits or leaves, and the pace allows it.
func (g *Gate) Admit(now time.Time) bool {
	switch {
	case g.IsFree(now):
		g.step(Admitted{1}, now)
		return true
	case g.Queue.Len() > 0 || g.Leaving || g.State.Phase != Up:
		return false
	}
	return g.step(Turn{Waiting: 1}, now).Release == Pass
}

// Next returns when Due has something to do if nothing happens until then; zero is never.
func (g *Gate) Next() time.Time {
	return soonest(g.State.Next(&g.Settings, g.Queue.Len()), g.Queue.GiveUpAt())
}

// soonest of two instants, of which a zero one never comes.
func soonest(a, b time.Time) time.Time {
	if earlier(b, a) < 0 {
		return b
	}
	return a
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

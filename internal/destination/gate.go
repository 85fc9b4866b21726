package destination

import (
	"fmt"
	"time"
)

// Gate is a destination with the claims that wait for it. It is not safe for concurrent use.
//
// The one who holds the lease owns the Gates. It makes them of the States that were recorded last and of the claims that
// are held, tells them what happens by Apply and Hold, and calls Due whenever something was told and at Next. It records
// State when Due or Apply report that the phase changed or a canary went, before it carries out what they return.
type Gate struct {
	Name     string
	Settings Settings
	State    State
	Queue    Queue
}

// Release is a claim that may go.
type Release struct {
	Held
	Kind Kind
	At   time.Time
	// Number of the Outage's held claims that this one is, as far as it waited for its end; otherwise 0.
	Number int
	Outage Outage
}

// Due lists what may go, and what is to be given up, at now; changed reports whether the State is to be recorded, and
// probe that the URL is to be asked for.
func (g *Gate) Due(now time.Time) (released []Release, givenUp []Held, changed, probe bool) {
	for at := g.Queue.GiveUpAt(); !at.IsZero() && !now.Before(at); at = g.Queue.GiveUpAt() {
		h, _ := g.Queue.Remove(g.Queue.end.claims[0].Claim)
		givenUp = append(givenUp, h)
	}
	for {
		var canary string
		if phase := g.State.Phase; (phase == Down || phase == Testing) && !now.Before(g.State.testAt()) {
			canary = g.Queue.Canary(now)
		}
		a := g.step(Turn{Waiting: g.Queue.Len(), Canary: canary}, now)
		changed, probe = changed || a.Went != "" || a.Release == Test, probe || a.Probe
		if a.Release == "" {
			return released, givenUp, changed, probe
		}
		if a.Release != Test {
			canary = g.Queue.First().Claim
		}
		h, _ := g.Queue.Remove(canary)
		r := Release{Held: h, Kind: a.Release, At: now, Outage: g.State.Outage}
		if h.Since.Before(r.Outage.Until) {
			r.Number = r.Outage.Released
		}
		released = append(released, r)
	}
}

// Apply tells the gate what happened, and reports whether the State is to be recorded.
func (g *Gate) Apply(e Event, now time.Time) (changed bool) { return g.step(e, now).Went != "" }

func (g *Gate) step(e Event, now time.Time) (a Actions) {
	g.State, a = g.State.Step(&g.Settings, e, now)
	return a
}

// Next returns when Due has something to do if nothing happens until then; zero is never.
func (g *Gate) Next() time.Time {
	next, end := g.State.Next(&g.Settings, g.Queue.Len()), g.Queue.GiveUpAt()
	if earlier(end, next) < 0 {
		return end
	}
	return next
}

// Reason says why a claim waited and went, in the hours of a zone: what gateReason holds.
func (r *Release) Reason(name string, zone *time.Location) string {
	clock := func(t time.Time) string { return t.In(zone).Format("15:04") }
	o := &r.Outage
	switch {
	case r.Kind == Test:
		return fmt.Sprintf("%s down since %s; sent ahead to test it", name, clock(o.Since))
	case r.Number > 0:
		return fmt.Sprintf("%s down %s–%s; released %d of %d", name, clock(o.Since), clock(o.Until), r.Number, o.Held)
	case r.At.Sub(r.Since) > 0:
		return name + " takes no more at once; waited its turn"
	}
	return name + " up"
}

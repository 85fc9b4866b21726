package destination

import (
	"fmt"
	"math"
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
	longest := longestTest
	if g.Settings.Probe.URL != "" {
		longest = distrustProbe
	}
	bound(max(longest, g.HeldUntil.Sub(now)), &g.NextTest)
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
		return fmt.Sprintf("%s down %s–%s; released %s of %d",
			name, clock(o.Since), clock(o.Until), ordinal(o.Released), o.Held)
	case !r.Opened.IsZero():
		return name + " closed until " + clock(r.Opened)
	case r.At.After(r.Since):
		return name + " takes no more at once; waited its turn"
	}
	return name + " up"
}

// Flow is how fast claims go. They go evenly, no closer than the pace allows, except at a pace so fast that each turn
// comes a little late.
type Flow struct {
	// Went is when the last claim went, or the next one waits as if one had. None goes before PauseUntil.
	Went       time.Time `json:"went,omitzero"`
	PauseUntil time.Time `json:"pauseUntil,omitzero"`
	// Ramp is the pace of a ramp, Stepped when it last grew. Fixed reports whether a person chose it.
	Ramp    float64   `json:"ramp,omitempty"`
	Stepped time.Time `json:"stepped,omitzero"`
	Fixed   bool      `json:"fixed,omitempty"`
	// Unanswered counts the ramp's claims without an answer, Answers the answers since the last step. Last is when the
	// last claim went.
	Unanswered int       `json:"unanswered,omitempty"`
	Last       time.Time `json:"last,omitzero"`
	Answers    int       `json:"answers,omitempty"`
	// Limit is the pace after a RATE_LIMIT at LimitAt, since when it grows; 0 for none.
	Limit   float64   `json:"limit,omitempty"`
	LimitAt time.Time `json:"limitAt,omitzero"`
}

// raise is the part of Most by which a lowered limit grows each Step: from half to all in 150 s.
const raise = 0.05

// limit returns the pace that rate limits allow.
func (f *Flow) limit(p *Pace, now time.Time) float64 {
	if f.Limit == 0 {
		return p.Most
	}
	steps := math.Floor(max(0, now.Sub(f.LimitAt).Seconds()) / p.Step.Seconds())
	return min(p.Most, f.Limit+steps*raise*p.Most)
}

// slowest is the least pace: one claim in LongestOrder. At a slower one the time between two claims could overflow.
const slowest = float64(time.Minute) / float64(LongestOrder)

// PerMinute returns how many claims may go per minute.
func (s *State) PerMinute(c *Settings, now time.Time) float64 {
	limit := s.Flow.limit(&c.Pace, now)
	if s.Phase == Ramping {
		return min(limit, max(s.Flow.Ramp, slowest))
	}
	return limit
}

const (
	// Above fastPace a claim may go up to lateBy late without delaying the next. The part spared of the pace makes up
	// for that, so that no minute has more claims than the pace allows.
	fastPace = 1200
	lateBy   = time.Minute / fastPace
	spared   = 0.001
)

// interval returns the time from one claim to the next at a pace.
func interval(pace float64) time.Duration {
	every := float64(time.Minute) / pace
	if pace > fastPace {
		every *= 1 + spared
	}
	return time.Duration(math.Ceil(every))
}

// ready returns when the next claim may go, at the pace of now. The first one of a ramp waits as if it were the last.
func (g *Gate) ready(now time.Time) time.Time {
	pace := g.PerMinute(&g.Settings, now)
	if g.Phase == Ramping && g.Flow.Last.IsZero() {
		pace = g.Flow.limit(&g.Settings.Pace, now)
	}
	return latest(g.Flow.Went.Add(interval(pace)), g.Flow.PauseUntil)
}

// take reports whether a claim may go now. If so, the next one waits.
func (g *Gate) take() bool {
	ready, due := g.ready(g.now), g.now
	if due.Before(ready) {
		return false
	}
	if g.PerMinute(&g.Settings, g.now) > fastPace {
		due = latest(ready, g.now.Add(-lateBy))
	}
	g.Flow.Went = due
	return true
}

// rateLimited pauses and lowers the pace. Claims sent before the pace was last lowered only pause it.
func (g *Gate) rateLimited(sent time.Time, retryAfter time.Duration) {
	f, p := &g.Flow, &g.Settings.Pace
	f.PauseUntil = latest(f.PauseUntil, g.now.Add(min(max(retryAfter, 0), longestPause)))
	if !sent.IsZero() && !sent.After(f.LimitAt) {
		return
	}
	f.Limit, f.LimitAt = max(min(p.Start, p.Most), p.OnRateLimit*g.PerMinute(&g.Settings, g.now)), g.now
	f.Ramp = min(f.Ramp, f.Limit)
}

package destination

import (
	"math"
	"time"
)

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

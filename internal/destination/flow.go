package destination

import (
	"math"
	"time"
)

// Flow is how fast claims go. They go evenly, no closer than the pace allows, except at a pace so fast that each turn
// comes a little late.
type Flow struct {
	// Next is when the next claim may go, at Pace claims a minute, but not before PauseUntil.
	Next       time.Time `json:"next,omitzero"`
	Pace       float64   `json:"pace,omitempty"`
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

// interval returns the time from one claim to the next.
func (f *Flow) interval() time.Duration {
	every := float64(time.Minute) / f.Pace
	if f.Pace > fastPace {
		every *= 1 + spared
	}
	return time.Duration(math.Ceil(every))
}

// change sets the pace, and scales the wait until Next.
func (f *Flow) change(pace float64, now time.Time) {
	if left := f.Next.Sub(now); left > 0 && pace != f.Pace {
		f.Next = now.Add(time.Duration(math.Ceil(float64(left) * f.Pace / pace)))
	}
	f.Pace = pace
}

// ready returns when a claim may go.
func (f *Flow) ready() time.Time { return latest(f.Next, f.PauseUntil) }

// take reports whether a claim may go, and sets Next if it may.
func (f *Flow) take(now time.Time) bool {
	if now.Before(f.ready()) {
		return false
	}
	due := now
	if f.Pace > fastPace {
		due = latest(f.ready(), now.Add(-lateBy))
	}
	f.Next = due.Add(f.interval())
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

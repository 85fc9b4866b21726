package destination

import (
	"math"
	"time"
)

// Flow is how fast claims go: evenly, so that two are never closer than the pace has them, but where claims are due so
// often that whoever lets them go comes a little late to each.
type Flow struct {
	// Next is when the next claim may go, at Pace a minute, but for PauseUntil.
	Next       time.Time `json:"next,omitzero"`
	Pace       float64   `json:"pace,omitempty"`
	PauseUntil time.Time `json:"pauseUntil,omitzero"`
	// Ramp is the pace of a ramp, and Stepped when it was last multiplied. Fixed: a person chose it.
	Ramp    float64   `json:"ramp,omitempty"`
	Stepped time.Time `json:"stepped,omitzero"`
	Fixed   bool      `json:"fixed,omitempty"`
	// Unanswered claims of the ramp, the last of which went at Last, and Answers since the last step.
	Unanswered int       `json:"unanswered,omitempty"`
	Last       time.Time `json:"last,omitzero"`
	Answers    int       `json:"answers,omitempty"`
	// Limit is the pace that a RATE_LIMIT left, growing since LimitAt; 0 is none.
	Limit   float64   `json:"limit,omitempty"`
	LimitAt time.Time `json:"limitAt,omitzero"`
}

// raise is the part of Most by which a lowered limit grows each Step: from half to all in 150 s.
const raise = 0.05

// limit returns the pace that rate limits leave, and how much of Most that is.
func (f *Flow) limit(p *Pace, now time.Time) float64 {
	if f.Limit == 0 {
		return p.Most
	}
	steps := math.Floor(max(0, now.Sub(f.LimitAt).Seconds()) / p.Step.Seconds())
	return min(p.Most, f.Limit+steps*raise*p.Most)
}

// PerMinute returns how many claims may go in a minute.
func (s *State) PerMinute(c *Settings, now time.Time) float64 {
	limit := s.Flow.limit(&c.Pace, now)
	if s.Phase == Ramping {
		return min(limit, s.Flow.Ramp)
	}
	return limit
}

const (
	// fastPace is where a claim may go late by lateBy without the next one's being later, too. The part of the pace that is
	// spared for it leaves no minute more claims than the pace says.
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

// change sets the pace, by which what is left to wait grows or shrinks.
func (f *Flow) change(pace float64, now time.Time) {
	if left := f.Next.Sub(now); left > 0 && pace != f.Pace {
		f.Next = now.Add(time.Duration(math.Ceil(float64(left) * f.Pace / pace)))
	}
	f.Pace = pace
}

// ready returns when a claim may go.
func (f *Flow) ready() time.Time { return latest(f.Next, f.PauseUntil) }

// take reports whether a claim may go, and has the next one wait.
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

// rateLimited lowers the pace. What was sent before it was lowered last tells nothing new.
func (g *Gate) rateLimited(sent time.Time, retryAfter time.Duration) {
	f, p := &g.Flow, &g.Settings.Pace
	f.PauseUntil = latest(f.PauseUntil, g.now.Add(min(max(retryAfter, 0), longestPause)))
	if !sent.IsZero() && !sent.After(f.LimitAt) {
		return
	}
	f.Limit, f.LimitAt = max(min(p.Start, p.Most), p.OnRateLimit*g.PerMinute(&g.Settings, g.now)), g.now
	f.Ramp = min(f.Ramp, f.Limit)
}

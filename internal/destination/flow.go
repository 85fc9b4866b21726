package destination

import (
	"math"
	"time"
)

// Flow is how fast claims go: a bucket of one claim that fills at the pace, so that two claims are never closer than
// the pace has them.
type Flow struct {
	// Credit of claims that may go at once, as of At.
	Credit float64   `json:"credit"`
	At     time.Time `json:"at"`
	// Ramp is the pace of a ramp, in claims a minute, and Stepped when it was last multiplied. Fixed: a person chose it.
	Ramp    float64   `json:"ramp,omitempty"`
	Stepped time.Time `json:"stepped,omitzero"`
	Fixed   bool      `json:"fixed,omitempty"`
	// Unanswered claims of the ramp, the last of which went at Last, and Answers since the last step.
	Unanswered int       `json:"unanswered,omitempty"`
	Last       time.Time `json:"last,omitzero"`
	Answers    int       `json:"answers,omitempty"`
	// Limit is the pace that a RATE_LIMIT left, growing since LimitAt; 0 is none. Nothing goes before PauseUntil.
	Limit      float64   `json:"limit,omitempty"`
	LimitAt    time.Time `json:"limitAt,omitzero"`
	PauseUntil time.Time `json:"pauseUntil,omitzero"`
}

// fastPace is where claims go so often that the caller may come a little late to each: up to lateBy. What that adds is
// taken from the pace, so that no minute has more than its claims.
const (
	fastPace = 240
	lateBy   = 50 * time.Millisecond
	allowed  = 0.995
)

// limit returns the pace that rate limits leave, and how much of Most that is.
func (f *Flow) limit(p *Pace, now time.Time) float64 {
	if f.Limit == 0 {
		return p.Most
	}
	steps := math.Floor(max(0, now.Sub(f.LimitAt).Seconds()) / p.Step.Seconds())
	return min(p.Most, f.Limit+steps*raise*p.Most)
}

// pace returns the claims a minute that may go.
func (f *Flow) pace(p *Pace, phase Phase, now time.Time) float64 {
	limit := f.limit(p, now)
	if phase == Ramping {
		return min(limit, f.Ramp)
	}
	return limit
}

// PerMinute returns how many claims may go in a minute.
func (s *State) PerMinute(c *Settings, now time.Time) float64 {
	return s.Flow.pace(&c.Pace, s.Phase, now)
}

// fill adds the credit that came at a pace since it was last filled.
func (f *Flow) fill(pace float64, now time.Time) {
	most, rate := 1.0, pace
	if pace >= fastPace {
		most, rate = 1+pace*lateBy.Minutes(), allowed*pace
	}
	if now.After(f.At) {
		f.Credit, f.At = min(most, f.Credit+rate*now.Sub(f.At).Minutes()), now
	}
	f.Credit = min(f.Credit, most)
}

// nearlyOne makes up for rounding.
const nearlyOne = 1 - 1e-9

// take reports whether a claim may go, and takes its credit.
func (f *Flow) take(now time.Time) bool {
	if now.Before(f.PauseUntil) || f.Credit < nearlyOne {
		return false
	}
	f.Credit = max(0, f.Credit-1)
	return true
}

// ready returns when there is credit for a claim at that pace; zero is never.
func (f *Flow) ready(pace float64) time.Time {
	at := f.At
	if f.Credit < nearlyOne {
		if pace <= 0 {
			return time.Time{}
		}
		if pace >= fastPace {
			pace *= allowed
		}
		at = at.Add(time.Duration(math.Ceil((1 - f.Credit) / pace * float64(time.Minute))))
	}
	if at.Before(f.PauseUntil) {
		return f.PauseUntil
	}
	return at
}

// rateLimited lowers the pace. What was sent before it was lowered last tells nothing new.
func (f *Flow) rateLimited(p *Pace, phase Phase, sent time.Time, retryAfter time.Duration, now time.Time) {
	if until := now.Add(min(max(retryAfter, 0), longestPause)); until.After(f.PauseUntil) {
		f.PauseUntil = until
	}
	if !sent.IsZero() && !sent.After(f.LimitAt) {
		return
	}
	f.Limit, f.LimitAt = max(min(p.Start, p.Most), p.OnRateLimit*f.pace(p, phase, now)), now
	f.Ramp = min(f.Ramp, f.Limit)
}

// Package destination decides when claims may go to where they are submitted, such as an operator's portal: it finds
// out that the destination is down, holds what would fail, sends one claim ahead, and lets the rest through at a pace.
//
// It is pure: a State and an Event at an instant give the next State. Nothing here reads a clock, rolls dice, waits or
// writes. A Gate joins the State of one destination with the Queue of the claims that wait for it.
package destination

import (
	"time"

	"retry-worker/internal/calendar"
)

// Settings say how a destination is treated.
type Settings struct {
	// Label is what people call it; none where they call it by its name.
	Label   string
	OpensAt Threshold
	Probe   Probe
	Pace    Pace
	// Calendar says when claims can be sent; nil is always.
	Calendar *calendar.Calendar
}

// Threshold is the share of admissions that failed at which a destination counts as down.
type Threshold struct {
	// Failures is a fraction above 0.
	Failures float64
	// Of is the number of admissions Within that the fraction needs at least.
	Of     int
	Within time.Duration
}

// Probe says how the status of a destination is asked for (R28).
type Probe struct {
	Every time.Duration
	// URL is what is asked; without one, a claim is sent ahead.
	URL string
	// Expect lists the HTTP statuses that show that the destination works.
	Expect []int
}

// Pace bounds how many claims go in a minute.
type Pace struct {
	// Start is the pace that a ramp begins with; it is multiplied by Factor every Step, until it reaches Most.
	Start, Most float64
	Factor      float64
	Step        time.Duration
	// OnRateLimit is what a RATE_LIMIT multiplies the pace by.
	OnRateLimit float64
	// Limited reports whether the policies set Most. Otherwise claims go at once while the destination is up, and Most is
	// what ramps end at.
	Limited bool
}

// Defaults returns the settings of a destination that nobody configured.
func Defaults() Settings {
	return Settings{
		OpensAt: Threshold{Failures: 0.5, Of: 20, Within: 2 * time.Minute},
		Probe:   Probe{Every: 5 * time.Minute, Expect: []int{200, 405}},
		Pace:    Pace{Start: 1, Most: 60, Factor: 2, Step: 15 * time.Second, OnRateLimit: 0.5},
	}
}

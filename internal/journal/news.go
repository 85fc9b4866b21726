package journal

import "time"

// Silence is how long a cause must not have failed before it counts as back when it fails again (R34).
const Silence = 30 * 24 * time.Hour

// News is what was told of a cause that was new, or back (R34). It names no subject.
type News struct {
	// At is when it was told. No two causes of a journal share it: who is told of one has been told of all before.
	At time.Time `json:"at"`
	// First and Last of its Failures since then, of so many Claims; most of them were at Destination.
	First       time.Time `json:"first"`
	Last        time.Time `json:"last"`
	Failures    int64     `json:"failures"`
	Claims      int64     `json:"claims"`
	Destination string    `json:"destination,omitempty"`
	// Before is what was known of the cause until then; nil where that is nothing.
	Before *Before `json:"before,omitempty"`
}

// Before is how a cause was before it was back: when it failed last, how often in all, and how many of its retried claims
// recovered, of those closed.
type Before struct {
	Last      time.Time `json:"last"`
	Failures  int64     `json:"failures"`
	Recovered int64     `json:"recovered"`
	Closed    int64     `json:"closed"`
}

package journal

import "time"

// Silence is how long a cause must not have failed before it counts as back when it fails again (R34).
const Silence = 30 * 24 * time.Hour

// News announces a cause that is new, or back (R34). It names no subject. No two in a journal have the same At, so that
// a watermark on At misses none.
type News struct {
	At          time.Time `json:"at" doc:"When it was told."`
	First       time.Time `json:"first" doc:"The first failure since it is new, or back."`
	Last        time.Time `json:"last" doc:"The last failure by then."`
	Failures    int64     `json:"failures" doc:"By then."`
	Claims      int64     `json:"claims" doc:"That failed."`
	Destination string    `json:"destination" doc:"Of most of them; empty where there is none."`
	Before      *Before   `json:"before" doc:"How it was until then; null where it was never seen."`
}

// Before is what was known of a cause before it came back.
type Before struct {
	Last      time.Time `json:"last" doc:"The last failure."`
	Failures  int64     `json:"failures" doc:"In all."`
	Closed    int64     `json:"closed" doc:"Retried claims that were closed in the half year up to then."`
	Recovered int64     `json:"recovered" doc:"Of these."`
}

package worker

import (
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
)

// Hooks are called as things happen, to feed metrics. All must be set (see NoHooks). They are called from many
// goroutines and must not block.
type Hooks struct {
	// Decided is called for every new decision, with the time the analysis took.
	Decided func(jobType string, d *decision.Decision, took time.Duration)
	// Ended is called for a scheduled retry that is given up because it came too late (R20).
	Ended func(d *decision.Decision)
	// Replayed is called for every recorded decision that is given again.
	Replayed func()
	// Rejected is called for every refused input (R11).
	Rejected func(jobType string, code decision.RejectionCode)
	// Answered is called once for every activated job.
	Answered func(jobType string, a Action)
	// InFlight is called with the number of jobs activated, and with −1 for each answer.
	InFlight func(delta int)
	// EngineUp is called when the engine begins or stops to answer.
	EngineUp func(up bool)
	// Panicked is called when a handler panics.
	Panicked func(jobType string)
	// TimedOut is called for an analysis that takes too long (R30).
	TimedOut func(jobType string)
	// Oversized is called for a job, or an activation, that is too large to read.
	Oversized func(jobType string)
}

// NoHooks returns hooks that do nothing.
func NoHooks() Hooks {
	return Hooks{
		Decided:   func(string, *decision.Decision, time.Duration) {},
		Ended:     func(*decision.Decision) {},
		Replayed:  func() {},
		Rejected:  func(string, decision.RejectionCode) {},
		Answered:  func(string, Action) {},
		InFlight:  func(int) {},
		EngineUp:  func(bool) {},
		Panicked:  func(string) {},
		TimedOut:  func(string) {},
		Oversized: func(string) {},
	}
}

// engineHealth joins what the loops see of the engine: it is up while any of them is served. It logs each loop's
// changes only.
type engineHealth struct {
	hooks *Hooks
	log   *zap.Logger

	mu           sync.Mutex
	served       map[*loop]bool // whether each loop's last poll was answered
	reported, up bool           // whether the hook was called, and its last argument
}

// report takes the result of a loop's last poll.
func (h *engineHealth) report(l *loop, err error) {
	ok := err == nil || kindOf(err) == TooLarge // TooLarge is an answer, though an unreadable one
	h.mu.Lock()
	defer h.mu.Unlock()
	if before, known := h.served[l]; known && before == ok {
		return
	}
	h.served[l] = ok
	if up := slices.Contains(slices.Collect(maps.Values(h.served)), true); !h.reported || up != h.up {
		h.reported, h.up = true, up
		h.hooks.EngineUp(up)
	}
	if ok {
		h.log.Info("engine answers polls", zap.String("jobType", l.request.JobType))
		return
	}
	h.log.Warn("engine does not answer polls; it is asked again with growing pauses (`retry-worker check` says more)",
		zap.String("jobType", l.request.JobType), zap.Error(err))
}

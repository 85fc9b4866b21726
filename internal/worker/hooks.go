package worker

import (
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
)

// Hooks are told what happens; metrics are fed by them. All must be set (see NoHooks); they are called
// from many goroutines and must not block.
type Hooks struct {
	// Decided is called for every fresh decision, with the time the analysis took.
	Decided func(jobType string, d *decision.Decision, took time.Duration)
	// Ended is called for a retry that was scheduled and then given up, because it came too late (R20).
	Ended func(d *decision.Decision)
	// Replayed is called for every decision that was recorded before and given again.
	Replayed func()
	// Rejected is called for every input refused (R11).
	Rejected func(jobType string, code decision.RejectionCode)
	// Answered is called once for every job that was activated.
	Answered func(jobType string, a Action)
	// InFlight is called with the number of jobs activated, and with −1 when one was answered.
	InFlight func(delta int)
	// EngineUp tells whether the engine answers, when that changes.
	EngineUp func(up bool)
	// Panicked is called when a handler panicked.
	Panicked func(jobType string)
	// TimedOut is called for an analysis that took longer than it may (R30).
	TimedOut func(jobType string)
	// Oversized is called for a job, or an activation, too large to be read.
	Oversized func(jobType string)
}

// NoHooks does nothing.
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

// engineHealth joins what the loops see of the engine: it is up as long as one of them is served. It
// logs changes only; a loop that fails while others are served is said once too.
type engineHealth struct {
	hooks *Hooks
	log   *zap.Logger

	mu           sync.Mutex
	served       map[*loop]bool // whether a loop's last poll was answered
	reported, up bool           // whether the hook was called, and with what
}

// report takes the outcome of a loop's last poll.
func (h *engineHealth) report(l *loop, err error) {
	ok := err == nil || kindOf(err) == TooLarge // which is an answer, if one that cannot be read
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

package worker

import (
	"maps"
	"slices"
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

// heard takes the result of a loop's last poll. The engine is up while it serves any loop. Only changes are logged.
func (w *Worker) heard(l *loop, err error) {
	ok := err == nil || kindOf(err) == TooLarge // TooLarge is an answer, though an unreadable one
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, known := w.served[l]; known && before == ok {
		return
	}
	isUp := func() bool { return slices.Contains(slices.Collect(maps.Values(w.served)), true) }
	first, was := len(w.served) == 0, isUp()
	w.served[l] = ok
	if up := isUp(); first || up != was {
		w.hooks.EngineUp(up)
	}
	if ok {
		w.log.Info("engine answers polls", zap.String("jobType", l.request.JobType))
		return
	}
	w.log.Warn("engine does not answer polls; it is asked again with growing pauses (`retry-worker check` says more)",
		zap.String("jobType", l.request.JobType), zap.Error(err))
}

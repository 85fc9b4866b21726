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
	// Add adds n to a counter or a gauge of internal/metrics/metrics.yaml, with these values of its labels. Observe is the
	// same for a histogram.
	Add, Observe func(metric string, n float64, values ...string)
	// Decided is called for every new decision, with the time the analysis took.
	Decided func(d *decision.Decision, took time.Duration)
	// Ended is called for what is given up because it came too late (R20, R27).
	Ended func(policy string)
	// EngineUp is called when the engine begins or stops to answer.
	EngineUp func(up bool)
}

// NoHooks returns hooks that do nothing.
func NoHooks() Hooks {
	count := func(string, float64, ...string) {}
	return Hooks{Add: count, Observe: count, Decided: func(*decision.Decision, time.Duration) {}, Ended: func(string) {},
		EngineUp: func(bool) {}}
}

// Metrics that are counted in several places.
const (
	inFlight  = "retry_worker_jobs_in_flight"
	oversized = "retry_worker_oversized_total"
	replayed  = "retry_worker_decisions_replayed_total"
	// Answered counts the jobs that were answered, by their type and Action.
	Answered = "retry_worker_jobs_total"
)

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

package worker

import (
	"maps"
	"slices"
	"sync"

	"go.uber.org/zap"
)

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
	h.log.Warn("engine does not answer polls; asking on with growing pauses (`retry-worker check` says more)",
		zap.String("jobType", l.request.JobType), zap.Error(err))
}

package app

import (
	"sync"
	"time"

	"retry-worker/internal/console"
	"retry-worker/internal/notify"
)

// health is what the service knows of itself, for the people who look at it. Safe for concurrent use.
type health struct {
	now   func() time.Time
	mu    sync.Mutex
	shown console.Health
}

// set notes how a signal stands; since when stays where that is no change.
func (h *health) set(s *console.Signal, up bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.Known || s.Up != up {
		*s = console.Signal{Known: true, Up: up, Since: h.now()}
	}
}

// reject notes why the policies file is not the one in force; nil where it is.
func (h *health) reject(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shown.Rejection = err
}

// untold notes which teams could not be told so far.
func (h *health) untold(waiting []notify.Waiting) {
	var failed []console.Notice
	for _, w := range waiting {
		if w.Failure != "" {
			failed = append(failed,
				console.Notice{Team: w.Team, Way: string(w.Channel), Since: w.Since, Failure: w.Failure})
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shown.Notices = failed
}

// snapshot returns what the pages show.
func (h *health) snapshot() console.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shown
}

// engineUp is since when the engine answers this process; the zero time where it does not.
func (h *health) engineUp() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.shown.Engine.Up {
		return time.Time{}
	}
	return h.shown.Engine.Since
}

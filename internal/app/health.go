package app

import (
	"sync"
	"time"

	"retry-worker/internal/console"
	"retry-worker/internal/notify"
	"retry-worker/internal/redact"
)

// health is what the service knows of itself, for the people who look at it. Safe for concurrent use.
type health struct {
	mu              sync.Mutex
	engine, journal console.Signal
	rejection       error
	notices         []console.Notice
	version         string
	now             func() time.Time
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
	h.rejection = err
}

// untold notes which teams could not be told so far.
func (h *health) untold(waiting []notify.Waiting) {
	var failed []console.Notice
	for _, w := range waiting {
		if w.Failure != "" {
			failed = append(failed,
				console.Notice{Team: w.Team, Way: string(w.Channel), Since: w.Since,
					Failure: redact.Line(w.Failure, maxNoticeFailure)})
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notices = failed
}

// maxNoticeFailure in bytes: what a mail server says goes on and on.
const maxNoticeFailure = 300

// told is what the pages show.
func (h *health) told() console.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return console.Health{Journal: h.journal, Engine: h.engine, Rejection: h.rejection, Notices: h.notices,
		Version: h.version}
}

// engineUp is since when the engine answers this process; the zero time where it does not.
func (h *health) engineUp() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.engine.Up {
		return time.Time{}
	}
	return h.engine.Since
}

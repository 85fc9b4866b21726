package access

import (
	"maps"
	"sync"
	"time"
)

// mostEnded sessions that are remembered; only who had one can add to them.
const mostEnded = 10_000

// ended are the sessions that were logged out of before their time, so that a copy of the cookie is of no use. Each process
// knows its own: at another replica, and after a restart, such a copy holds until the session's end. Safe for concurrent use.
type ended struct {
	mu    sync.Mutex
	until map[string]time.Time // by the payload: when it would have ended by itself
}

// add ends a session. Where too many are remembered, the one that would have ended first is forgotten.
func (e *ended) add(s *session, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.until == nil {
		e.until = make(map[string]time.Time)
	}
	if len(e.until) >= mostEnded {
		e.makeRoom(now)
	}
	e.until[s.payload] = s.ends
}

func (e *ended) makeRoom(now time.Time) {
	maps.DeleteFunc(e.until, func(_ string, ends time.Time) bool { return !now.Before(ends) })
	if len(e.until) < mostEnded {
		return
	}
	first, soonest := "", time.Time{}
	for payload, ends := range e.until {
		if first == "" || ends.Before(soonest) {
			first, soonest = payload, ends
		}
	}
	delete(e.until, first)
}

func (e *ended) has(s *session) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, has := e.until[s.payload]
	return has
}

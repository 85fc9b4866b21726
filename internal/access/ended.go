package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// EndedSessions keeps which sessions ended before their time, for every replica and across restarts. It knows a session
// by a hash, which lets nobody in. Safe for concurrent use.
type EndedSessions interface {
	// EndSession keeps that a session has ended, and forgets those whose time was over at now.
	EndSession(ctx context.Context, id [sha256.Size]byte, until, now time.Time) error
	// SessionEnded reports whether EndSession was called for the session.
	SessionEnded(ctx context.Context, id [sha256.Size]byte) (bool, error)
}

// storeTime bounds one call of EndedSessions.
const storeTime = 3 * time.Second

func (s *session) id() [sha256.Size]byte { return sha256.Sum256([]byte(s.payload)) }

// hasEnded reports whether a session was ended before its time. Before the journal is open none is known to be; nothing
// of what the journal holds is served then.
func (g *Gate) hasEnded(ctx context.Context, s *session) (bool, error) {
	store := g.Ended()
	if store == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return store.SessionEnded(ctx, s.id())
}

var errNotOpen = errors.New("the journal is not open")

// end makes every copy of the session's cookie useless; nil is no session.
func (g *Gate) end(ctx context.Context, s *session) error {
	if s == nil {
		return nil
	}
	store := g.Ended()
	if store == nil {
		return errNotOpen
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return store.EndSession(ctx, s.id(), s.ends.Add(skew), g.Now())
}

// unkept returns the refusal where EndedSessions cannot be asked, or told; what is what that means for who asks.
func (g *Gate) unkept(err error, what string) *Refusal {
	if g.Hooks.Unkept != nil {
		g.Hooks.Unkept(err)
	}
	return &Refusal{Status: http.StatusServiceUnavailable, Code: CodeSessionsUnavailable, RetryAfter: 5 * time.Second,
		Message: fmt.Sprintf("the journal cannot be reached now, %s; try again in a moment", what)}
}

package testkit

import (
	"context"
	"maps"
	"time"
)

// EndSession implements access.EndedSessions.
func (m *Memory) EndSession(ctx context.Context, id [32]byte, until, now time.Time) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	maps.DeleteFunc(m.ended, func(_ [32]byte, until time.Time) bool { return !until.After(now) })
	m.ended[id] = until
	return nil
}

// SessionEnded implements access.EndedSessions.
func (m *Memory) SessionEnded(ctx context.Context, id [32]byte) (bool, error) {
	return ask(ctx, m, func() bool {
		_, ended := m.ended[id]
		return ended
	})
}

package outbox

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"retry-worker/internal/journal"
)

type counter struct{ atomic.Int64 }

func (c *counter) Publish(context.Context, *journal.Message) error { c.Add(1); return nil }

// TestFrozenRelaySendsNothing: a process stood still past its lease, which another has by now, and its alarm has not rung yet.
func TestFrozenRelaySendsNothing(t *testing.T) {
	for ago, want := range map[time.Duration]int64{time.Millisecond: 0, -time.Hour: 2} {
		l := &lease{ctx: t.Context(), until: time.Now().Add(-ago)}
		sink := &counter{}
		s := &sweeper{Relay: &Relay{sink: sink, hooks: NoHooks(), patience: Patience{Message: time.Second}, settled: map[int64]bool{}},
			stop: t.Context(), lease: l}
		s.publish([]*lane{{key: "A", messages: []*journal.Message{{}}}, {key: "B", messages: []*journal.Message{{}}}})
		if got := sink.Load(); got != want {
			t.Errorf("the lease ended %s ago: %d messages are sent, want %d", ago, got, want)
		}
	}
}

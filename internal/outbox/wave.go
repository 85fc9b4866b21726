package outbox

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"retry-worker/internal/journal"
)

const (
	// lanesAtOnce is how many messages are on their way at most, each of another key.
	lanesAtOnce = 64
	// probes failures in a row, each of another key, mean that the sink fails and not a message; and so many
	// keys are tried while it does.
	probes = 8
	// takeTime bounds the sending of one message, unless the relay is more patient.
	takeTime = 5 * time.Second
	// stopGrace is how long what is on its way goes on after a stop, where keys are apart.
	stopGrace = 3 * time.Second
)

// lane is the messages of one key, in their order: one is on its way at a time, and none overtakes.
type lane struct {
	key string
	// held tells that the last try of the key failed: another failure says nothing about the sink.
	held bool
	// until when the key was held up; the zero time for one that was not.
	until    time.Time
	messages []*journal.Message
	// taken is how many of them the sink took, from the first on; failure is why it did not take the next.
	taken   int
	failure error
}

// wave is what is sent between two looks at the outbox.
type wave struct {
	stop  context.Context
	lease *lease
	sink  Sink
	lanes []*lane
	rules Patience
	// patience is how many failures in a row end the wave.
	patience int64
	next     atomic.Int64 // lane to begin
	// streak counts failures of keys that were not held up, since the last message that was taken.
	streak atomic.Int64
}

// run sends what can be sent and returns when nothing is on its way.
func (w *wave) run() {
	var workers sync.WaitGroup
	for range min(lanesAtOnce, len(w.lanes)) {
		workers.Go(func() {
			for i := w.next.Add(1) - 1; i < int64(len(w.lanes)); i = w.next.Add(1) - 1 {
				if w.carry(w.lanes[i]); w.lanes[i].failure != nil && !w.lanes[i].held && !w.rules.Apart {
					return // as long as others succeed there is another wave, and else it was one too many
				}
			}
		})
	}
	workers.Wait()
}

// carry sends a lane's messages until one fails.
func (w *wave) carry(l *lane) {
	for _, m := range l.messages {
		if w.stop.Err() != nil || w.broken() || !w.lease.holds() {
			return
		}
		if err := w.send(m); err != nil {
			l.failure = err
			if !l.held && !m.Forged { // else it says nothing about the sink
				w.streak.Add(1)
			}
			return
		}
		l.taken++
		w.streak.Store(0)
	}
}

func (w *wave) send(m *journal.Message) error {
	if err := m.Held(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(w.lease.ctx, w.rules.Message)
	defer cancel()
	if w.rules.Apart {
		defer context.AfterFunc(w.stop, func() {
			rest(ctx, stopGrace)
			cancel()
		})()
	}
	return w.sink.Publish(ctx, m)
}

// broken reports whether the sink takes nothing any more.
func (w *wave) broken() bool { return !w.rules.Apart && w.streak.Load() >= w.patience }

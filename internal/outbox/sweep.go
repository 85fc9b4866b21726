package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/journal"
)

const (
	// pageSize is how many messages are looked at together.
	pageSize = 512
	// sweepTime is after how long a sweep begins again at the first message: what was committed late, below
	// others, is found then. Where nothing is held up every page begins there.
	sweepTime = 30 * time.Second
	// holdFirst and holdMost bound the pause of a key whose message failed while others went out, unless the relay is more
	// patient.
	holdFirst = time.Second
	holdMost  = 30 * time.Second
	// holdKeys is how many keys may be held up; one more, and all are tried anew.
	holdKeys = 1024
)

// hold keeps a key's messages back for a while.
type hold struct {
	pause time.Duration
	until time.Time
}

// sweeper goes through the outbox, page by page, again and again. Not for concurrent use.
type sweeper struct {
	*Relay
	stop  context.Context
	lease *lease // while it serves
	// held are the keys whose message failed.
	held map[string]*hold
	// passed are the keys of which this sweep has left something behind.
	passed map[string]bool
	// refusal is why the last of them failed that had not failed before.
	refusal error
	// sinkFailure is why nothing goes out, storeFailure why the outbox cannot be read or let go of; nil where
	// it can.
	sinkFailure, storeFailure error
	// probes is how many keys are tried next while the sink fails.
	probes int
	// down and stuck are what was told last.
	down, stuck bool
	pause       pause
}

// serve sweeps while the lease lasts and stop does; ctx ends with either.
func (s *sweeper) serve(ctx context.Context, l *lease) {
	s.lease = l
	s.hooks.Leading(true)
	s.log.Info("this replica sends the queue's messages now", zap.String("queue", s.queue))
	for s.going() {
		began := time.Now()
		more := s.sweep()
		switch {
		case s.failing():
			rest(ctx, s.pause.draw())
		case !more:
			s.idle(ctx, s.restAfter(time.Since(began)))
		}
	}
	s.hooks.Leading(false)
	if s.stop.Err() == nil {
		s.log.Warn("this replica lost the lease and sends none of the queue's messages", zap.String("queue", s.queue))
	}
	s.forget()
}

// forget what was the matter: whoever leads next finds out himself, and tells.
func (s *sweeper) forget() {
	clear(s.held)
	s.sinkFailure, s.storeFailure, s.down, s.stuck = nil, nil, false, false
	s.pause.reset()
}

// failing reports whether the next sweep should wait.
func (s *sweeper) failing() bool { return s.sinkFailure != nil || s.storeFailure != nil }

// restAfter returns how long to rest after a sweep that took so long and found nothing more: messages that are held up
// are not read again and again for nothing.
func (s *sweeper) restAfter(took time.Duration) time.Duration {
	if len(s.held) == 0 {
		return pollEvery
	}
	return min(max(pollEvery, 4*took), failMost)
}

// sweep goes once through the outbox. It tells whether to go on at once.
func (s *sweeper) sweep() (more bool) {
	defer s.tell()
	began, tried, after := time.Now(), 0, int64(0)
	s.passed = map[string]bool{}
	if !s.release() {
		return false
	}
	for s.going() && time.Since(began) < sweepTime {
		page, ok := s.read(after)
		if !ok {
			return false
		}
		lanes := s.lanes(page)
		tried += len(lanes)
		if clean := s.publish(lanes, len(page)); !clean {
			after = s.pass(page)
		}
		switch {
		case !s.release(), s.sinkFailure != nil && tried > 0:
			return false
		case len(page) < pageSize:
			s.insist(tried)
			return false
		}
	}
	return true
}

// pass goes on behind a page of which something is left: the sweep must not send what follows it.
func (s *sweeper) pass(page []journal.Message) (after int64) {
	for i := range page {
		if !s.settled[page[i].Sequence] {
			s.passed[page[i].Key] = true
		}
	}
	return page[len(page)-1].Sequence
}

// insist begins anew with the keys that failed, where there are no others to learn from that the sink works again.
func (s *sweeper) insist(tried int) {
	if tried > 0 || s.sinkFailure == nil || !s.going() {
		return
	}
	page, ok := s.read(0)
	if !ok {
		return
	}
	clear(s.passed)
	clear(s.held)
	if len(page) == 0 { // somebody else sent it all
		s.sinkFailure = nil
		return
	}
	s.publish(s.lanes(page), len(page))
	s.release()
}

func (s *sweeper) going() bool { return s.stop.Err() == nil && s.lease.holds() }

func (s *sweeper) read(after int64) ([]journal.Message, bool) {
	ctx, cancel := context.WithTimeout(s.lease.ctx, storeTime)
	defer cancel()
	page, err := s.box.Pending(ctx, s.queue, after, pageSize)
	if err != nil {
		s.storeFailed(fmt.Errorf("read the outbox: %w", err))
		return nil, false
	}
	s.storeFailure = nil
	return page, true
}

// release lets go of what was taken. What it cannot let go of is not sent again by this process.
func (s *sweeper) release() bool {
	if len(s.settled) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(s.lease.ctx, storeTime)
	defer cancel()
	if err := s.letGo(ctx, slices.Sorted(maps.Keys(s.settled))); err != nil {
		s.storeFailed(fmt.Errorf("let go of messages that were sent: %w", err))
		return false
	}
	clear(s.settled)
	s.storeFailure = nil
	return true
}

// storeFailed notes why, unless it is the lease that ended.
func (s *sweeper) storeFailed(err error) {
	if s.lease.holds() {
		s.storeFailure = err
	}
}

// lanes of a page: the keys that are not held up, those last that failed before. While the sink fails they are keys
// that were not tried yet, and only as many as tell whether it still does.
func (s *sweeper) lanes(page []journal.Message) []*lane {
	byKey := make(map[string]*lane, len(page))
	var all []*lane
	now := time.Now()
	for i := range page {
		m := &page[i]
		if s.settled[m.Sequence] || s.passed[m.Key] {
			continue
		}
		h := s.held[m.Key]
		if h != nil && (s.sinkFailure != nil || now.Before(h.until)) {
			continue
		}
		l := byKey[m.Key]
		if l == nil {
			l = &lane{key: m.Key, held: h != nil}
			if h != nil {
				l.until = h.until
			}
			byKey[m.Key] = l
			all = append(all, l)
		}
		l.messages = append(l.messages, m)
	}
	slices.SortStableFunc(all, func(a, b *lane) int { return a.until.Compare(b.until) })
	if s.sinkFailure != nil && len(all) > s.probes {
		return all[:s.probes]
	}
	return all
}

// publish sends the lanes and learns from how it went. It tells whether nothing of the page is left.
func (s *sweeper) publish(lanes []*lane, of int) (clean bool) {
	w := wave{stop: s.stop, lease: s.lease, sink: s.sink, lanes: lanes, rules: s.patience, patience: probes}
	if s.sinkFailure != nil { // so many are tried, and no more
		w.patience = int64(len(lanes)) + 1
	}
	w.run()
	taken := 0
	for _, l := range lanes {
		for _, m := range l.messages[:l.taken] {
			s.settled[m.Sequence] = true
		}
		taken += l.taken
	}
	if taken > 0 {
		s.hooks.Published(taken)
	}
	if s.lease.holds() { // else it is the lease's end that they failed for
		s.learn(&w, taken)
	}
	return taken == of
}

// learn holds up the keys that failed and finds out whether it is they or the sink.
func (s *sweeper) learn(w *wave, taken int) {
	var first error // failure of a key that was not held up before
	for _, l := range w.lanes {
		switch {
		case l.failure != nil:
			if s.hold(l.key, l.failure) && first == nil {
				first, s.refusal = l.failure, l.failure
			}
		case l.taken > 0:
			delete(s.held, l.key)
		}
	}
	switch {
	case s.patience.Apart: // no failure is the sink's
	case s.sinkFailure == nil && (w.broken() || taken == 0 && first != nil):
		s.sinkFailure, s.probes = first, probes
	case s.sinkFailure != nil && taken == 0 && len(w.lanes) > 0: // perhaps it is only those that were tried
		s.probes = min(2*s.probes, lanesAtOnce)
	case taken > 0:
		s.recover()
	}
}

// pausingError is one that knows after how long it is worth trying again.
type pausingError interface {
	error
	Pause() time.Duration
}

// hold a key up, longer than the last time, and as long as the failure asks for. It reports whether it was not held up
// before.
func (s *sweeper) hold(key string, failure error) (fresh bool) {
	h := s.held[key]
	if h == nil {
		if len(s.held) >= holdKeys {
			clear(s.held)
		}
		h, fresh = &hold{}, true
		s.held[key] = h
	}
	h.pause = min(max(2*h.pause, holdFirst), s.patience.Hold)
	wait := h.pause
	if asks, ok := errors.AsType[pausingError](failure); ok {
		wait = min(max(wait, asks.Pause()), s.patience.Hold)
	}
	h.until = time.Now().Add(wait)
	return fresh
}

// recover lets all keys try at once: it was the sink that failed.
func (s *sweeper) recover() {
	if s.sinkFailure == nil {
		return
	}
	s.sinkFailure = nil
	for _, h := range s.held {
		h.until, h.pause = time.Time{}, 0
	}
}

// tell what changed: one line each time.
func (s *sweeper) tell() {
	if !s.failing() {
		s.pause.reset()
	}
	if down := s.failing(); down != s.down && s.lease.holds() {
		s.down = down
		if down {
			s.log.Warn("messages cannot be sent, they wait in the outbox", zap.String("queue", s.queue),
				zap.Error(cmp.Or(s.storeFailure, s.sinkFailure)))
		} else {
			s.log.Info("messages are sent again", zap.String("queue", s.queue))
		}
	}
	s.tellStuck()
}

// tellStuck says that single keys wait while others go out.
func (s *sweeper) tellStuck() {
	refused := 0
	for _, h := range s.held {
		if !h.until.IsZero() { // else it was the sink that failed, and they are still to be tried again
			refused++
		}
	}
	if stuck := refused > 0 && !s.down; stuck != s.stuck {
		s.stuck = stuck
		if stuck {
			s.log.Warn("single messages are refused; later ones of their subjects wait, all others are sent",
				zap.String("queue", s.queue), zap.Int("subjects", refused), zap.NamedError("lastReason", s.refusal))
		}
	}
}

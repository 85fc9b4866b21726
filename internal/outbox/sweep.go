package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"retry-worker/internal/journal"
)

const (
	// pageSize is how many messages are looked at together.
	pageSize = 512
	// sweepTime is after how long a sweep begins again at the first message: what was committed late, below
	// others, is found then, and keys that were held up are tried again.
	sweepTime = 30 * time.Second
	// lanesAtOnce is how many messages are on their way at most, each of another key; and how many keys are tried at a
	// time while the sink fails.
	lanesAtOnce = 64
	// probes failures in a row, each of another key, mean that the sink fails and not a message.
	probes = 8
	// holdFirst and holdMost bound the pause of a key whose message failed, unless the relay is more patient.
	holdFirst = time.Second
	holdMost  = 30 * time.Second
	// holdKeys is how many keys may be held up; with more, all are tried anew.
	holdKeys = 1024
	// takeTime bounds the sending of one message, unless the relay is more patient.
	takeTime = 5 * time.Second
	// stopGrace is how long what is on its way goes on after a stop, where keys are apart.
	stopGrace = 3 * time.Second
)

// sweeper goes through the outbox, page by page, again and again, while a lease lasts. Not for concurrent use.
type sweeper struct {
	*Relay
	stop  context.Context
	lease *lease
	// held are the keys whose message failed.
	held map[string]*hold
	// refusal is why the last of them failed that had not failed before.
	refusal error
	// sinkFailure is why nothing is taken any more; nil where the sink works.
	sinkFailure error
	// streak counts failures of keys that were not held up, since the last message that was taken.
	streak atomic.Int64
	// down and stuck are what was told last.
	down, stuck bool
}

// hold keeps a key's messages back for a while.
type hold struct {
	pause time.Duration
	until time.Time
}

// lane is the messages of one key, in their order: one is on its way at a time, and none overtakes.
type lane struct {
	key string
	// held tells that the last try of the key failed: another failure says nothing about the sink.
	held     bool
	messages []*journal.Message
	// taken is how many of them the sink took, from the first on; failure is why it did not take the next.
	taken   int
	failure error
}

func (s *sweeper) going() bool { return s.stop.Err() == nil && s.lease.holds() }

// sweep goes once through the outbox, and reports whether to begin again at once. A key that failed is held up until
// the sweep is over, or longer: nothing of it is overtaken by what stands on a later page.
func (s *sweeper) sweep() (again bool, err error) {
	if len(s.held) >= holdKeys {
		clear(s.held)
	}
	if err := s.release(); err != nil {
		return false, err
	}
	began := time.Now()
	for after := int64(0); s.going() && time.Since(began) < sweepTime; {
		page, err := s.read(after)
		if err != nil {
			return false, err
		}
		if after == 0 && len(page) == 0 { // somebody else sent it all
			s.sinkFailure = nil
		}
		lanes := s.lanes(page, began)
		more := s.publish(lanes)
		if err := s.release(); err != nil {
			return false, err
		}
		switch {
		case s.sinkFailure != nil && len(lanes) > 0:
			return false, nil
		case !more:
			return true, nil
		case len(page) < pageSize:
			return s.through(began), nil
		}
		after = page[len(page)-1].Sequence
	}
	return true, nil
}

// through ends a sweep that went through the whole outbox. If the sink failed before it, each key has failed since, and
// it begins anew with all.
func (s *sweeper) through(began time.Time) (again bool) {
	if s.sinkFailure != nil {
		clear(s.held)
		return true
	}
	maps.DeleteFunc(s.held, func(_ string, h *hold) bool { return !h.until.After(began) }) // their messages are gone
	s.tellStuck()
	return false
}

func (s *sweeper) read(after int64) ([]journal.Message, error) {
	ctx, cancel := context.WithTimeout(s.lease.ctx, storeTime)
	defer cancel()
	page, err := s.box.Pending(ctx, s.queue, after, pageSize)
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	return page, nil
}

// release lets go of what was taken. What it cannot let go of is not sent again by this process.
func (s *sweeper) release() error {
	if len(s.settled) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.lease.ctx, storeTime)
	defer cancel()
	if err := s.letGo(ctx, slices.Sorted(maps.Keys(s.settled))); err != nil {
		return fmt.Errorf("let go of messages that were sent: %w", err)
	}
	clear(s.settled)
	return nil
}

// lanes returns the keys of a page that are not held up in the sweep that began then. While the sink fails they are
// keys that did not fail yet, and only as many as tell whether it still does.
func (s *sweeper) lanes(page []journal.Message, began time.Time) []*lane {
	byKey := make(map[string]*lane, len(page))
	var all []*lane
	for i := range page {
		m := &page[i]
		h := s.held[m.Key]
		if s.settled[m.Sequence] || h != nil && (s.sinkFailure != nil || h.until.After(began)) {
			continue
		}
		l := byKey[m.Key]
		if l == nil {
			l = &lane{key: m.Key, held: h != nil}
			byKey[m.Key] = l
			all = append(all, l)
		}
		l.messages = append(l.messages, m)
	}
	if s.sinkFailure != nil {
		return all[:min(len(all), lanesAtOnce)]
	}
	return all
}

// publish sends the lanes, awaits what is on its way, and learns from how it went. It reports whether the sweep may go
// on behind them: each was tried, and none that was passed over may go now.
func (s *sweeper) publish(lanes []*lane) (more bool) {
	s.streak.Store(0)
	var sending errgroup.Group
	sending.SetLimit(lanesAtOnce)
	for _, l := range lanes {
		sending.Go(func() error { s.carry(l); return nil })
	}
	_ = sending.Wait()
	taken, tried := 0, true
	for _, l := range lanes {
		for _, m := range l.messages[:l.taken] {
			s.settled[m.Sequence] = true
		}
		taken += l.taken
		tried = tried && (l.failure != nil || l.taken == len(l.messages))
	}
	if taken > 0 {
		s.hooks.Published(taken)
	}
	// After the lease's end it is that end that they failed for.
	return s.lease.holds() && s.learn(lanes, taken) && tried
}

// carry sends a lane's messages until one fails.
func (s *sweeper) carry(l *lane) {
	for _, m := range l.messages {
		if !s.going() || s.broken() {
			return
		}
		if l.failure = s.send(m); l.failure != nil {
			if !l.held && !s.patience.Apart {
				s.streak.Add(1)
			}
			return
		}
		l.taken++
		s.streak.Store(0)
	}
}

// broken reports whether the sink takes nothing any more. While that is known, all lanes are tried.
func (s *sweeper) broken() bool { return s.sinkFailure == nil && s.streak.Load() >= probes }

func (s *sweeper) send(m *journal.Message) error {
	if err := m.Held(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.lease.ctx, s.patience.Message)
	defer cancel()
	if s.patience.Apart {
		defer context.AfterFunc(s.stop, func() {
			rest(ctx, stopGrace)
			cancel()
		})()
	}
	return s.sink.Publish(ctx, m)
}

// learn holds up the keys that failed and finds out whether it is they or the sink. It reports whether that is as it
// was while the sink works.
func (s *sweeper) learn(lanes []*lane, taken int) (same bool) {
	var first error // failure of a key that was not held up before
	for _, l := range lanes {
		if l.taken > 0 {
			delete(s.held, l.key)
		}
		if l.failure == nil {
			continue
		}
		s.hold(l.key, l.failure)
		if !l.held {
			s.refusal, first = l.failure, cmp.Or(first, l.failure)
		}
	}
	switch {
	case s.patience.Apart: // no failure is the sink's
	case s.broken() || taken == 0 && first != nil:
		s.sinkFailure = first
	case taken > 0 && s.sinkFailure != nil: // it was the sink that failed: all keys may try at once
		s.sinkFailure = nil
		for _, h := range s.held {
			*h = hold{}
		}
		return false
	}
	return true
}

// pausingError is one that knows after how long it is worth trying again.
type pausingError interface {
	error
	Pause() time.Duration
}

// hold a key up, longer than the last time, and as long as the failure asks for.
func (s *sweeper) hold(key string, failure error) {
	h := s.held[key]
	if h == nil {
		h = &hold{}
		s.held[key] = h
	}
	h.pause = min(max(2*h.pause, holdFirst), s.patience.Hold)
	wait := h.pause
	if asks, ok := errors.AsType[pausingError](failure); ok {
		wait = min(max(wait, asks.Pause()), s.patience.Hold)
	}
	h.until = time.Now().Add(wait)
}

// tell says that messages cannot be sent, or can again, when that changes.
func (s *sweeper) tell(failure error) {
	down := failure != nil
	if down == s.down || !s.lease.holds() {
		return
	}
	s.down = down
	if down {
		s.stuck = false
		s.log.Warn("messages cannot be sent, they wait in the outbox", zap.String("queue", s.queue), zap.Error(failure))
	} else {
		s.log.Info("messages are sent again", zap.String("queue", s.queue))
	}
}

// tellStuck says that single keys wait while others go out, when that begins.
func (s *sweeper) tellStuck() {
	stuck := len(s.held) > 0
	if stuck && !s.stuck {
		s.log.Warn("single messages are refused; later ones of their subjects wait, all others are sent",
			zap.String("queue", s.queue), zap.Int("subjects", len(s.held)), zap.NamedError("lastReason", s.refusal))
	}
	s.stuck = stuck
}

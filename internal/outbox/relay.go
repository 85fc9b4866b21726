// Package outbox carries the journal's messages to their receivers: at least once, in order per key, by one relay at a
// time.
package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"retry-worker/internal/clock"
	"retry-worker/internal/journal"
)

const (
	// pollEvery is how often an idle relay looks for messages, leastRest its least pause, however often it is woken.
	pollEvery = 200 * time.Millisecond
	leastRest = 20 * time.Millisecond
	// failFirst and failMost bound the pause after a sweep that failed.
	failFirst = 100 * time.Millisecond
	failMost  = 5 * time.Second
	// storeTime bounds one call of the store.
	storeTime = 10 * time.Second
	// pageSize is how many messages are read at a time.
	pageSize = 512
	// pageTime is how long after reading a page its messages are sent: an erasure may take them away meanwhile.
	pageTime = 5 * time.Second
	// lanesAtOnce is the most messages on their way, each of another key, and the most keys that are tried per sweep
	// while the sink is down.
	lanesAtOnce = 64
	// holdFirst and holdMost bound the pause of a key whose message failed; Patience may raise holdMost.
	holdFirst = time.Second
	holdMost  = 30 * time.Second
	// takeTime bounds the sending of one message by default.
	takeTime = 5 * time.Second
	// stopGrace is how long messages on their way may take after a stop, if keys are apart.
	stopGrace = 3 * time.Second
)

// Sink receives messages. Publish returns when m is taken for good. After an error it may be sent again: consumers
// recognise a repetition by the message's ID. Publish ends with ctx and is safe for concurrent use.
type Sink interface {
	Publish(ctx context.Context, m *journal.Message) error
}

// Patience is how a relay treats a slow sink, or one with many independent receivers.
type Patience struct {
	// Message bounds the time to send one message.
	Message time.Duration
	// Hold bounds the pause of a key whose message failed, which begins at a second and doubles.
	Hold time.Duration
	// Apart says that each key has its own receiver: failures of some say nothing about the others. The relay then logs
	// only failures of the store, as the sink logs its own. At a stop, messages on their way have stopGrace to end.
	Apart bool
}

// Relay carries the messages of one queue. Of all relays of a queue, only the one with the lease works.
type Relay struct {
	// Patience and Leads may be changed before Run. Leads is called whenever this relay takes the lease.
	Patience Patience
	Leads    func()

	queue, holder string
	box           journal.Outbox
	letGo         func(ctx context.Context, sequences []int64) error
	sink          Sink
	log           *zap.Logger
	woken         clock.Signal

	// taken are the ids of messages that the sink took and that are not yet removed from the outbox. They outlive a
	// lease.
	taken map[string]bool
}

// New returns a Relay of a queue; Run starts it. holder must be unique among all processes and starts. published
// removes messages (Journal.Published); it does nothing if the sink does so itself.
func New(queue, holder string, box journal.Outbox, published func(ctx context.Context, sequences []int64) error,
	sink Sink, log *zap.Logger) *Relay {
	return &Relay{Patience: Patience{Message: takeTime, Hold: holdMost}, Leads: func() {}, queue: queue, holder: holder,
		box: box, letGo: published, sink: sink, log: log, woken: clock.NewSignal(), taken: map[string]bool{}}
}

// Wake makes the relay look for messages. It never blocks and is safe for concurrent use.
func (r *Relay) Wake() { r.woken.Send() }

// Run carries messages until stop ends. Then it waits for those on their way, removes them, gives the lease back and
// returns. When kill ends it returns as soon as the sink does; the next relay sends the messages on their way again,
// with the same IDs. Call it once.
func (r *Relay) Run(stop, kill context.Context) {
	Lead(stop, kill, r.box, "outbox/"+r.queue, r.holder, func(ends, hard context.Context) {
		r.Leads()
		r.log.Info("this replica sends the queue's messages now", zap.String("queue", r.queue))
		(&sweeper{Relay: r, stop: ends, hard: hard, held: map[string]*hold{}}).run()
		if stop.Err() == nil && kill.Err() == nil {
			r.log.Warn("this replica lost the lease and sends none of the queue's messages", zap.String("queue", r.queue))
		}
	})
}

// sweeper goes through the outbox, page by page, again and again, while a lease lasts. It is not safe for concurrent
// use.
type sweeper struct {
	*Relay
	stop, hard context.Context
	// until is how long the last page's messages are sent.
	until time.Time
	// held are the keys whose message failed, reason is the last failure.
	held   map[string]*hold
	reason error
	// down is why the sink took no message of a page; nil if it is not down.
	down error
	told string // the last message logged about the sink
}

// hold keeps a key's messages back for a while.
type hold struct {
	pause time.Duration
	until time.Time
	// own reports whether another key's messages were all taken since the key failed, so that its failures say nothing
	// about the sink.
	own bool
}

// lane holds the messages of one key of a page, in order. They are sent one after the other.
type lane struct {
	key      string
	messages []*journal.Message
	// sent is how many of them the sink took. failure is why it did not take the next; nil if the page grew too old.
	sent    int
	failure error
}

// run sweeps the outbox until stop or the lease ends.
func (s *sweeper) run() {
	var pause time.Duration
	for s.going() {
		began := time.Now()
		again, err := s.sweep()
		failure := cmp.Or(err, s.down)
		s.tell(failure, again)
		if failure == nil {
			pause = 0
		}
		switch {
		case again:
		case failure != nil:
			pause = min(max(2*pause, failFirst), failMost)
			rest(s.stop, jitter(pause))
		case len(s.held) > 0: // do not read the same messages all the time
			s.idle(min(max(pollEvery, 4*time.Since(began)), failMost))
		default:
			s.idle(pollEvery)
		}
	}
}

func (s *sweeper) going() bool { return s.stop.Err() == nil && s.hard.Err() == nil }

// sweep goes through the outbox once, and reports whether to begin again at once. A key that failed is held at least
// until the sweep is over, so that its messages on later pages do not overtake.
func (s *sweeper) sweep() (again bool, err error) {
	began := time.Now()
	for after := int64(0); s.going(); {
		page, err := s.read(after)
		if err != nil {
			return false, err
		}
		lanes, wasDown := s.lanes(page, began), s.down != nil
		s.learn(lanes, s.publish(lanes))
		if err := s.release(page); err != nil {
			return false, err
		}
		switch {
		case wasDown && s.down == nil:
			return true, nil
		case s.down != nil && len(lanes) > 0:
			return false, nil
		case slices.ContainsFunc(lanes, func(l *lane) bool { return l.failure == nil && l.sent < len(l.messages) }):
			return true, nil // later pages may have messages of the same keys
		case after == 0 && len(page) == 0: // another relay may have sent them all
			s.down = nil
			fallthrough
		case len(page) < pageSize:
			return s.through(began), nil
		}
		after = page[len(page)-1].Sequence
	}
	return false, nil
}

// through ends a sweep of the whole outbox. If the sink is down, every key has failed, and all are tried again.
func (s *sweeper) through(began time.Time) (again bool) {
	clear(s.taken) // what is left is in the outbox no more: a failover of the database may have lost it
	if s.down != nil {
		s.tryAll()
		return true
	}
	maps.DeleteFunc(s.held, func(_ string, h *hold) bool { return !h.until.After(began) }) // their messages are gone
	return false
}

// tryAll releases all held keys.
func (s *sweeper) tryAll() {
	for _, h := range s.held {
		h.pause, h.until = 0, time.Time{}
	}
}

func (s *sweeper) read(after int64) ([]journal.Message, error) {
	ctx, cancel := context.WithTimeout(s.hard, storeTime)
	defer cancel()
	page, err := s.box.Pending(ctx, s.queue, after, pageSize)
	s.until = time.Now().Add(pageTime) // from now on, so that a slow journal delays all and stops none
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	return page, nil
}

// release removes a page's taken messages from the outbox. If that fails, this process still does not send them again.
func (s *sweeper) release(page []journal.Message) error {
	var gone []int64
	for i := range page {
		if s.taken[page[i].ID] {
			gone = append(gone, page[i].Sequence)
		}
	}
	if gone == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.hard, storeTime)
	defer cancel()
	if err := s.letGo(ctx, gone); err != nil {
		return fmt.Errorf("let go of messages that were sent: %w", err)
	}
	for i := range page {
		delete(s.taken, page[i].ID)
	}
	return nil
}

// lanes returns the lanes of a page whose keys are not held in the sweep that began at began. While the sink is down it
// returns only keys that have not failed, at most lanesAtOnce.
func (s *sweeper) lanes(page []journal.Message, began time.Time) (all []*lane) {
	if s.down != nil {
		began = time.Time{}
	}
	byKey := make(map[string]*lane, len(page))
	for i := range page {
		m := &page[i]
		if h := s.held[m.Key]; s.taken[m.ID] || h != nil && h.until.After(began) {
			continue
		}
		l := byKey[m.Key]
		if l == nil {
			l = &lane{key: m.Key}
			byKey[m.Key] = l
			all = append(all, l)
		}
		l.messages = append(l.messages, m)
	}
	if s.down != nil {
		all = all[:min(len(all), lanesAtOnce)]
	}
	return all
}

// publish sends the lanes and returns how many messages were taken.
func (s *sweeper) publish(lanes []*lane) (taken int) {
	var sending errgroup.Group
	sending.SetLimit(lanesAtOnce)
	for _, l := range lanes {
		sending.Go(func() error { s.carry(l); return nil })
	}
	_ = sending.Wait()
	for _, l := range lanes {
		for _, m := range l.messages[:l.sent] {
			s.taken[m.ID] = true
		}
		taken += l.sent
	}
	return taken
}

// carry sends a lane's messages until one fails, or the page has grown too old.
func (s *sweeper) carry(l *lane) {
	for _, m := range l.messages {
		if !s.going() || time.Now().After(s.until) {
			return
		}
		if l.failure = s.send(m); l.failure != nil {
			return
		}
		l.sent++
	}
}

func (s *sweeper) send(m *journal.Message) error {
	if err := m.Held(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.hard, s.Patience.Message)
	defer cancel()
	if s.Patience.Apart {
		defer context.AfterFunc(s.stop, func() {
			rest(ctx, stopGrace)
			cancel()
		})()
	}
	return s.sink.Publish(ctx, m)
}

// learn holds the keys that failed. The sink is down if it took no message of a page, and the failures are not the
// keys' own.
func (s *sweeper) learn(lanes []*lane, taken int) {
	if taken > 0 && s.down != nil {
		s.tryAll()
		s.down = nil
	}
	others := slices.ContainsFunc(lanes, func(l *lane) bool { return l.sent == len(l.messages) })
	for _, h := range s.held {
		h.own = h.own || others
	}
	for _, l := range lanes {
		if l.sent > 0 {
			delete(s.held, l.key)
		}
		if l.failure == nil || s.hard.Err() != nil { // they may have failed because of that
			continue
		}
		h := s.hold(l)
		h.own = h.own || others
		if taken == 0 && !h.own && !s.Patience.Apart {
			s.down = l.failure
		}
	}
}

// hold holds a lane's key, longer than the last time, and at least as long as the failure asks.
func (s *sweeper) hold(l *lane) *hold {
	h := s.held[l.key]
	if h == nil {
		h = &hold{}
		s.held[l.key] = h
	}
	h.pause = min(max(2*h.pause, holdFirst), s.Patience.Hold)
	wait := h.pause
	var asks interface{ Pause() time.Duration }
	if errors.As(l.failure, &asks) {
		wait = min(max(wait, asks.Pause()), s.Patience.Hold)
	}
	h.until, s.reason = time.Now().Add(wait), l.failure
	return h
}

const (
	cannotSend  = "messages cannot be sent, they wait in the outbox"
	someRefused = "single messages are refused; later ones of their subjects wait, all others are sent"
)

// tell logs the state of the sink if it has changed. again says that held keys are about to be tried.
func (s *sweeper) tell(failure error, again bool) {
	says := ""
	switch {
	case failure != nil:
		says = cannotSend
	case len(s.held) == 0 || s.Patience.Apart:
	case again:
		return
	default:
		says = someRefused
	}
	if says == s.told || s.hard.Err() != nil {
		return
	}
	if s.told == cannotSend {
		s.log.Info("messages are sent again", zap.String("queue", s.queue))
	}
	if s.told = says; says != "" {
		s.log.Warn(says, zap.String("queue", s.queue), zap.Int("subjects", len(s.held)), zap.Error(cmp.Or(failure, s.reason)))
	}
}

// idle rests that long, or until the relay is woken.
func (s *sweeper) idle(long time.Duration) {
	rest(s.stop, leastRest)
	clock.RestOr(s.stop, clock.Machine{}, long-leastRest, s.woken)
}

func rest(ctx context.Context, d time.Duration) { clock.Machine{}.Rest(ctx, d) }

// jitter returns a random time between d/2 and d, so that replicas do not move in step.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2) }

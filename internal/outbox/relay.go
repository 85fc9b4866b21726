// Package outbox carries the journal's messages to where they are wanted: at least once, in order per key, by one
// relay at a time.
package outbox

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/journal"
)

const (
	// pollEvery is how often an idle relay looks; leastRest is what it rests at least, however often it is woken.
	pollEvery = 200 * time.Millisecond
	leastRest = 20 * time.Millisecond
	// failFirst and failMost bound the pause after a sweep that failed.
	failFirst = 100 * time.Millisecond
	failMost  = 5 * time.Second
	// storeTime bounds one call of the store.
	storeTime = 10 * time.Second
)

// Sink takes messages. Publish returns when one is taken for good. Its error says that it may not have been, and
// that it may be sent again: a sink's consumers tell a repetition by the message's ID. Publish ends with ctx and is
// safe for concurrent use.
type Sink interface {
	Publish(ctx context.Context, m *journal.Message) error
}

// Patience is how a relay deals with a sink that is slow, and made of many that have nothing to do with one another.
type Patience struct {
	// Message bounds the sending of one message.
	Message time.Duration
	// Hold bounds the pause of a key whose message failed; it begins at a second and doubles.
	Hold time.Duration
	// Apart says that each key has a receiver of its own: the failure of one, or of all, says nothing about the others.
	// The log then tells of the store alone; the sink tells what fails. What is on its way at a stop has stopGrace to end
	// by itself.
	Apart bool
}

// Relay carries the messages of one queue. Of all relays of a queue on one store one works, which holds the lease.
type Relay struct {
	// Patience may be changed before Run, and so may Leads, which is called whenever this relay takes the lease.
	Patience Patience
	Leads    func()

	queue string
	box   journal.Outbox
	lease *lease
	letGo func(ctx context.Context, sequences []int64) error
	sink  Sink
	log   *zap.Logger
	woken clock.Signal

	// settled are messages that were taken and not let go of yet. They outlive a lease.
	settled map[int64]bool
}

// New prepares a Relay of a queue; Run starts it. holder names it among all relays of all processes, and differs
// with each start. published lets go of messages (Journal.Published); a sink that does so itself makes it do nothing.
func New(queue, holder string, box journal.Outbox, published func(ctx context.Context, sequences []int64) error,
	sink Sink, log *zap.Logger) *Relay {
	return &Relay{Patience: Patience{Message: takeTime, Hold: holdMost}, Leads: func() {}, queue: queue, box: box,
		lease: &lease{box, "outbox/" + queue, holder, leaseSpan}, letGo: published, sink: sink, log: log,
		woken: clock.NewSignal(), settled: map[int64]bool{}}
}

// Wake says that there may be messages. It never blocks and is safe for concurrent use.
func (r *Relay) Wake() { r.woken.Send() }

// Run carries messages until stop ends; then it begins nothing more, awaits what is on its way, lets go of it, gives
// the lease back and returns. When kill ends it returns as soon as the sink does. What was on its way then is sent
// again by whoever comes next, with the same ID. Call it once.
func (r *Relay) Run(stop, kill context.Context) {
	lead(stop, kill, r.lease, func(ends, hard context.Context) {
		r.Leads()
		r.log.Info("this replica sends the queue's messages now", zap.String("queue", r.queue))
		(&sweeper{Relay: r, stop: ends, hard: hard, held: map[string]*hold{}}).run()
		if stop.Err() == nil && kill.Err() == nil {
			r.log.Warn("this replica lost the lease and sends none of the queue's messages", zap.String("queue", r.queue))
		}
	})
}

// run sweeps until stop or the lease ends.
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
		case len(s.held) > 0: // do not read the same messages all the time for nothing
			s.idle(min(max(pollEvery, 4*time.Since(began)), failMost))
		default:
			s.idle(pollEvery)
		}
	}
}

// idle rests that long, or until somebody wakes it.
func (s *sweeper) idle(long time.Duration) {
	rest(s.stop, leastRest)
	clock.RestOr(s.stop, clock.Machine{}, long-leastRest, s.woken)
}

func rest(ctx context.Context, d time.Duration) { clock.Machine{}.Rest(ctx, d) }

// jitter is between d/2 and d: replicas do not move in step.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2) }

// Package outbox carries the journal's messages to their receivers: at least once, in order per key, by one relay at a
// time.
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
	// pollEvery is how often an idle relay looks for messages, leastRest its least pause, however often it is woken.
	pollEvery = 200 * time.Millisecond
	leastRest = 20 * time.Millisecond
	// failFirst and failMost bound the pause after a sweep that failed.
	failFirst = 100 * time.Millisecond
	failMost  = 5 * time.Second
	// storeTime bounds one call of the store.
	storeTime = 10 * time.Second
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

	queue string
	box   journal.Outbox
	lease *lease
	letGo func(ctx context.Context, sequences []int64) error
	sink  Sink
	log   *zap.Logger
	woken clock.Signal

	// settled are the ids of messages that were taken but not yet removed from the outbox. They outlive a lease.
	settled map[int64]string
}

// New returns a Relay of a queue; Run starts it. holder must be unique among all processes and starts. published
// removes messages (Journal.Published); it does nothing if the sink does so itself.
func New(queue, holder string, box journal.Outbox, published func(ctx context.Context, sequences []int64) error,
	sink Sink, log *zap.Logger) *Relay {
	return &Relay{Patience: Patience{Message: takeTime, Hold: holdMost}, Leads: func() {}, queue: queue, box: box,
		lease: &lease{box, "outbox/" + queue, holder, leaseSpan}, letGo: published, sink: sink, log: log,
		woken: clock.NewSignal(), settled: map[int64]string{}}
}

// Wake makes the relay look for messages. It never blocks and is safe for concurrent use.
func (r *Relay) Wake() { r.woken.Send() }

// Run carries messages until stop ends. Then it waits for those on their way, removes them, gives the lease back and
// returns. When kill ends it returns as soon as the sink does; the next relay sends the messages on their way again,
// with the same IDs. Call it once.
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

// idle rests that long, or until the relay is woken.
func (s *sweeper) idle(long time.Duration) {
	rest(s.stop, leastRest)
	clock.RestOr(s.stop, clock.Machine{}, long-leastRest, s.woken)
}

func rest(ctx context.Context, d time.Duration) { clock.Machine{}.Rest(ctx, d) }

// jitter returns a random time between d/2 and d, so that replicas do not move in step.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2) }

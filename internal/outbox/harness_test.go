package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/journal"
	"retry-worker/internal/outbox"
	"retry-worker/internal/testkit"
)

const queue = "events"

// stage is an outbox in memory, a sink, and relays between them, in a bubble of testing/synctest.
type stage struct {
	*testkit.Memory
	t    *testing.T
	sink *sink
	logs *observer.ObservedLogs
	log  *zap.Logger

	mu       sync.Mutex
	hidden   map[int64]bool // sequences that are not committed yet
	forged   map[int64]bool // sequences of messages that differ from their signature
	filled   int            // how many messages were put into it
	others   bool           // a failover lost the messages, and others have their sequences
	reads    int
	states   []bool          // as logged
	noRelief bool            // letting go fails
	noLease  bool            // the store does not answer for leases
	slow     time.Duration   // time to answer for a lease
	patience outbox.Patience // of new relays; the zero value: New's
	leases   map[string]time.Time
}

func newStage(t *testing.T) *stage {
	core, logs := observer.New(zap.DebugLevel)
	to := &sink{t: t, onWay: map[string]bool{}, tried: map[string][]time.Time{}, holders: map[string]int{}}
	s := &stage{Memory: testkit.NewMemory(), t: t, sink: to, logs: logs, hidden: map[int64]bool{}, leases: map[string]time.Time{}}
	s.log = zap.New(core, outages(func(up bool) { s.set(func() { s.states = append(s.states, up) }) }))
	return s
}

// outages calls tell when a logger says that messages stop or start going out.
func outages(tell func(up bool)) zap.Option {
	return zap.Hooks(func(e zapcore.Entry) error {
		switch e.Message {
		case "messages cannot be sent, they wait in the outbox":
			tell(false)
		case "messages are sent again":
			tell(true)
		}
		return nil
	})
}

// bubble runs a test in fake time.
func bubble(t *testing.T, test func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newStage(t)) })
}

// fill puts n messages into the outbox, with the keys in turn.
func (s *stage) fill(n int, keys ...string) {
	var all []journal.Message
	for i := range n {
		all = append(all, journal.Message{ID: fmt.Sprintf("id-%d", s.filled+i), Queue: queue, Key: keys[i%len(keys)], Type: "RetryScheduled", Body: "{}", At: time.Now()})
	}
	s.filled += n
	s.change(&journal.Changes{Outbox: all})
}

func (s *stage) change(c *journal.Changes) {
	s.t.Helper()
	testkit.Must(s.t, s.Transact(context.Background(), nil, func(head journal.Head, _ []journal.History) *journal.Changes {
		c.Seal(head, time.Now())
		return c
	}))
}

// Pending counts the calls, and hides what is not committed yet.
func (s *stage) Pending(ctx context.Context, q string, after int64, limit int) ([]journal.Message, error) {
	s.mu.Lock()
	s.reads++
	hidden := s.hidden
	all, err := s.Memory.Pending(ctx, q, after, 1<<30)
	for i := range all {
		all[i].Forged = s.forged[all[i].Sequence]
		if s.others {
			all[i].ID, all[i].Key = "other-"+all[i].ID, "other-"+all[i].Key
		}
	}
	s.mu.Unlock()
	all = slices.DeleteFunc(all, func(m journal.Message) bool { return hidden[m.Sequence] })
	return all[:min(len(all), limit)], err
}

var errNoAnswer = errors.New("the store does not answer")

// Lease notes until when a holder has a lease.
func (s *stage) Lease(ctx context.Context, name, holder string, span time.Duration) (bool, error) {
	s.mu.Lock()
	defer time.Sleep(s.slow)
	defer s.mu.Unlock()
	if s.noLease {
		return false, errNoAnswer
	}
	held, err := s.Memory.Lease(ctx, name, holder, span)
	if held && err == nil {
		s.leases[holder] = time.Now().Add(span)
	}
	return held, err
}

func (s *stage) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *stage) letGo(ctx context.Context, sequences []int64) error {
	s.mu.Lock()
	refused := s.noRelief
	s.mu.Unlock()
	if refused {
		return journal.ErrUnavailable
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Transact(ctx, nil, func(head journal.Head, _ []journal.History) *journal.Changes {
		c := &journal.Changes{Published: sequences}
		c.Seal(head, time.Now())
		return c
	})
}

// running is a relay that runs.
type running struct {
	*outbox.Relay
	halt, kill context.CancelFunc
	done       chan struct{}
}

// relay starts a relay, which is stopped when the test ends.
func (s *stage) relay(holder string) *running {
	r := &running{done: make(chan struct{})}
	r.Relay = outbox.New(queue, holder, s, s.letGo, &sinkOf{s, holder}, s.log)
	if s.patience.Message > 0 {
		r.Patience = s.patience
	}
	stop, halt := context.WithCancel(context.Background())
	killed, kill := context.WithCancel(context.Background())
	r.halt, r.kill = halt, kill
	go func() { defer close(r.done); r.Run(stop, killed) }()
	s.t.Cleanup(func() { kill(); <-r.done; halt() })
	return r
}

func (r *running) stop() {
	r.halt()
	<-r.done
}

// within waits at most that long until so is true.
func (s *stage) within(long time.Duration, what string, so func() bool) time.Duration {
	s.t.Helper()
	began := time.Now()
	for !so() {
		if time.Since(began) > long {
			s.t.Fatalf("not within %s: %s", long, what)
		}
		time.Sleep(time.Millisecond) // no time at all in the bubble
	}
	return time.Since(began)
}

func (s *stage) empty() bool { return len(s.Outbox()) == 0 }

// sink takes messages, and notices a relay that sends out of order.
type sink struct {
	t  *testing.T
	mu sync.Mutex
	// answer returns the result of a message; nil takes every one.
	answer func(m *journal.Message) error
	// takes is how long a message is on its way; hang means for ever.
	takes time.Duration
	hang  bool

	onWay    map[string]bool
	taken    []journal.Message
	tries    int
	tried    map[string][]time.Time // by key
	holders  map[string]int
	onWayMax int
}

// sinkOf is the sink of one relay.
type sinkOf struct {
	s      *stage
	holder string
}

func (o *sinkOf) Publish(ctx context.Context, m *journal.Message) error {
	o.s.mu.Lock()
	if until := o.s.leases[o.holder]; !time.Now().Before(until) {
		o.s.t.Errorf("%s sends %s after its lease", o.holder, time.Since(until))
	}
	o.s.mu.Unlock()
	k := o.s.sink
	k.begin(o.holder, m)
	err := k.wait(ctx)
	return k.end(m, err)
}

func (k *sink) begin(holder string, m *journal.Message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tries++
	k.tried[m.Key] = append(k.tried[m.Key], time.Now())
	k.holders[holder]++
	if k.onWay[m.Key] {
		k.t.Errorf("two messages of %s are on their way", m.Key)
	}
	k.onWay[m.Key] = true
	k.onWayMax = max(k.onWayMax, len(k.onWay))
}

func (k *sink) wait(ctx context.Context) error {
	k.mu.Lock()
	hang, takes := k.hang, k.takes
	k.mu.Unlock()
	if hang {
		<-ctx.Done()
	} else if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (k *sink) end(m *journal.Message, err error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.onWay, m.Key)
	if err == nil && k.answer != nil {
		err = k.answer(m)
	}
	if err != nil {
		return err
	}
	k.taken = append(k.taken, *m)
	return nil
}

func (k *sink) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

// triesOf returns the instants at which a key was tried.
func (k *sink) triesOf(key string) []time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.tried[key])
}

// sequences returns the sequences that were taken of a key, in that order.
func (k *sink) sequences(key string) []int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []int64
	for _, m := range k.taken {
		if m.Key == key {
			all = append(all, m.Sequence)
		}
	}
	return all
}

// checkOrder fails for a key with a message that overtook another, or that came twice unless that is allowed.
func (k *sink) checkOrder(t *testing.T, twiceAllowed bool) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	highest, seen := map[string]int64{}, map[int64]bool{}
	for _, m := range k.taken {
		switch {
		case seen[m.Sequence] && !twiceAllowed:
			t.Errorf("message %d came twice", m.Sequence)
		case !seen[m.Sequence] && m.Sequence < highest[m.Key]:
			t.Errorf("message %d of %s came after %d", m.Sequence, m.Key, highest[m.Key])
		}
		seen[m.Sequence] = true
		highest[m.Key] = max(highest[m.Key], m.Sequence)
	}
}

func (k *sink) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.taken)
}

func keys(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("CLM-%d-1", i)
	}
	return all
}

// account returns what was seen so far.
type account struct {
	reads, tries, onWayMax int
	states                 []bool
	holders                map[string]int
	leases                 int
}

func (s *stage) account() account {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	return account{s.reads, s.sink.tries, s.sink.onWayMax, slices.Clone(s.states), maps.Clone(s.sink.holders), len(s.leases)}
}

package outbox_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/journal"
	"retry-worker/internal/outbox"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

const queue = "events"

var (
	errRefused  = errors.New("refused")
	errNoAnswer = errors.New("the store does not answer")
)

// stage is an outbox in memory, a sink, and relays between them, in fake time.
type stage struct {
	*testkit.Memory
	t        *testing.T
	patience outbox.Patience // of new relays; the zero value: New's
	relays   map[string]*running
	log      *zap.Logger
	logs     *observer.ObservedLogs
	filled   int // messages so far

	mu     sync.Mutex
	reads  int
	leases map[string]time.Time // until when a holder has one
	store  golden.Arguments     // how the store is
	sink   golden.Arguments     // how the sink is

	onWay   map[string]bool
	most    int // on their way at once
	taken   []journal.Message
	tries   map[int64]int
	tried   map[string][]time.Time // by key
	holders map[string]int
	states  []string // of the sink, as logged
}

func newStage(t *testing.T, patient bool) *stage {
	core, logs := observer.New(zap.DebugLevel)
	s := &stage{Memory: testkit.NewMemory(), t: t, logs: logs, relays: map[string]*running{}, leases: map[string]time.Time{},
		onWay: map[string]bool{}, tries: map[int64]int{}, tried: map[string][]time.Time{}, holders: map[string]int{}}
	s.log = zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
		switch e.Message {
		case "messages cannot be sent, they wait in the outbox":
			s.states = append(s.states, "down")
		case "messages are sent again":
			s.states = append(s.states, "up")
		}
		return nil
	}))
	if patient { // as notices are sent
		s.patience = outbox.Patience{Message: time.Minute, Hold: 15 * time.Minute, Apart: true}
	}
	return s
}

// end kills all relays.
func (s *stage) end() {
	if s != nil {
		for _, r := range s.relays {
			r.kill()
			<-r.done
			r.halt()
		}
	}
}

// among reports whether a number is in a list such as 3,700, or in a range such as 1-20.
func among(n int64, list string) bool {
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, _ := strconv.ParseInt(first, 10, 64)
		if b, err := strconv.ParseInt(last, 10, 64); err == nil && a <= n && n <= b {
			return true
		}
	}
	return false
}

// Pending counts the calls, hides what is not committed yet, and has messages that are forged, or others in the place
// of lost ones.
func (s *stage) Pending(ctx context.Context, q string, after int64, limit int) ([]journal.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	all, err := s.Memory.Pending(ctx, q, after, 1<<30)
	for i := range all {
		all[i].Forged = among(all[i].Sequence, s.store.Named["forged"])
		if s.store.Words["others"] {
			all[i].ID, all[i].Key = "other-"+all[i].ID, "other-"+all[i].Key
		}
	}
	all = slices.DeleteFunc(all, func(m journal.Message) bool { return among(m.Sequence, s.store.Named["hidden"]) })
	return all[:min(len(all), limit)], err
}

// Lease notes until when a holder has a lease.
func (s *stage) Lease(ctx context.Context, name, holder string, span time.Duration) (bool, error) {
	s.mu.Lock()
	slow, _ := time.ParseDuration(s.store.Named["slow"])
	defer time.Sleep(slow)
	defer s.mu.Unlock()
	if s.store.Words["leaseless"] {
		return false, errNoAnswer
	}
	held, err := s.Memory.Lease(ctx, name, holder, span)
	if held && err == nil {
		s.leases[holder] = time.Now().Add(span)
	}
	return held, err
}

func (s *stage) letGo(ctx context.Context, sequences []int64) error {
	s.mu.Lock()
	refused := s.store.Words["readonly"]
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
	*stage
	holder     string
	halt, kill context.CancelFunc
	done       chan struct{}
}

// later knows after how long it is worth trying again.
type later struct{ error }

func (later) Pause() time.Duration { return 5 * time.Minute }

// Publish is the sink: it notices a relay that sends out of order or without a lease.
func (r *running) Publish(ctx context.Context, m *journal.Message) error {
	s := r.stage
	s.mu.Lock()
	if until := s.leases[r.holder]; !time.Now().Before(until) {
		s.t.Errorf("%s sends %s after its lease", r.holder, time.Since(until))
	}
	if s.onWay[m.Key] {
		s.t.Errorf("two messages of %s are on their way", m.Key)
	}
	s.onWay[m.Key] = true
	s.most = max(s.most, len(s.onWay))
	s.tries[m.Sequence]++
	s.tried[m.Key] = append(s.tried[m.Key], time.Now())
	s.holders[r.holder]++
	takes, _ := time.ParseDuration(s.sink.Named["takes"])
	if s.sink.Words["hangs"] {
		takes = 1000 * time.Hour
	}
	s.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.onWay, m.Key)
	err := cmp.Or(ctx.Err(), s.answer(m))
	if err == nil {
		s.taken = append(s.taken, *m)
	}
	return err
}

// answer is the sink's to a message: as its command says, it refuses all, keys, a number of messages the first times,
// or those behind a number of taken ones.
func (s *stage) answer(m *journal.Message) error {
	a := &s.sink
	var refused bool
	switch {
	case a.Named["keys"] != "":
		refused = slices.Contains(keys(a.Named["keys"]), m.Key) && (a.Named["times"] == "" || s.tries[m.Sequence] <= int(a.Number("times")))
	case a.Named["number"] != "":
		refused = m.Sequence == a.Number("number") && s.tries[m.Sequence] <= int(a.Number("times"))
	case a.Named["behind"] != "":
		refused = len(s.taken) >= int(a.Number("behind"))
	default:
		refused = a.Words["refuses"]
	}
	switch {
	case refused && a.Words["later"]:
		return later{errRefused}
	case refused:
		return errRefused
	}
	return nil
}

package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/audit"
	"retry-worker/internal/clock"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// testUnreadable has a record that cannot be read: it is named, its subject is refused, and others go on.
func testUnreadable(t *testing.T, d *Database) {
	s := d.opened(t)
	w := newBulkWorld(t, s)
	hooks := journal.NoHooks()
	hooks.Open = func(open bool, reason error) { t.Errorf("the journal is open: %t (%v)", open, reason) }
	w.j = journal.New(s, w.Now, nil, hooks)
	testkit.RunJournal(t, w.j)
	w.die("CLM-1-1", 1)
	w.die("CLM-2-1", 2)
	for i, body := range d.Unreadable {
		d.exec(t, "UPDATE records SET body = '"+body+"' WHERE record = 1")
		_, err := audit.Verify(t.Context(), s, journal.Head{}, nil)
		if broken, ok := errors.AsType[*journal.Broken](err); !ok || broken.What != "record" || broken.Number != 1 {
			t.Errorf("%s: verify says %v", body, err)
		}
		err = transact(t.Context(), s, []journal.Lookup{{Subject: subject("CLM-2-1")}, {Subject: subject("CLM-1-1"), Identity: identity()}},
			func(*transaction) { t.Error("what cannot be read is decided on") })
		WantKind(t, err, journal.Invalid)
		for _, other := range []string{"CLM-1-1", "CLM-2-1"} {
			_, err := w.analyze(other, int64(10+i), "DUPLICATE_CLAIM", 0)
			if refused := errors.Is(err, journal.ErrInvalid) && errors.Is(err, journal.ErrUnreadable); refused != (other == "CLM-1-1") || !refused && err != nil {
				t.Errorf("%s: %s gets %v", body, other, err)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is not one line", err)
			}
		}
	}
	first, err := s.Records(t.Context(), journal.RecordFilter{Subject: subject("CLM-2-1")}, 0, 1)
	testkit.Must(t, err)
	d.exec(t, "UPDATE dead_letters SET body = '7'")
	_, _, err = s.DeadLetter(t.Context(), first[0].Attempt.DeadLetter)
	if WantKind(t, err, journal.Invalid); !errors.Is(err, journal.ErrUnreadable) {
		t.Errorf("a dead letter that cannot be read: %v", err)
	}
	if all, _, err := s.DeadLetterPage(t.Context(), journal.DeadLetterFilter{}, "", 10); err == nil {
		t.Errorf("a dead letter that cannot be read is listed: %+v", all)
	}
}

// testUnreadableGates has an unreadable state of a destination and an unreadable held claim: each is logged once, and
// claims that have nothing to do with them go.
func testUnreadableGates(t *testing.T, d *Database) {
	s := d.opened(t)
	f, now := testkit.New(t, testkit.Over(s)), time.Now()
	lost, open := testkit.NewPortal("lost", f.Journal, now), testkit.NewPortal("open", f.Journal, now)
	lost.Happens(t, now)
	lost.Hold(t, "CLM-1-1", 1, time.Time{})
	open.Hold(t, "CLM-2-1", 2, time.Time{})
	open.Hold(t, "CLM-3-1", 3, time.Time{})
	d.exec(t, "UPDATE subjects SET body = '7' WHERE id IN ('lost', 'CLM-3-1')")

	e, fast := &gateEngine{}, destination.Defaults()
	fast.Pace.Most = 60_000
	core, told := observer.New(zap.ErrorLevel)
	g := gate.New(gate.Options{Store: s, Memory: f.Journal, Engine: e, Clock: clock.Machine{}, Zone: time.UTC,
		Hooks: worker.NoHooks(), Log: zap.New(core), Settings: func() gate.Settings {
			return gate.Settings{Destinations: destination.Configured{Others: fast}}
		}})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx) })
	running.Go(func() { g.Lead(ctx, ctx) })
	defer func() { cancel(); running.Wait() }()
	wait.Until(t, "the claim that can go", func() bool {
		waiting, err := s.Pending(t.Context(), journal.GateQueue, 0, 1)
		return err == nil && len(waiting) == 0 && len(e.keys()) > 0
	})
	if keys := e.keys(); !slices.Equal(keys, []int64{2}) || told.Len() != 2 {
		t.Errorf("the jobs %v went, and %d lines tell what cannot be read, want the job 2 and 2 lines", keys, told.Len())
	}
}

// gateEngine is an engine that takes the gates' answers.
type gateEngine struct {
	worker.Engine // its other methods are not called

	mu        sync.Mutex
	completed []int64
}

func (e *gateEngine) keys() []int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.completed)
}

func (e *gateEngine) Complete(_ context.Context, j *worker.Job, _ string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.completed = append(e.completed, j.Key)
	return nil
}

func (*gateEngine) Throw(context.Context, *worker.Job, worker.BPMNError) error { return nil }
func (*gateEngine) Ended(context.Context, int64) bool                          { return false }

package deadletter_test

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/clock"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

const (
	tiss        = "tiss-submission"
	badPassword = "LoginInvalido: senha incorreta para o usuario 4711"
)

func claim(n int) string { return fmt.Sprintf("CLM-%03d-%d", n%7, n) }

// fixture is a journal and its services in a bubble, with runners whose decisions take long or fail as a test says.
type fixture struct {
	*testkit.Fixture
	t    *testing.T
	logs *observer.ObservedLogs
	log  *zap.Logger

	mu    sync.Mutex
	made  []made
	takes func() time.Duration // how long a decision takes
	fault func(id string) fault
	// refused counts decisions that were refused, and not because their run was stopped.
	refused int
}

// made is a decision that was made.
type made struct {
	at      time.Time
	command deadletter.Command
}

// fault is a decision's error; after means that the decision was made all the same.
type fault struct {
	err   error
	after bool
}

// bubble runs a test in fake time.
func bubble(t *testing.T, test func(f *fixture), options ...testkit.Option) {
	t.Helper()
	testkit.Bubble(t, func(t *testing.T, f *testkit.Fixture) {
		core, logs := observer.New(zap.InfoLevel)
		test(&fixture{Fixture: f, t: t, logs: logs, log: zap.New(core)})
	}, options...)
}

// die makes n dead letters with an error text; their processes wait.
func (f *fixture) die(from, n int, text string, retries int) (letters []string) {
	f.t.Helper()
	for i := from; i < from+n; i++ {
		letters = append(letters, f.DieWaiting(tiss, claim(i), text, retries))
	}
	return letters
}

// begin starts a run on n new dead letters.
func (f *fixture) begin(n int, perMinute int64) (run string) {
	f.t.Helper()
	f.die(0, n, badPassword, 0)
	c := retryAll(journal.DeadLetterFilter{})
	c.PerMinute = perMinute
	return f.StartBulk(c)
}

func retryAll(f journal.DeadLetterFilter) journal.BulkCommand {
	return journal.BulkCommand{Action: journal.BulkRetry, Filter: f, Reason: "senha corrigida", By: "maria"}
}

// decide is deadletter.Service.Decide, unless the test makes it slow or fail.
func (f *fixture) decide(ctx context.Context, c deadletter.Command) (deadletter.Item, error) {
	f.mu.Lock()
	takes, how := f.takes, fault{}
	if f.fault != nil {
		how = f.fault(c.ID)
	}
	f.mu.Unlock()
	if takes != nil {
		clock.Machine{}.Rest(ctx, takes())
	}
	if ctx.Err() != nil || how.err != nil && !how.after {
		return deadletter.Item{}, cmp.Or(ctx.Err(), how.err)
	}
	done, err := f.DeadLetters.Decide(ctx, c)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		if code := journal.CodeOf(err); code != "" && code != journal.InvalidRunState {
			f.refused++
		}
		return done, err
	}
	f.made = append(f.made, made{time.Now(), c})
	return done, how.err
}

// runner is a Runner that works until the test ends, or it is stopped or killed.
type runner struct {
	stop, kill context.CancelFunc
	done       chan struct{}
}

func (f *fixture) runner() *runner {
	stop, halt := context.WithCancel(context.Background())
	hard, kill := context.WithCancel(context.Background())
	r := &runner{halt, kill, make(chan struct{})}
	w := deadletter.Runner{Items: f.Store, Decide: f.decide, Memory: f.Journal, Clock: clock.Machine{}, EngineUp: f.EngineUp, Log: f.log}
	go func() {
		defer close(r.done)
		w.Run(stop, hard)
	}()
	f.t.Cleanup(r.killed)
	return r
}

// killed ends it at once, whatever it does.
func (r *runner) killed() {
	r.stop()
	r.kill()
	<-r.done
}

// decisions returns the decisions so far, in order.
func (f *fixture) decisions() []made {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.made)
}

func (f *fixture) state(id string) journal.BulkRun {
	f.t.Helper()
	run, err := f.DeadLetters.Run(f.t.Context(), id)
	testkit.Must(f.t, err)
	return run
}

func (f *fixture) done(id string) func() bool {
	return func() bool { return f.state(id).State == journal.BulkDone }
}

// within waits until holds returns true, looking ten times a second.
func (f *fixture) within(limit time.Duration, what string, holds func() bool) time.Duration {
	f.t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > limit {
			f.t.Fatalf("after %s still not: %s", limit, what)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began)
}

// steer pauses, resumes or cancels a run.
func (f *fixture) steer(verb journal.BulkVerb, id string) {
	f.t.Helper()
	_, err := f.DeadLetters.Steer(f.t.Context(), id, verb, "maria")
	testkit.Must(f.t, err)
}

func (f *fixture) plan(command journal.BulkCommand) deadletter.Plan {
	f.t.Helper()
	p, err := f.DeadLetters.Plan(f.t.Context(), command)
	testkit.Must(f.t, err)
	return p
}

// said returns how many log lines have an event.
func (f *fixture) said(event string) int {
	return f.logs.FilterField(zap.String("event", event)).Len()
}

// most returns the greatest number of decisions in any span of that length.
func most(all []made, span time.Duration) int {
	n, first := 0, 0
	for i := range all {
		for all[i].at.Sub(all[first].at) >= span {
			first++
		}
		n = max(n, i-first+1)
	}
	return n
}

// once fails if a dead letter was decided twice, or if a second decision was not refused.
func (f *fixture) once() {
	f.t.Helper()
	want(f.t, "refused", f.refused, 0)
	seen := map[string]bool{}
	for _, m := range f.decisions() {
		if seen[m.command.ID] {
			f.t.Errorf("%s was decided twice", m.command.ID)
		}
		seen[m.command.ID] = true
	}
}

// refused fails unless err is a refusal with that code, in one line.
func refused(t *testing.T, what string, err error, code journal.Code) *journal.Refusal {
	t.Helper()
	r := journal.RefusalOf(err)
	if r == nil || r.Code != code || r.Message == "" || strings.Contains(r.Message, "\n") {
		t.Fatalf("%s: %v, want one line of the refusal %s", what, err, code)
	}
	return r
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

package scenarios

import (
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"golang.org/x/sync/errgroup"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/engine"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/zeebe"
)

// How workers and commands reach the engine.
const byGRPC, byREST = "gRPC", "REST"

// scenario is one on an engine of its own.
type scenario struct {
	t *testing.T
	pb.GatewayClient
	protocol string
	history  *history
	clock    clock         // the engine's, and its workers'
	reach    zeebe.Options // how portals reach the engine
	begun    time.Time     // by the clock
	keys     []int64       // of its instances
	worker   *process      // the newest
	settle   func()        // returns when nothing happens any more; nil where nobody can tell
	// jobTimeout of the portals.
	jobTimeout time.Duration
}

// clock is the one that engine and workers share.
type clock interface {
	Now() time.Time
	// MoveTo moves it forward to an instant, and does nothing where that has passed.
	MoveTo(instant time.Time)
}

func newHistory() *history {
	return &history{instances: map[int64]*instance{}, jobs: map[int64]*job{}, locals: map[int64]map[string]string{}}
}

// deploy deploys the product's models and one of another author.
func (s *scenario) deploy() {
	s.t.Helper()
	testkit.Must(s.t, engine.Deploy(s.t.Context(), s, "testdata/unmapped.bpmn"))
}

// tell shows what became of the instances that have not ended, where the scenario failed.
func (s *scenario) tell() {
	if !s.t.Failed() {
		return
	}
	const most = 10
	shown := 0
	s.history.look(func() {
		for _, key := range s.keys {
			if i := s.history.instances[key]; i != nil && !i.over() && shown < most {
				s.t.Log(i.describe())
				shown++
			}
		}
	})
}

// create starts an instance.
func (s *scenario) create(processID string, variables map[string]any) int64 {
	s.t.Helper()
	key, err := s.start(processID, variables)
	testkit.Must(s.t, err)
	s.keys = append(s.keys, key)
	return key
}

// start starts an instance, also while the engine is too busy to take it.
func (s *scenario) start(processID string, variables map[string]any) (key int64, err error) {
	return engine.CreateInstance(s.t.Context(), s,
		&pb.CreateProcessInstanceRequest{BpmnProcessId: processID, Version: -1, Variables: jsonOf(variables)})
}

// createAll starts n instances, several at a time.
func (s *scenario) createAll(processID string, n int, variables func(n int) map[string]any) []int64 {
	s.t.Helper()
	keys := make([]int64, n)
	var running errgroup.Group
	running.SetLimit(8)
	for i := range n {
		running.Go(func() (err error) {
			keys[i], err = s.start(processID, variables(i))
			return err
		})
	}
	testkit.Must(s.t, running.Wait())
	s.keys = append(s.keys, keys...)
	return keys
}

// submit starts SUB_06 for a claim. extra are further variables.
func (s *scenario) submit(claimID string, c claim, extra map[string]any) int64 {
	s.t.Helper()
	return s.run(submissions, claimID, c, extra)
}

// portalOf is a destination of a claim's own: what fails at that of many holds them all.
func portalOf(claimID string) string {
	return fmt.Sprintf("portal-%08x", crc32.ChecksumIEEE([]byte(claimID)))
}

// claimID is an id of the scenario.
func (s *scenario) claimID(n int) string { return s.id("CLM", n) }

// id has few digits in a row: many may look like the number of a card, which is taken out of events.
func (s *scenario) id(kind string, n int) string {
	return fmt.Sprintf("%s-%s-%03d", kind, strings.ReplaceAll(s.t.Name(), "/", "-"), n)
}

// await waits until the engine has done something.
func (s *scenario) await(what string, met func() bool) {
	s.t.Helper()
	wait.Until(s.t, what, func() (so bool) {
		s.history.look(func() { so = met() })
		return so
	})
}

// until waits until something holds that nobody tells of, or fails with what there was instead. In a bubble it holds when
// nothing happens any more.
func (s *scenario) until(what string, holds func() bool, last func() string) {
	s.t.Helper()
	if s.settle == nil {
		wait.Until(s.t, what, holds, last)
		return
	}
	if s.settle(); !holds() {
		s.t.Fatalf("not seen: %s; there was: %s", what, last())
	}
}

// all reports whether something is true of each instance; the history is held.
func (s *scenario) all(keys []int64, met func(*instance) bool) bool {
	for _, key := range keys {
		i := s.history.instances[key]
		if i == nil || !met(i) {
			return false
		}
	}
	return true
}

func (s *scenario) awaitAll(keys []int64, what string, met func(*instance) bool) {
	s.t.Helper()
	s.await(what, func() bool { return s.all(keys, met) })
}

func (s *scenario) awaitEnded(keys ...int64) {
	s.t.Helper()
	s.awaitAll(keys, "the instances to end", (*instance).over)
}

// instance is how the engine has an instance now.
func (s *scenario) instance(key int64) (i instance) {
	s.t.Helper()
	s.history.look(func() {
		if s.history.instances[key] == nil {
			s.t.Fatalf("the engine has no instance %d", key)
		}
		i = s.history.instances[key].clone()
	})
	return i
}

// advanceTo moves the clock to an instant when everybody is at rest: a job in somebody's hands would time out.
func (s *scenario) advanceTo(instant time.Time) {
	s.t.Helper()
	s.awaitAll(s.keys, "all processes to be at rest", func(i *instance) bool { return i.over() || i.atRest() })
	s.clock.MoveTo(instant)
}

// fire moves the clock to where the newest timer of each instance fires, by way of all that is due before, and waits until
// it has, not before its time.
func (s *scenario) fire(keys ...int64) {
	s.t.Helper()
	var last time.Time
	timers := make(map[int64]int)
	for _, key := range keys {
		i := s.instance(key)
		timers[key] = len(i.timers) - 1
		if due := i.timers[timers[key]].due; due.After(last) {
			last = due
		}
	}
	s.advanceTo(last)
	s.awaitAll(keys, "the timer to fire", func(i *instance) bool { return !i.timers[timers[i.key]].triggered.IsZero() })
	for _, key := range keys {
		if x := s.instance(key).timers[timers[key]]; x.triggered.Before(x.due) {
			s.t.Errorf("the timer due at %v fired at %v", x.due, x.triggered)
		}
	}
}

// expectVariables holds variables, as JSON, against what they should be.
func (s *scenario) expectVariables(i instance, want map[string]string) {
	s.t.Helper()
	s.expectKnown(fmt.Sprintf("the process %d", i.key), i.variables, want)
}

func (s *scenario) expectKnown(whose string, variables, want map[string]string) {
	s.t.Helper()
	for name, value := range want {
		if got, there := variables[name]; !there || got != value {
			s.t.Errorf("%s has %s %q (there: %v), expected %s", whose, name, got, there, value)
		}
	}
}

// done adds the scenario's line to what is printed at the end.
func (s *scenario) done(what, figures string, args ...any) {
	harness.Report(s.t, "e2e  %-4s %-34s %s", s.protocol, what, fmt.Sprintf(figures, args...))
}

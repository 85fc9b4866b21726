package scenarios

import (
	"context"
	"fmt"
	"hash/crc32"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"golang.org/x/sync/errgroup"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/engine"
	"retry-worker/internal/testkit"
)

// How workers and commands reach the engine of a fixture; also the names of those for scenarios side by side.
const byGRPC, byREST = "gRPC", "REST"

// scenario is one on a fixture.
type scenario struct {
	*fixture
	t     *testing.T
	begun time.Time // by the fixture's clock
	real  time.Time // the same by this machine's
	keys  []int64   // of its instances
}

// eachProtocol plays a scenario by each protocol, beside others.
func eachProtocol(t *testing.T, play func(*scenario)) {
	t.Parallel()
	for _, protocol := range []string{byGRPC, byREST} {
		t.Run(protocol, func(t *testing.T) { play(begin(t, protocol)) })
	}
}

// begin begins a scenario by that protocol, beside others.
func begin(t *testing.T, protocol string) *scenario {
	t.Parallel()
	f := openFixture(t, protocol)
	f.provide(t, true)
	return newScenario(t, f)
}

// beginAlone begins a scenario with workers of its own, on the engine of that name, which it has to itself meanwhile.
func beginAlone(t *testing.T, name string) *scenario {
	t.Parallel()
	f := openFixture(t, name)
	f.alone.Lock()
	t.Cleanup(f.alone.Unlock)
	f.provide(t, false)
	return newScenario(t, f)
}

// beginFaults is beginAlone for a scenario in which jobs are lost to their time-outs, which are short therefore.
func beginFaults(t *testing.T, name string) *scenario {
	s := beginAlone(t, name)
	s.jobTimeout = 10 * time.Second
	return s
}

func newScenario(t *testing.T, f *fixture) *scenario {
	t.Helper()
	s := &scenario{fixture: f, t: t, begun: f.clock.Now(), real: time.Now()}
	f.join()
	t.Cleanup(func() {
		s.clear()
		f.leave()
	})
	return s
}

// clear ends the instances that have not ended, and shows what became of them where the scenario failed.
func (s *scenario) clear() {
	if s.t.Failed() {
		s.t.Logf("the engine said last: %s", s.LastLine())
		if s.worker != nil {
			s.t.Logf("the worker said last: %s", s.worker.LastLine())
		}
	}
	const most = 10
	var left []int64
	s.history.Lock()
	for _, key := range s.keys {
		if i := s.history.instances[key]; i != nil && !i.over() {
			if left = append(left, key); len(left) <= most && s.t.Failed() {
				s.t.Log(i.describe())
			}
		}
	}
	s.history.Unlock()
	for _, key := range left { // one may have ended meanwhile
		_, _ = s.CancelProcessInstance(context.Background(), &pb.CancelProcessInstanceRequest{ProcessInstanceKey: key})
	}
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
	return engine.CreateInstance(s.t.Context(), s, &pb.CreateProcessInstanceRequest{BpmnProcessId: processID, Version: -1, Variables: jsonOf(variables)})
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
func (s *scenario) submit(claimID any, c claim, extra map[string]any) int64 {
	s.t.Helper()
	return s.create("SUB_06", submission(claimID, c, extra))
}

func submission(claimID any, c claim, extra map[string]any) map[string]any {
	variables := map[string]any{"claimId": claimID, "scenario": c, "operadora": portalOf(claimID)}
	maps.Copy(variables, extra)
	if claimID == nil {
		delete(variables, "claimId")
	}
	return variables
}

// portalOf is a destination of a claim's own: what fails at that of many holds them all.
func portalOf(claimID any) string {
	return fmt.Sprintf("portal-%08x", crc32.ChecksumIEEE([]byte(fmt.Sprint(claimID))))
}

// claimID is an id that no other scenario has.
func (s *scenario) claimID(n int) string { return s.id("CLM", n) }

// id has few digits in a row: many may look like the number of a card, which is taken out of events.
func (s *scenario) id(kind string, n int) string {
	return fmt.Sprintf("%s-%s-%s-%03d", kind, strings.ReplaceAll(s.t.Name(), "/", "-"), strconv.FormatInt(s.begun.Unix(), 36), n)
}

// await waits until the engine has done something.
func (s *scenario) await(what string, met func() bool) {
	s.t.Helper()
	s.history.Await(s.t, what, met)
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
func (s *scenario) instance(key int64) instance {
	s.t.Helper()
	s.history.Lock()
	defer s.history.Unlock()
	i := s.history.instances[key]
	if i == nil {
		s.t.Fatalf("the engine has no instance %d", key)
	}
	return i.clone()
}

// advanceTo moves the clock to an instant, when all scenarios beside this one wait for theirs.
func (s *scenario) advanceTo(instant time.Time) {
	s.t.Helper()
	testkit.Must(s.t, s.timeline.wait(instant))
}

// climb moves the clock to where the n-th timer (from 0) of each instance fires, and waits until it has, not before its time.
func (s *scenario) climb(keys []int64, n int) {
	s.t.Helper()
	s.fires(keys, func(*instance) int { return n })
}

// fire is climb for the newest timer of each instance.
func (s *scenario) fire(keys ...int64) {
	s.t.Helper()
	s.fires(keys, func(i *instance) int { return len(i.timers) - 1 })
}

func (s *scenario) fires(keys []int64, which func(*instance) int) {
	s.t.Helper()
	var last time.Time
	timers := make(map[int64]int)
	for _, key := range keys {
		i := s.instance(key)
		timers[key] = which(&i)
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
	harness.Report(s.t, "e2e  %-4s %-34s %s, %.1f s", s.protocol, what, fmt.Sprintf(figures, args...), time.Since(s.real).Seconds())
}

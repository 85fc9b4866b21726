package scenarios

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/engine"
	"retry-worker/e2e/harness/nats"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

//go:embed testdata
var testdata embed.FS

// fixture is an engine that scenarios share until all have ended, with what they need to look at it. Workers reach it by one
// protocol.
type fixture struct {
	*engine.Engine
	pb.GatewayClient
	protocol string
	dir      string
	history  *history
	clock    *engine.Clock // the engine's, and its workers'
	conn     *grpc.ClientConn
	follow   func() error // ends the history
	timeline

	prepare  sync.Mutex // held while what follows is made
	deployed bool       // the models
	// Of the scenarios that run side by side:
	worker *process
	queue  *nats.Server // where its events go
	portal *portal

	jobTimeout time.Duration // of the portal's jobs

	alone     sync.Mutex // held by a scenario with a worker of its own
	restarted bool       // the engine was, and counts anew
}

// fixtures by their names, each started once.
var fixtures sync.Map

// openFixture starts an engine, once for each name, with nothing deployed.
func openFixture(t *testing.T, name string) *fixture {
	t.Helper()
	harness.SkipIfShort(t)
	start, _ := fixtures.LoadOrStore(name, sync.OnceValues(func() (*fixture, error) { return startFixture(name) }))
	f, err := start.(func() (*fixture, error))()
	testkit.Must(t, err)
	return f
}

func startFixture(name string) (*fixture, error) {
	h := &history{instances: map[int64]*instance{}, jobs: map[int64]*job{}, locals: map[int64]map[string]string{}}
	f := &fixture{protocol: byREST, history: h, jobTimeout: time.Minute}
	if name == byGRPC || name == "portal" {
		f.protocol = byGRPC
	}
	shape := "8.8"
	if name == "waits" {
		shape = "8.6"
	}
	ctx, err := context.Background(), error(nil)
	if f.dir, err = os.MkdirTemp("", "scenarios-"); err != nil {
		return nil, err
	}
	if f.Engine, err = engine.Start(ctx, "--shape="+shape); err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(ctx)
	var follow errgroup.Group
	follow.Go(func() error { return f.Follow(following, h.take) })
	f.follow = func() error {
		stop()
		return follow.Wait()
	}
	harness.AtEnd(f.close)
	f.timeline.move = f.moveTo
	if f.conn, err = grpc.NewClient(f.GatewayAddress(), grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		return nil, err
	}
	f.GatewayClient = pb.NewGatewayClient(f.conn)
	f.clock, err = f.ShareClock(ctx, filepath.Join(f.dir, "clock"))
	return f, err
}

// provide deploys the models and, where withWorker, starts the worker, portal and people of scenarios that run side by side.
func (f *fixture) provide(t *testing.T, withWorker bool) {
	t.Helper()
	f.prepare.Lock()
	defer f.prepare.Unlock()
	if !f.deployed {
		testkit.Must(t, engine.Deploy(t.Context(), f, "testdata/witness.bpmn", "testdata/unmapped.bpmn", "testdata/uncaught.bpmn", "testdata/input_mapped.bpmn",
			"testdata/unknown_policy.bpmn", "testdata/no_retry.bpmn"))
		f.deployed = true
	}
	if !withWorker || f.portal != nil {
		return
	}
	var err error
	f.queue, err = nats.Start(context.Background(), nats.Settings{Dir: filepath.Join(f.dir, "queue")})
	testkit.Must(t, err)
	name := "worker-" + f.protocol
	settings := f.settings(name, "RETRY_WORKER_EVENTS_URL="+f.queue.URL(), "RETRY_WORKER_JOB_TIMEOUT="+f.jobTimeout.String())
	f.worker = &process{harness.RunWorker(t, harness.BinaryWithClock(t), settings, nil), name}
	f.portal, err = f.startPortal(f.worker, submitClaim, sendMessage, runJob, checkDependencies, runQueuedJob)
	testkit.Must(t, err)
}

// restart the engine, with its clock where it was.
func (f *fixture) restart(ctx context.Context) error {
	f.restarted = true
	return f.clock.Restart(ctx)
}

// close ends everything, and holds the engine's own counters against its record before.
func (f *fixture) close() error {
	ctx := context.Background()
	var all error
	if f.portal != nil {
		all = errors.Join(f.portal.close(), f.worker.Stop(ctx, harness.StopTime), f.queue.Stop(ctx))
	}
	return errors.Join(all, f.expectCounters(ctx), f.follow(), f.conn.Close(), f.Stop(ctx), f.clock.Close(), os.RemoveAll(f.dir))
}

// expectCounters holds the engine's own counters against its record of all scenarios.
func (f *fixture) expectCounters(ctx context.Context) error {
	if f.restarted {
		return nil
	}
	want := make(counts)
	f.history.Lock()
	for _, i := range f.history.instances {
		i.countInto(want, true)
	}
	f.history.Unlock()
	for deadline := time.Now().Add(wait.Limit); ; time.Sleep(askEvery) { // they lag a moment behind
		c, err := f.Counters(ctx)
		if err != nil {
			return err
		}
		wrong := countsOf(c).differences(want)
		if wrong == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the counters of the engine by %s: %s", f.protocol, wrong)
		}
	}
}

// timeline moves a clock that scenarios share. It is moved when all of them wait for an instant, to the earliest.
type timeline struct {
	move func(time.Time) error

	mu      sync.Mutex
	running int // scenarios
	waiting []waiter
}

type waiter struct {
	instant time.Time
	reached chan error
}

// join counts a scenario, until leave.
func (l *timeline) join() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running++
}

func (l *timeline) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	l.turn()
}

// wait returns when the clock was moved to an instant, or could not be.
func (l *timeline) wait(instant time.Time) error {
	w := waiter{instant, make(chan error, 1)}
	l.mu.Lock()
	l.waiting = append(l.waiting, w)
	l.turn()
	l.mu.Unlock()
	return <-w.reached
}

// turn moves the clock where all scenarios wait; mu is held.
func (l *timeline) turn() {
	if len(l.waiting) == 0 || len(l.waiting) < l.running {
		return
	}
	earliest := l.waiting[0].instant
	for _, w := range l.waiting {
		if w.instant.Before(earliest) {
			earliest = w.instant
		}
	}
	err := l.move(earliest)
	var later []waiter
	for _, w := range l.waiting {
		if w.instant.After(earliest) && err == nil {
			later = append(later, w)
		} else {
			w.reached <- err
		}
	}
	l.waiting = later
}

// moveTo moves the clock when everybody is at rest: a job in somebody's hands would time out.
func (f *fixture) moveTo(instant time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait.Limit)
	defer cancel()
	busy := ""
	if !f.history.Until(ctx, func() bool {
		for _, i := range f.history.instances {
			if !i.over() && !i.atRest() {
				busy = i.describe()
				return false
			}
		}
		return true
	}) {
		return fmt.Errorf("waited %v for all processes to be at rest; one is not: %s", wait.Limit, busy)
	}
	return f.clock.MoveTo(ctx, instant)
}

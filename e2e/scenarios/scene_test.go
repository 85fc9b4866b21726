package scenarios

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"retry-worker/bpmn"
	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/nats"
	"retry-worker/e2e/harness/zeebe"
)

//go:embed testdata
var testdata embed.FS

// site is a broker that scenarios share, one after the other, with what they need to look at it.
type site struct {
	*zeebe.Broker
	pb.GatewayClient
	version string
	history *history
	worker  *process     // of the light scenarios; nil where each starts its own
	queue   *nats.Server // where its events go; nil where nobody listens
	dir     string
	conn    *grpc.ClientConn
}

var sites struct {
	sync.Mutex
	open map[string]*site
}

// openSite starts a broker with everything deployed, once for each name.
func openSite(t *testing.T, name, version string, withWorker bool) *site {
	t.Helper()
	sites.Lock()
	defer sites.Unlock()
	if s := sites.open[name]; s != nil {
		return s
	}
	s := startSite(t, version)
	if sites.open == nil {
		sites.open = make(map[string]*site)
		harness.AtEnd(closeSites)
	}
	sites.open[name] = s
	s.deploy(t)
	if withWorker {
		var err error
		if s.queue, err = nats.Start(t.Context(), nats.Settings{Dir: filepath.Join(s.dir, "queue")}); err != nil {
			t.Fatal(err)
		}
		if s.worker, err = startWorker(t, s.dir, s.Broker, "worker-"+version, "RETRY_WORKER_EVENTS_URL="+s.queue.URL()); err != nil {
			t.Fatal(err)
		}
		s.worker.awaitReady(t)
	}
	return s
}

// startSite starts a broker with nothing deployed.
func startSite(t *testing.T, version string) *site {
	t.Helper()
	zeebe.Require(t, version)
	s := &site{version: version, history: newHistory()}
	var err error
	if s.dir, err = os.MkdirTemp("", "scenarios-"); err != nil {
		t.Fatal(err)
	}
	s.Broker, err = zeebe.Start(t.Context(), zeebe.Options{
		Version: version, Env: exporter, Output: s.history,
		Progress: func(p zeebe.Progress) { t.Log(p) },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.conn, err = grpc.NewClient(s.GatewayAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	s.GatewayClient = pb.NewGatewayClient(s.conn)
	return s
}

func (s *site) deploy(t *testing.T) {
	t.Helper()
	var resources []*pb.Resource
	for _, m := range bpmn.Models() {
		resources = append(resources, &pb.Resource{Name: m.Name, Content: m.Content})
	}
	for _, name := range []string{"witness.bpmn", "unmapped.bpmn", "input_mapped.bpmn", "unknown_policy.bpmn", "no_retry.bpmn"} {
		content, err := testdata.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		resources = append(resources, &pb.Resource{Name: name, Content: content})
	}
	if _, err := s.DeployResource(t.Context(), &pb.DeployResourceRequest{Resources: resources}); err != nil {
		t.Fatal(err)
	}
}

func (s *site) close() error {
	ctx := context.Background()
	var err error
	if s.worker != nil {
		err = s.worker.Stop(ctx, stopTime)
	}
	if s.queue != nil {
		err = errors.Join(err, s.queue.Stop(ctx))
	}
	return errors.Join(err, s.conn.Close(), s.Stop(ctx), os.RemoveAll(s.dir))
}

func closeSites() error {
	sites.Lock()
	defer sites.Unlock()
	var all error
	for _, s := range sites.open {
		all = errors.Join(all, s.close())
	}
	return all
}

// scene is one scenario on a site.
type scene struct {
	*site
	t        *testing.T
	hospital *hospital
	before   zeebe.Counters
	begun    time.Time
	first    int64 // position of the last record before it
}

// eachVersion plays a scenario on the shared broker of each version.
func eachVersion(t *testing.T, play func(*scene)) {
	for _, version := range zeebe.Versions {
		t.Run(version, func(t *testing.T) {
			play(begin(t, openSite(t, version, version, true)))
		})
	}
}

// heavyVersion is what the scenarios under load run on, and those of the processes beside SUB_06.
const heavyVersion = "8.6.0"

// beginLight begins a scenario on the shared broker of that version, with the shared worker.
func beginLight(t *testing.T) *scene {
	s := begin(t, openSite(t, heavyVersion, heavyVersion, true))
	s.openHospital(s.worker, sendMessage, runJob, checkDependencies, runQueuedJob)
	return s
}

// beginHeavy begins a scenario under load, on a broker without any worker.
func beginHeavy(t *testing.T) *scene {
	return begin(t, openSite(t, "heavy", heavyVersion, false))
}

func begin(t *testing.T, s *site) *scene {
	t.Helper()
	sc := &scene{site: s, t: t}
	sc.mark()
	t.Cleanup(func() {
		if t.Failed() {
			sc.explain()
			sc.clear()
		}
	})
	return sc
}

// mark is where the scenario begins to count.
func (s *scene) mark() {
	s.t.Helper()
	s.begun, s.before = time.Now(), s.counters()
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	s.first = s.history.last
}

// setClockRight sets the broker's clock to the real time, by a restart where an earlier scenario moved it:
// a worker counts from the real time, and a timer that lies in the broker's past does not wait.
func (s *scene) setClockRight() {
	s.t.Helper()
	s.must(s.ResetTime(s.t.Context()))
	s.mark()
}

// explain shows what became of this scenario's instances.
func (s *scene) explain() {
	s.t.Logf("the broker said last: %s", s.LastLine())
	if s.worker != nil {
		s.t.Logf("the worker said last: %s", s.worker.LastLine())
	}
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	const most = 10
	shown := 0
	for _, i := range s.history.instances {
		if !i.over() && shown < most {
			shown++
			s.t.Log(i.describe())
		}
	}
}

// clear ends what a failed scenario has left, for the sake of the next.
func (s *scene) clear() {
	s.history.mu.Lock()
	var left []int64
	for key, i := range s.history.instances {
		if !i.over() {
			left = append(left, key)
		}
	}
	s.history.mu.Unlock()
	for _, key := range left { // one may have ended meanwhile
		_, _ = s.CancelProcessInstance(context.Background(), &pb.CancelProcessInstanceRequest{ProcessInstanceKey: key})
	}
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// create starts an instance, also while the broker is too busy to take it.
func (s *scene) create(processID string, variables map[string]any) int64 {
	s.t.Helper()
	for deadline := time.Now().Add(enough); ; {
		r, err := s.CreateProcessInstance(s.t.Context(), &pb.CreateProcessInstanceRequest{
			BpmnProcessId: processID, Version: -1, Variables: jsonOf(variables),
		}, grpc.WaitForReady(true))
		if err == nil {
			return r.ProcessInstanceKey
		}
		if status.Code(err) != codes.ResourceExhausted || time.Now().After(deadline) {
			s.t.Fatal(err)
		}
	}
}

// submit starts SUB_06 for a claim. extra are further variables.
func (s *scene) submit(claimID any, c claim, extra map[string]any) int64 {
	s.t.Helper()
	variables := map[string]any{"claimId": claimID, "scenario": c}
	for name, value := range extra {
		variables[name] = value
	}
	if claimID == nil {
		delete(variables, "claimId")
	}
	return s.create("SUB_06", variables)
}

// claimID is an id that no other scenario has.
func (s *scene) claimID(n int) string { return s.id("CLM", n) }

func (s *scene) id(kind string, n int) string {
	return fmt.Sprintf("%s-%s-%d%03d", kind, strings.ReplaceAll(s.t.Name(), "/", "-"), s.begun.Unix(), n)
}

// await waits until the broker has done something.
func (s *scene) await(what string, met func() bool) {
	s.t.Helper()
	s.history.await(s.t, enough, what, met)
}

// all tells whether something is true of each instance; the history is held.
func (s *scene) all(keys []int64, met func(*instance) bool) bool {
	for _, key := range keys {
		i := s.history.instances[key]
		if i == nil || !met(i) {
			return false
		}
	}
	return true
}

func (s *scene) awaitAll(keys []int64, what string, met func(*instance) bool) {
	s.t.Helper()
	s.await(what, func() bool { return s.all(keys, met) })
}

func (s *scene) awaitEnded(keys ...int64) {
	s.t.Helper()
	s.awaitAll(keys, "the instances to end", (*instance).over)
}

// instance is how the broker has an instance now.
func (s *scene) instance(key int64) instance {
	s.t.Helper()
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	i := s.history.instances[key]
	if i == nil {
		s.t.Fatalf("the broker has no instance %d", key)
	}
	shown := *i
	shown.variables = make(map[string]string)
	for name, value := range i.variables {
		shown.variables[name] = value
	}
	return shown
}

// advanceTo moves the broker's clock to an instant. Everybody must be at rest then: a job in somebody's hands would time
// out.
func (s *scene) advanceTo(instant time.Time) {
	s.t.Helper()
	s.await("all processes to be at rest", func() bool {
		for _, i := range s.history.instances {
			if !i.over() && !i.atRest() {
				return false
			}
		}
		return true
	})
	now, err := s.Time(s.t.Context())
	s.must(err)
	if d := instant.Sub(now); d > 0 {
		s.must(s.AddTime(s.t.Context(), d.Truncate(time.Millisecond)+time.Millisecond))
	}
}

// done adds the scenario's line to what is printed at the end.
func (s *scene) done(scenario, figures string, args ...any) {
	if !s.t.Failed() {
		harness.Report(s.t, "e2e  %-6s %-34s %s, %.1f s", s.version, scenario, fmt.Sprintf(figures, args...), time.Since(s.begun).Seconds())
	}
}

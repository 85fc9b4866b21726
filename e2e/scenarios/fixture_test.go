package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/engine"
	core "retry-worker/internal/engine"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/zeebe"
)

// processes is a scenario whose engine and workers are processes.
type processes struct {
	*scenario
	*engine.Engine
	shared *engine.Clock
}

// onProcesses begins a scenario on an empty engine.
func onProcesses(t *testing.T, protocol string) *processes {
	t.Helper()
	t.Parallel()
	harness.SkipIfShort(t)
	e, err := engine.Start(t.Context())
	testkit.Must(t, err)
	shared, err := e.ShareClock(t.Context(), filepath.Join(t.TempDir(), "clock"))
	testkit.Must(t, err)
	conn, err := grpc.NewClient(e.GatewayAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	s := &processes{Engine: e, shared: shared, scenario: &scenario{
		t: t, GatewayClient: pb.NewGatewayClient(conn), protocol: protocol, history: newHistory(),
		clock: movedClock{t, shared}, begun: shared.Now(), jobTimeout: time.Minute, reach: zeebe.Options{Address: e.GatewayAddress(), Plaintext: true},
	}}
	following, stop := context.WithCancel(context.Background())
	followed := make(chan error)
	go func() { followed <- e.Follow(following, s.takeLine) }()
	t.Cleanup(func() {
		s.tell()
		stop()
		for _, err := range []error{<-followed, conn.Close(), e.Stop(context.Background()), shared.Close()} {
			testkit.Must(t, err)
		}
	})
	return s
}

func (s *processes) takeLine(line []byte) {
	var e core.Event
	if err := json.Unmarshal(line, &e); err != nil {
		panic(err) // the engine's follower has read it already
	}
	s.history.take([]core.Event{e})
}

// movedClock is a clock that processes share.
type movedClock struct {
	t *testing.T
	*engine.Clock
}

func (c movedClock) MoveTo(instant time.Time) {
	c.t.Helper()
	testkit.Must(c.t, c.Clock.MoveTo(c.t.Context(), instant))
}

// environment returns the settings by which workers and commands use the scenario's protocol.
func (s *processes) environment() []string {
	if s.protocol == byREST {
		return []string{"RETRY_WORKER_ENGINE=rest", "ZEEBE_REST_ADDRESS=" + s.RESTAddress()}
	}
	return []string{"ZEEBE_ADDRESS=" + s.GatewayAddress(), "ZEEBE_INSECURE_CONNECTION=true"}
}

// serve starts a worker that goes by the engine's clock, with a journal of its own. It is stopped when the test ends.
func (s *processes) serve(name string, settings ...string) *process {
	s.t.Helper()
	settings = append([]string{"RETRY_WORKER_WORKER_NAME=" + name, s.shared.Environment()}, settings...)
	settings = append(settings, s.environment()...)
	settings = harness.Settings(s.GatewayAddress(), s.t.TempDir(), settings...)
	w := harness.StartWorker(s.t, harness.BinaryWithClock(s.t), settings)
	s.worker = &process{API: w.API, Ops: w.Ops, Log: w.Log, kill: w.Kill,
		stop: func() { testkit.Must(s.t, w.Stop(context.Background(), harness.StopTime)) }}
	return s.worker
}

// command runs a command that reads a journal, and fails the test if the command fails.
func (s *processes) command(database string, args ...string) string {
	s.t.Helper()
	out, code := harness.RunCommand(s.t, harness.Binary(s.t), []string{"RETRY_WORKER_DATABASE_URL=" + database}, args...)
	if code != 0 {
		s.t.Fatalf("retry-worker %v: exit status %d\n%s", args, code, out)
	}
	return out
}

// expectCounters compares the engine's counters with its events.
func (s *processes) expectCounters() {
	s.t.Helper()
	want := make(counts)
	s.history.look(func() {
		for _, i := range s.history.instances {
			i.countInto(want, true)
		}
	})
	wrong := ""
	wait.Until(s.t, "the engine's counters to agree with its events", func() bool {
		c, err := s.Counters(s.t.Context())
		testkit.Must(s.t, err)
		wrong = countsOf(c).differences(want)
		return wrong == ""
	}, func() string { return fmt.Sprint(wrong) })
}

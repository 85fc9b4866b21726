package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/engine"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// devEngine is the development engine of this test process, with the processes deployed.
type devEngine struct {
	*engine.Engine
	pb.GatewayClient
	conn  *grpc.ClientConn
	clock *engine.Clock // the engine's, and that of workers which go by it
	alone sync.Mutex    // held by the test that uses it
}

// openEngine starts it at first use. The test has it to itself.
func openEngine(t *testing.T) *devEngine {
	t.Helper()
	harness.SkipIfShort(t)
	e, err := startedEngine()
	testkit.Must(t, err)
	e.alone.Lock()
	t.Cleanup(e.alone.Unlock)
	return e
}

var startedEngine = sync.OnceValues(startEngine)

func startEngine() (*devEngine, error) {
	ctx := context.Background()
	started, err := engine.Start(ctx)
	if err != nil {
		return nil, err
	}
	e := &devEngine{Engine: started}
	e.conn, err = grpc.NewClient(started.GatewayAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err == nil {
		e.GatewayClient = pb.NewGatewayClient(e.conn)
		err = engine.Deploy(ctx, e, "../scenarios/testdata/unmapped.bpmn", "testdata/taken.bpmn") // the first ends with the analysis and maps nothing
	}
	file := filepath.Join(os.TempDir(), fmt.Sprintf("chaos-clock-%d", os.Getpid()))
	if err == nil {
		e.clock, err = e.ShareClock(ctx, file)
	}
	if err != nil {
		return nil, errors.Join(err, started.Stop(ctx))
	}
	harness.AtEnd(func() error {
		return errors.Join(e.conn.Close(), e.clock.Close(), os.Remove(file), e.Stop(context.Background()))
	})
	return e, nil
}

// variables of a process, as JSON.
type variables map[string]json.RawMessage

func (v variables) text(name string) (s string) {
	_ = json.Unmarshal(v[name], &s) // what is no text is empty
	return s
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// start starts a process, also while the engine is too busy to take it.
func (e *devEngine) start(t *testing.T, r *pb.CreateProcessInstanceRequest) int64 {
	t.Helper()
	key, err := engine.CreateInstance(t.Context(), e, r)
	testkit.Must(t, err)
	return key
}

// jobs gives out up to most jobs of a type for so long, waiting a while for the first; what came before an error is returned with it.
func (e *devEngine) jobs(ctx context.Context, jobType string, most int, hold, poll time.Duration) (all []*pb.ActivatedJob, err error) {
	stream, err := e.ActivateJobs(ctx, &pb.ActivateJobsRequest{
		Type: jobType, Worker: "test", MaxJobsToActivate: int32(most), Timeout: hold.Milliseconds(), RequestTimeout: poll.Milliseconds(),
	})
	for err == nil {
		var batch *pb.ActivateJobsResponse
		batch, err = stream.Recv()
		all = append(all, batch.GetJobs()...)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

// counters of the engine, which lag a moment behind: they are waited for until they are as wanted.
func (e *devEngine) expectCounters(t *testing.T, before engine.Counters, want map[string]int) {
	t.Helper()
	var got map[string]int
	wait.Until(t, fmt.Sprintf("the engine's counters to be %v", want), func() bool {
		now, err := e.Counters(t.Context())
		testkit.Must(t, err)
		got = map[string]int{}
		for name := range want {
			got[name] = counted(now, name) - counted(before, name)
		}
		return fmt.Sprint(got) == fmt.Sprint(want)
	})
}

func counted(c engine.Counters, name string) int {
	switch name {
	case "processes completed":
		return c.Elements("PROCESS", "completed")
	case "incidents pending":
		return c.PendingIncidents()
	default: // an action of analyses
		return c.Jobs(worker.AnalyzeRetry, name)
	}
}

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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/zeebe"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// brokerVersion is the one of the issue.
const brokerVersion = "8.5.8"

// broker is the real Zeebe of this test process, with the processes deployed.
type broker struct {
	*zeebe.Broker
	pb.GatewayClient
	conn  *grpc.ClientConn
	clock *zeebe.Clock // the broker's, and that of workers which go by it
	alone sync.Mutex   // held by the test that uses it
}

// openBroker starts it at first use. The test has it to itself.
func openBroker(t *testing.T) *broker {
	t.Helper()
	zeebe.Require(t, brokerVersion)
	b, err := startedBroker()
	testkit.Must(t, err)
	b.alone.Lock()
	t.Cleanup(b.alone.Unlock)
	return b
}

var startedBroker = sync.OnceValues(startBroker)

func startBroker() (*broker, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*wait.Limit) // a start takes a minute and a half where much else runs
	defer cancel()
	started, err := zeebe.Start(ctx, zeebe.Options{Version: brokerVersion})
	if err != nil {
		return nil, err
	}
	b := &broker{Broker: started}
	b.conn, err = grpc.NewClient(started.GatewayAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err == nil {
		b.GatewayClient = pb.NewGatewayClient(b.conn)
		err = zeebe.Deploy(ctx, b, "../scenarios/testdata/unmapped.bpmn", "testdata/taken.bpmn") // the first ends with the analysis and maps nothing
	}
	file := filepath.Join(os.TempDir(), fmt.Sprintf("chaos-clock-%d", os.Getpid()))
	if err == nil {
		b.clock, err = b.ShareClock(ctx, file)
	}
	if err != nil {
		return nil, errors.Join(err, started.Stop(ctx))
	}
	harness.AtEnd(func() error {
		return errors.Join(b.conn.Close(), b.clock.Close(), os.Remove(file), b.Stop(context.Background()))
	})
	return b, nil
}

// variables of a process, as JSON.
type variables map[string]json.RawMessage

func (v variables) text(name string) (s string) {
	_ = json.Unmarshal(v[name], &s) // what is no text is empty
	return s
}

// analysis starts a process that asks for one analysis.
func analysis(claim, problem string, retryCount any) *pb.CreateProcessInstanceRequest {
	given := map[string]any{"analysis": worker.AnalyzeRetry, "claimId": claim, "submissionError": problem, "retryCount": retryCount}
	return &pb.CreateProcessInstanceRequest{BpmnProcessId: "UNMAPPED", Version: -1, Variables: jsonOf(given)}
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// start starts a process, also while the broker is too busy to take it.
func (b *broker) start(t *testing.T, r *pb.CreateProcessInstanceRequest) int64 {
	t.Helper()
	key, err := zeebe.CreateInstance(t.Context(), b, r)
	testkit.Must(t, err)
	return key
}

// jobs gives out up to most jobs of a type for so long, waiting a while for the first; what came before an error is returned with it.
func (b *broker) jobs(ctx context.Context, jobType string, most int, hold, poll time.Duration) (all []*pb.ActivatedJob, err error) {
	stream, err := b.ActivateJobs(ctx, &pb.ActivateJobsRequest{
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

// ends starts a process and returns the variables that it ends with.
func (b *broker) ends(ctx context.Context, r *pb.CreateProcessInstanceRequest) (instance int64, ended variables, err error) {
	for {
		result, err := b.CreateProcessInstanceWithResult(ctx, &pb.CreateProcessInstanceWithResultRequest{
			Request: r, RequestTimeout: wait.Limit.Milliseconds(),
		}, grpc.WaitForReady(true))
		switch {
		case err == nil:
			return result.ProcessInstanceKey, ended, json.Unmarshal([]byte(result.Variables), &ended)
		case status.Code(err) != codes.ResourceExhausted || ctx.Err() != nil:
			return 0, nil, err
		}
	}
}

// counters of the broker, which lag a moment behind: they are waited for until they are as wanted.
func (b *broker) expectCounters(t *testing.T, before zeebe.Counters, want map[string]int) {
	t.Helper()
	var got map[string]int
	wait.Until(t, fmt.Sprintf("the broker's counters to be %v", want), func() bool {
		now, err := b.Counters(t.Context())
		testkit.Must(t, err)
		got = map[string]int{}
		for name := range want {
			got[name] = counted(now, name) - counted(before, name)
		}
		return fmt.Sprint(got) == fmt.Sprint(want)
	})
}

func counted(c zeebe.Counters, name string) int {
	switch name {
	case "processes completed":
		return c.Elements("PROCESS", "completed")
	case "timers triggered":
		return c.Elements("INTERMEDIATE_CATCH_EVENT", "completed")
	case "incidents pending":
		return c.PendingIncidents()
	default: // an action of analyses
		return c.Jobs(worker.AnalyzeRetry, name)
	}
}

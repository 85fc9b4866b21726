package zeebe_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/zeebe"
	"retry-worker/internal/testkit/wait"
)

//go:embed testdata/wait_then_work.bpmn
var waitThenWork []byte

// process is its id: a timer, then a job.
const process = "WAIT_THEN_WORK"

func TestMain(m *testing.M) { harness.Main(m) }

// gateway is a broker as a test uses it.
type gateway struct {
	t *testing.T
	*zeebe.Broker
	pb.GatewayClient
}

func start(t *testing.T, version string) gateway {
	t.Helper()
	zeebe.Require(t, version)
	b, err := zeebe.Start(t.Context(), zeebe.Options{Version: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient(b.GatewayAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	g := gateway{t, b, pb.NewGatewayClient(conn)}
	_, err = g.DeployResource(t.Context(), &pb.DeployResourceRequest{
		Resources: []*pb.Resource{{Name: "wait_then_work.bpmn", Content: waitThenWork}},
	})
	g.must(err)
	return g
}

// create starts an instance that waits for pause (ISO 8601) and then has a job of the returned type.
func (g gateway) create(pause string) (jobType string) {
	g.t.Helper()
	jobType = fmt.Sprintf("job-%d", time.Now().UnixNano())
	_, err := g.CreateProcessInstance(g.t.Context(), &pb.CreateProcessInstanceRequest{
		BpmnProcessId: process, Version: -1, Variables: fmt.Sprintf(`{"pause":%q,"jobType":%q}`, pause, jobType),
	})
	g.must(err)
	return jobType
}

// job waits for a job of a type, at most the given time; nil where none came.
func (g gateway) job(jobType string, wait time.Duration) *pb.ActivatedJob {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), wait+10*time.Second)
	defer cancel()
	for deadline := time.Now().Add(wait); ; {
		stream, err := g.ActivateJobs(ctx, &pb.ActivateJobsRequest{
			Type: jobType, Worker: "test", MaxJobsToActivate: 1, Timeout: 1000,
			RequestTimeout: max(time.Until(deadline), time.Millisecond).Milliseconds(),
		})
		var r *pb.ActivateJobsResponse
		if err == nil {
			r, err = stream.Recv()
		}
		if err == nil && len(r.Jobs) > 0 {
			return r.Jobs[0]
		}
		if time.Now().After(deadline) {
			return nil
		}
		// A gateway that has just started may refuse the first calls.
		if err != nil && !errors.Is(err, io.EOF) && status.Code(err) != codes.Unavailable {
			g.t.Fatal(err)
		}
	}
}

func (g gateway) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// TestBroker: time is moved and set right again, what was there is there after a kill, and a paused broker answers nobody.
func TestBroker(t *testing.T) {
	for _, version := range zeebe.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g := start(t, version)
			topology, err := g.Topology(t.Context(), &pb.TopologyRequest{})
			g.must(err)
			if topology.GatewayVersion != version {
				t.Errorf("the version is %s", topology.GatewayVersion)
			}
			g.probes()
			soon, late := g.create("PT1H"), g.create("PT2H")
			g.must(g.AddTime(t.Context(), time.Hour+time.Minute))
			if g.job(soon, wait.Limit) == nil || g.job(late, time.Millisecond) != nil {
				t.Error("of the timers of one hour and two, the first alone was to fire")
			}
			g.Kill()
			g.must(g.Restart(t.Context()))
			if now, err := g.Time(t.Context()); err != nil || time.Since(now).Abs() > time.Minute {
				t.Errorf("after a restart the broker's clock says %v (%v)", now, err)
			}
			g.must(g.AddTime(t.Context(), 3*time.Hour))
			if g.job(late, wait.Limit) == nil {
				t.Error("an instance did not outlive a kill")
			}
			g.must(g.Pause())
			wait.Until(t, "a paused broker to answer nobody", func() bool { // its threads stop one after the other
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				_, err := g.Topology(ctx, &pb.TopologyRequest{})
				return status.Code(err) == codes.DeadlineExceeded
			})
			g.must(g.Resume())
			if g.job(g.create("PT0S"), wait.Limit) == nil {
				t.Error("a broker that goes on gives no job")
			}
			wait.Until(t, "the job in the counters", func() bool {
				c, err := g.Counters(t.Context())
				return err == nil && c.Elements("PROCESS", "activated") == 1 && c.Jobs("", "created") == 2 && c.PendingIncidents() == 0
			})
		})
	}
}

// probes holds what the worker's check relies on: the protocol has no query for a process, and its probe creates nothing; a tenant
// of a broker without tenants is refused.
func (g gateway) probes() {
	g.t.Helper()
	for id, want := range map[string]codes.Code{process: codes.InvalidArgument, "NEVER_DEPLOYED": codes.NotFound} {
		_, err := g.CreateProcessInstance(g.t.Context(), &pb.CreateProcessInstanceRequest{
			BpmnProcessId: id, Version: -1,
			StartInstructions: []*pb.ProcessInstanceCreationStartInstruction{{ElementId: "no-such-element"}},
		})
		if status.Code(err) != want {
			g.t.Errorf("a probe of %s answers %v, want %v", id, err, want)
		}
	}
	if c, err := g.Counters(g.t.Context()); err != nil || c.Elements("", "activated") != 0 {
		g.t.Errorf("probes created something: %v", err)
	}
	stream, err := g.ActivateJobs(g.t.Context(), &pb.ActivateJobsRequest{
		Type: "no-such-type", Worker: "test", MaxJobsToActivate: 1, Timeout: 1000, RequestTimeout: -1, TenantIds: []string{"foo"},
	})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.InvalidArgument {
		g.t.Errorf("a tenant that there is not answers %v", err)
	}
}

func TestAVersionThatIsNotKnownIsRefused(t *testing.T) {
	if _, err := zeebe.Start(t.Context(), zeebe.Options{Version: "7"}); err == nil || !strings.Contains(err.Error(), "expected one of 8.5.8") {
		t.Errorf("says %v", err)
	}
}

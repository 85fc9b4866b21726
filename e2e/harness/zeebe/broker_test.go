package zeebe_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
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
)

//go:embed testdata/wait_then_work.bpmn
var waitThenWork []byte

const (
	process = "WAIT_THEN_WORK"
	// enough for anything that is expected to happen soon.
	enough = time.Minute
)

// shared brokers of this test binary, one of each version, started when the first test asks.
var shared struct {
	sync.Mutex
	brokers map[string]*zeebe.Broker
}

func TestMain(m *testing.M) {
	code := m.Run()
	for version, b := range shared.brokers {
		if err := b.Stop(context.Background()); err != nil {
			fmt.Fprintf(os.Stderr, "stop Zeebe %s: %v\n", version, err)
			code = 1
		}
	}
	os.Exit(code)
}

// gateway is a broker as a test uses it.
type gateway struct {
	t *testing.T
	*zeebe.Broker
	pb.GatewayClient
}

func broker(t *testing.T, version string) gateway {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: needs a real broker")
	}
	shared.Lock()
	defer shared.Unlock()
	b := shared.brokers[version]
	if b == nil {
		b = start(t, zeebe.Options{Version: version})
		if shared.brokers == nil {
			shared.brokers = map[string]*zeebe.Broker{}
		}
		shared.brokers[version] = b
	}
	select {
	case <-b.Done(): // of an earlier test's failure
		if err := b.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	default:
	}
	return dial(t, b)
}

func start(t *testing.T, o zeebe.Options) *zeebe.Broker {
	t.Helper()
	o.Progress = func(p zeebe.Progress) { t.Log(p) }
	b, err := zeebe.Start(t.Context(), o)
	if missing, ok := errors.AsType[harness.Missing](err); ok {
		t.Skipf("NOT RUN: tests on a real broker: %v", missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func dial(t *testing.T, b *zeebe.Broker) gateway {
	t.Helper()
	conn, err := grpc.NewClient(b.GatewayAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	g := gateway{t, b, pb.NewGatewayClient(conn)}
	_, err = g.DeployResource(t.Context(), &pb.DeployResourceRequest{
		Resources: []*pb.Resource{{Name: "wait_then_work.bpmn", Content: waitThenWork}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// create starts an instance that waits for pause (ISO 8601) and then has a job of the returned type.
func (g gateway) create(pause string) (jobType string) {
	g.t.Helper()
	jobType = fmt.Sprintf("%s-%d", strings.ReplaceAll(g.t.Name(), "/", "-"), time.Now().UnixNano())
	_, err := g.CreateProcessInstance(g.t.Context(), &pb.CreateProcessInstanceRequest{
		BpmnProcessId: process, Version: -1, Variables: fmt.Sprintf(`{"pause":%q,"jobType":%q}`, pause, jobType),
	})
	if err != nil {
		g.t.Fatal(err)
	}
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

func eachVersion(t *testing.T, test func(t *testing.T, g gateway)) {
	for _, version := range zeebe.Versions {
		t.Run(version, func(t *testing.T) { test(t, broker(t, version)) })
	}
}

func TestBrokerIsTheVersionAskedFor(t *testing.T) {
	eachVersion(t, func(t *testing.T, g gateway) {
		r, err := g.Topology(t.Context(), &pb.TopologyRequest{})
		g.must(err)
		if want := strings.TrimPrefix(t.Name(), "TestBrokerIsTheVersionAskedFor/"); r.GatewayVersion != want || r.PartitionsCount != 1 {
			t.Errorf("gateway %s with %d partitions, expected %s with 1", r.GatewayVersion, r.PartitionsCount, want)
		}
	})
}

func TestTimeTravelFiresTimers(t *testing.T) {
	eachVersion(t, func(t *testing.T, g gateway) {
		defer func() { g.must(g.ResetTime(context.Background())) }()
		jobType := g.create("PT1H")
		g.must(g.AddTime(t.Context(), time.Hour))
		if now, err := g.Time(t.Context()); err != nil || time.Until(now) < 59*time.Minute {
			t.Errorf("the broker's clock is %v (%v), expected an hour ahead of %v", now, err, time.Now())
		}
		if g.job(jobType, enough) == nil {
			t.Fatal("the timer of an hour did not fire after the clock was moved by an hour")
		}
	})
}

// A timer of minutes, made after the clock went back, must wait while one of seconds fires; and so
// must a job's time-out.
func TestTimersAndTimeOutsRunAfterReset(t *testing.T) {
	eachVersion(t, func(t *testing.T, g gateway) {
		g.must(g.AddTime(t.Context(), 24*time.Hour))
		if g.job(g.create("PT1S"), enough) == nil {
			t.Fatal("a timer of a second did not fire while the clock was a day ahead")
		}
		pid := g.PID()
		g.must(g.ResetTime(t.Context()))
		if g.PID() == pid {
			t.Error("the broker was not restarted")
		}
		if now, err := g.Time(t.Context()); err != nil || time.Since(now).Abs() > time.Minute {
			t.Errorf("after the reset the broker's clock is %v (%v), expected the real time %v", now, err, time.Now())
		}
		long, short := g.create("PT10M"), g.create("PT2S")
		if g.job(short, enough) == nil {
			t.Fatal("a timer of two seconds did not fire after the reset")
		}
		if g.job(short, enough) == nil {
			t.Fatal("a job was not given out again after its time-out of a second")
		}
		if g.job(long, time.Millisecond) != nil {
			t.Fatal("a timer of ten minutes fired at once after the reset")
		}
		g.must(g.AddTime(t.Context(), 10*time.Minute))
		if g.job(long, enough) == nil {
			t.Fatal("the timer of ten minutes did not fire when its time came")
		}
		g.must(g.ResetTime(t.Context()))
		pid = g.PID()
		g.must(g.ResetTime(t.Context()))
		if g.PID() != pid {
			t.Error("a broker on the real time was restarted")
		}
	})
}

func TestKilledBrokerKeepsItsInstances(t *testing.T) {
	eachVersion(t, func(t *testing.T, g gateway) {
		jobType := g.create("PT5M")
		address, pid := g.GatewayAddress(), g.PID()
		g.Kill()
		if alive(pid) {
			t.Fatalf("process %d lives after Kill", pid)
		}
		g.must(g.Restart(t.Context()))
		if g.GatewayAddress() != address {
			t.Errorf("the gateway moved from %s to %s", address, g.GatewayAddress())
		}
		g.must(g.AddTime(t.Context(), 5*time.Minute))
		if g.job(jobType, enough) == nil {
			t.Fatal("the instance of before the kill did not go on")
		}
	})
}

func TestPausedBrokerAnswersNobodyUntilItGoesOn(t *testing.T) {
	g := broker(t, zeebe.Versions[0])
	g.must(g.Pause())
	defer g.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := g.Topology(ctx, &pb.TopologyRequest{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a paused broker answered %v, expected nothing at all", err)
	}
	g.must(g.Resume())
	ctx, cancel = context.WithTimeout(t.Context(), enough)
	defer cancel()
	_, err := g.Topology(ctx, &pb.TopologyRequest{}, grpc.WaitForReady(true))
	g.must(err)
}

func TestCountersTellWhatHappened(t *testing.T) {
	eachVersion(t, func(t *testing.T, g gateway) {
		before, err := g.Counters(t.Context())
		g.must(err)
		done, failed := g.create("PT0S"), g.create("PT0S")
		_, err = g.CompleteJob(t.Context(), &pb.CompleteJobRequest{JobKey: g.job(done, enough).GetKey()})
		g.must(err)
		_, err = g.FailJob(t.Context(), &pb.FailJobRequest{JobKey: g.job(failed, enough).GetKey(), ErrorMessage: "wrong"})
		g.must(err)
		if g.job(failed, time.Millisecond) != nil {
			t.Fatal("a job with an incident was given out")
		}
		type row struct {
			what      string
			got, want int
		}
		rows := func() []row {
			now, err := g.Counters(t.Context())
			g.must(err)
			return []row{
				{"jobs created", now.Jobs(done, "created"), 1},
				{"jobs activated", now.Jobs(done, "activated"), 1},
				{"jobs completed", now.Jobs(done, "completed"), 1},
				{"jobs failed", now.Jobs(failed, "failed"), 1},
				{"jobs of both", now.Jobs("", "created") - before.Jobs("", "created"), 2},
				{"processes activated", now.Elements("PROCESS", "activated") - before.Elements("PROCESS", "activated"), 2},
				{"processes completed", now.Elements("PROCESS", "completed") - before.Elements("PROCESS", "completed"), 1},
				{"incidents", now.PendingIncidents() - before.PendingIncidents(), 1},
			}
		}
		wrong := func(r row) bool { return r.got != r.want }
		eventually(t, func() bool { return !slices.ContainsFunc(rows(), wrong) })
		for _, r := range rows() {
			if wrong(r) {
				t.Errorf("%s: %d, expected %d", r.what, r.got, r.want)
			}
		}
	})
}

// What the worker's check relies on: the protocol has no query for a process, and this creates nothing.
func TestProcessIsProbedWithoutSideEffects(t *testing.T) {
	eachVersion(t, func(t *testing.T, g gateway) {
		before, err := g.Counters(t.Context())
		g.must(err)
		probe := func(id string) codes.Code {
			_, err := g.CreateProcessInstance(t.Context(), &pb.CreateProcessInstanceRequest{
				BpmnProcessId: id, Version: -1,
				StartInstructions: []*pb.ProcessInstanceCreationStartInstruction{{ElementId: "no-such-element"}},
			})
			t.Logf("probe of %s: %v", id, err)
			return status.Code(err)
		}
		if c := probe(process); c != codes.InvalidArgument {
			t.Errorf("a deployed process answers %v, expected InvalidArgument", c)
		}
		if c := probe("NEVER_DEPLOYED"); c != codes.NotFound {
			t.Errorf("an unknown process answers %v, expected NotFound", c)
		}
		after, err := g.Counters(t.Context())
		g.must(err)
		if b, a := before.Elements("", "activated"), after.Elements("", "activated"); a != b {
			t.Errorf("%d elements activated before the probes, %d after", b, a)
		}
	})
}

func TestForeignTenantIsRefused(t *testing.T) {
	eachVersion(t, func(t *testing.T, g gateway) {
		stream, err := g.ActivateJobs(t.Context(), &pb.ActivateJobsRequest{
			Type: "no-such-type", Worker: "test", MaxJobsToActivate: 1, Timeout: 1000, RequestTimeout: -1, TenantIds: []string{"foo"},
		})
		if err == nil {
			_, err = stream.Recv()
		}
		t.Log(err)
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("got %v, expected InvalidArgument", err)
		}
	})
}

// eventually polls until met, for a while.
func eventually(t *testing.T, met func() bool) {
	t.Helper()
	for deadline := time.Now().Add(enough); !met() && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
}

package zeebe_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
	"retry-worker/internal/zeebe"
)

// TestPollAsItIsMeant holds the request and the jobs against the protocol's fields.
func TestPollAsItIsMeant(t *testing.T) {
	g, c := connected(t, gateway.Options{Tenants: []string{"hospital-a", "hospital-b"}})
	given := work()
	given.TenantID, given.Retries = "hospital-a", 5
	key := g.AddJob(given)
	r := poll(7, 3*time.Second)
	r.TenantIDs = []string{"hospital-a", "hospital-b"}
	jobs, err := c.Activate(wait.Context(t), r)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("activated %d jobs with %v, want one", len(jobs), err)
	}
	j := record(t, g, key)
	want := worker.Job{
		Key: key, ProcessInstanceKey: j.ProcessInstanceKey, ElementInstanceKey: j.ElementInstanceKey, Type: "work",
		TenantID: "hospital-a", Retries: 5, Headers: gateway.Headers, Variables: `{"claimId":"CLM-T-1"}`,
		LockedUntil: j.Activations[0].Deadline.UnixMilli(),
	}
	if jobs[0] != want {
		t.Errorf("got %+v, want %+v", jobs[0], want)
	}
	p := g.Polls("work")[0]
	if p.Worker != "tester" || p.MaxJobsToActivate != 7 || p.Timeout != time.Minute.Milliseconds() || p.RequestTimeout != 3000 ||
		!reflect.DeepEqual(p.FetchVariable, r.Variables) || !reflect.DeepEqual(p.TenantIds, r.TenantIDs) {
		t.Errorf("asked with %+v", p)
	}
}

// streaming is a gateway that answers each poll with these messages, and an error.
type streaming struct {
	pb.UnimplementedGatewayServer
	messages []*pb.ActivateJobsResponse
	err      error
	polls    atomic.Int32
}

func (s *streaming) ActivateJobs(_ *pb.ActivateJobsRequest, to pb.Gateway_ActivateJobsServer) error {
	s.polls.Add(1)
	for _, m := range s.messages {
		if err := to.Send(m); err != nil {
			return err
		}
	}
	return s.err
}

// TestPollThatIsCutOff: what came before is not thrown away. A job that is too large is told from a gateway that is
// busy, which has the same code; what is four times what a gateway sends by default is read. No call is made again
// behind the loop's back.
func TestPollThatIsCutOff(t *testing.T) {
	jobs := func(n, size int) *pb.ActivateJobsResponse {
		variables := `{"claimId":"` + strings.Repeat("x", size) + `"}`
		return &pb.ActivateJobsResponse{Jobs: slices.Repeat([]*pb.ActivatedJob{{Key: 7, Variables: variables}}, n)}
	}
	away, busy := status.Error(codes.Unavailable, ""), status.Error(codes.ResourceExhausted, "")
	for name, tt := range map[string]struct {
		streaming *streaming
		jobs      int
		want      worker.ErrorKind // -1: no error
	}{
		"broken":                  {&streaming{messages: []*pb.ActivateJobsResponse{jobs(2, 1), jobs(4, 1)}, err: away}, 6, worker.Ambiguous},
		"busy":                    {&streaming{err: busy}, 0, worker.NotTaken},
		"below the receive limit": {&streaming{messages: []*pb.ActivateJobsResponse{jobs(1, 15<<20)}}, 1, -1},
		"above the receive limit": {&streaming{messages: []*pb.ActivateJobsResponse{jobs(1, 17<<20)}}, 0, worker.TooLarge},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		testkit.Must(t, err)
		server := grpc.NewServer()
		pb.RegisterGatewayServer(server, tt.streaming)
		go func() { _ = server.Serve(l) }() // ends with Stop
		t.Cleanup(server.Stop)
		c := dial(t, zeebe.Options{Address: l.Addr().String(), Plaintext: true, KeepAlive: 45 * time.Second})
		got, err := c.Activate(wait.Context(t), poll(20, time.Second))
		if len(got) != tt.jobs || tt.streaming.polls.Load() != 1 || tt.want < 0 && err != nil {
			t.Errorf("%s: got %d jobs by %d polls, and %v", name, len(got), tt.streaming.polls.Load(), err)
		}
		if tt.want >= 0 {
			wantKind(t, name, err, tt.want)
		}
	}
}

func TestCompleteAndFail(t *testing.T) {
	g, c := connected(t, gateway.Options{})
	failed := g.AddJob(work())
	testkit.Must(t, c.Fail(wait.Context(t), take(t, c), worker.Failure{Retries: 2, Backoff: 10 * time.Second, Message: "why"}))
	a := record(t, g, failed).Answers[0]
	if a.Method != gateway.FailJob || a.Retries != 2 || a.BackOff != 10*time.Second || a.Message != "why" || a.Variables != "" {
		t.Errorf("failed with %+v", a)
	}
	g.Advance(10 * time.Second)
	if again := take(t, c); again.Key != failed || again.Retries != 2 {
		t.Errorf("after its back-off job %d with %d retries is given out", again.Key, again.Retries)
	}
	completed := g.AddJob(work())
	late := take(t, c)
	g.Advance(2 * time.Minute) // past its time-out; nobody else answers
	testkit.Must(t, c.Complete(wait.Context(t), late, `{"shouldRetry":true}`))
	if j := record(t, g, completed); j.State != gateway.Completed || j.Answers[0].Variables != `{"shouldRetry":true}` {
		t.Errorf("the job is %v after %+v", j.State, j.Answers)
	}
	if n := g.Counts(); n != (gateway.Counts{HandedOut: 3, Settled: 1}) {
		t.Errorf("counted %+v", n)
	}
}

// TestThrow: the variables reach the process although the boundary event maps nothing, and before the
// error does.
func TestThrow(t *testing.T) {
	for name, plainErrors := range map[string]bool{"ours": false, "as other authors do": true} {
		t.Run(name, func(t *testing.T) {
			g := gateway.New(t, gateway.Options{})
			o := plain(g)
			o.PlainErrors = plainErrors
			c := dial(t, o)
			key := g.AddJob(work())
			thrown := worker.BPMNError{Code: "PERMANENT_ERROR", Message: "why", Variables: `{"shouldRetry":false}`}
			testkit.Must(t, c.Throw(wait.Context(t), take(t, c), thrown))
			j := record(t, g, key)
			last := j.Answers[len(j.Answers)-1]
			if j.State != gateway.ErrorThrown || last.ErrorCode != thrown.Code || last.Message != thrown.Message || last.Variables != thrown.Variables {
				t.Errorf("the job is %v after %+v", j.State, last)
			}
			visible := maps.Equal(j.Output, map[string]string{"shouldRetry": "false"})
			if visible == plainErrors || (len(j.Answers) == 1) != plainErrors {
				t.Errorf("%d calls, the variables visible: %t", len(j.Answers), visible)
			}
			if first := j.Answers[0]; !plainErrors && (first.Method != gateway.SetVariables || first.Variables != thrown.Variables) {
				t.Errorf("prepared by %+v", first)
			}
		})
	}
}

// TestThrowThatIsNotPrepared: the error is not thrown, so the job is surely not answered.
func TestThrowThatIsNotPrepared(t *testing.T) {
	for code, want := range map[codes.Code]worker.ErrorKind{
		codes.Unavailable: worker.NotTaken, codes.DeadlineExceeded: worker.NotTaken, codes.ResourceExhausted: worker.NotTaken,
		codes.NotFound: worker.Gone, codes.InvalidArgument: worker.Refused,
	} {
		g, c := connected(t, gateway.Options{})
		key := g.AddJob(work())
		g.Inject(gateway.Fault{Method: gateway.SetVariables, Code: code})
		err := c.Throw(wait.Context(t), take(t, c), worker.BPMNError{Code: "E", Variables: "{}"})
		wantKind(t, code.String(), err, want)
		if j := record(t, g, key); j.State != gateway.Activated || g.Calls(gateway.ThrowError) > 0 {
			t.Errorf("%v: the job is %v, want it untouched", code, j.State)
		}
	}
}

// TestAnswersOverTheWire: what the loop needs of each answer's error, as a gateway really sends it.
func TestAnswersOverTheWire(t *testing.T) {
	for code, want := range map[codes.Code]worker.ErrorKind{
		codes.Unavailable: worker.Ambiguous, codes.ResourceExhausted: worker.NotTaken, codes.NotFound: worker.Gone, codes.InvalidArgument: worker.Refused,
	} {
		g, c := connected(t, gateway.Options{})
		g.AddJob(work())
		j := take(t, c)
		rule := g.Inject(gateway.Fault{Code: code, Match: func(call gateway.Call) bool { return call.Method != gateway.SetVariables }})
		wantKind(t, "Complete", c.Complete(wait.Context(t), j, "{}"), want)
		wantKind(t, "Throw", c.Throw(wait.Context(t), j, worker.BPMNError{Code: "E", Variables: "{}"}), want)
		wantKind(t, "Fail", c.Fail(wait.Context(t), j, worker.Failure{}), want)
		_, err := c.Activate(wait.Context(t), poll(1, time.Second))
		wantKind(t, "Activate", err, want)
		if rule.Fired() != 4 {
			t.Errorf("%v: %d calls, want four: nothing is made again here", code, rule.Fired())
		}
	}
}

// TestContextIsObeyed: a call that hangs ends with its context, and may have taken effect.
func TestContextIsObeyed(t *testing.T) {
	g, c := connected(t, gateway.Options{})
	g.AddJob(work())
	j := take(t, c)
	g.Inject(gateway.Fault{Hang: true})
	calls := map[string]func(context.Context) error{
		"Complete": func(ctx context.Context) error { return c.Complete(ctx, j, "{}") },
		"Fail":     func(ctx context.Context) error { return c.Fail(ctx, j, worker.Failure{}) },
		"Activate": func(ctx context.Context) error { _, err := c.Activate(ctx, poll(1, time.Hour)); return err },
	}
	for name, call := range calls {
		ctx, cancel := context.WithTimeout(wait.Context(t), 20*time.Millisecond)
		wantKind(t, name+" past its deadline", call(ctx), worker.Ambiguous)
		cancel()
		wantKind(t, name+" cancelled", call(ctx), worker.Ambiguous)
	}
}

// TestCloseEndsCalls that are under way.
func TestCloseEndsCalls(t *testing.T) {
	g, c := connected(t, gateway.Options{})
	ended := make(chan error, 1)
	go func() {
		_, err := c.Activate(wait.Context(t), poll(1, time.Hour))
		ended <- err
	}()
	testkit.Must(t, g.WaitFor(wait.Context(t), func(c gateway.Counts) bool { return c.Waiting == 1 }))
	testkit.Must(t, c.Close())
	select {
	case err := <-ended:
		if _, ok := errors.AsType[*worker.EngineError](err); !ok {
			t.Errorf("the poll ended with %v", err)
		}
	case <-wait.Context(t).Done():
		t.Error("the poll goes on")
	}
}

// TestGatewayComesBack: it is found within the longest pause between two connections, however long it was away.
func TestGatewayComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateway.New(t, gateway.Options{InMemory: true})
		o := plain(g)
		o.Dialer = g.Dial
		c := dial(t, o)
		asking := func() error { _, err := c.Topology(wait.Context(t)); return err }
		testkit.Must(t, asking())
		g.Down()
		for range 60 { // so that the pauses have grown
			if asking() == nil {
				t.Fatal("a call succeeded without a gateway")
			}
			time.Sleep(time.Second)
		}
		g.Up()
		back := time.Now()
		for asking() != nil {
			time.Sleep(20 * time.Millisecond)
		}
		if took := time.Since(back); took > 2500*time.Millisecond { // gRPC's own default goes up to two minutes
			t.Errorf("found %s after it was back, want within 2 s and a fifth", took)
		}
	})
}

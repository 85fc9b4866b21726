package gatewaytest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"retry-worker/internal/gatewaytest"
)

func TestActivationOverTheWire(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	key := g.AddJob(gatewaytest.Job{
		Type: "work", Variables: `{"claimId":"CLM-T-1","secret":"no"}`, CustomHeaders: `{"retryPolicy":"no-retry"}`,
		Retries: 2, ProcessInstanceKey: 77, ElementInstanceKey: 78, BpmnProcessID: "SUB_06", ElementID: "analyze",
	})
	request := poll(5)
	request.FetchVariable = []string{"claimId", "retryCount"}
	jobs, err := c.activate(deadline(t), request)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	j := jobs[0]
	if j.Key != key || j.Variables != `{"claimId":"CLM-T-1"}` || j.CustomHeaders != `{"retryPolicy":"no-retry"}` {
		t.Errorf("job %d with %s and headers %s", j.Key, j.Variables, j.CustomHeaders)
	}
	if j.Retries != 2 || j.ProcessInstanceKey != 77 || j.ElementInstanceKey != 78 || j.BpmnProcessId != "SUB_06" ||
		j.ElementId != "analyze" || j.TenantId != "<default>" || j.Worker != "w1" || j.Type != "work" {
		t.Errorf("job came as %v", j)
	}
	if left := time.Until(time.UnixMilli(j.Deadline)); left < 50*time.Second || left > time.Minute {
		t.Errorf("deadline in %v, want a minute", left)
	}
	p := g.Polls("work")[0]
	if p.Worker != "w1" || p.MaxJobs != 5 || p.Timeout != time.Minute || p.RequestTimeout >= 0 || len(p.FetchVariables) != 2 {
		t.Errorf("poll was noted as %+v", p)
	}
}

func TestLongPollOverTheWire(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	request := poll(1)
	request.RequestTimeout = 20_000
	got := make(chan int, 1)
	go func() {
		jobs, _ := c.activate(deadline(t), request)
		got <- len(jobs)
	}()
	if err := g.WaitFor(deadline(t), func(v gatewaytest.View) bool { return v.Waiting() == 1 }); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	g.AddJob(work(1)[0])
	if n := <-got; n != 1 || time.Since(begin) > 5*time.Second {
		t.Errorf("%d jobs %v after one appeared, want one at once", n, time.Since(begin))
	}
}

func TestEveryCommandOverTheWire(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	ctx := deadline(t)
	keys := g.AddJobs(work(4)...)
	jobs := c.take(4)
	for what, call := range map[string]func() error{
		"complete": func() error { return c.complete(keys[0], `{"a":1}`) },
		"fail": func() error {
			_, err := c.FailJob(ctx, &pb.FailJobRequest{JobKey: keys[1], ErrorMessage: "INVALID_CLAIM_ID: no", RetryBackOff: 5})
			return err
		},
		"throw": func() error {
			_, err := c.ThrowError(ctx, &pb.ThrowErrorRequest{JobKey: keys[2], ErrorCode: "PERMANENT_ERROR", Variables: `{"b":2}`})
			return err
		},
		"set variables": func() error {
			_, err := c.SetVariables(ctx, &pb.SetVariablesRequest{ElementInstanceKey: jobs[3].ElementInstanceKey, Variables: `{"c":3}`})
			return err
		},
		"update timeout": func() error {
			_, err := c.UpdateJobTimeout(ctx, &pb.UpdateJobTimeoutRequest{JobKey: keys[3], Timeout: 90_000})
			return err
		},
		"update retries": func() error {
			_, err := c.UpdateJobRetries(ctx, &pb.UpdateJobRetriesRequest{JobKey: keys[3], Retries: 9})
			return err
		},
	} {
		wantCode(t, what, call(), codes.OK)
	}
	wantState(t, g.Engine, keys, gatewaytest.Completed, gatewaytest.Incident, gatewaytest.ErrorThrown, gatewaytest.Activated)
	failed, thrown, held := record(t, g.Engine, keys[1]), record(t, g.Engine, keys[2]), record(t, g.Engine, keys[3])
	if a := failed.Answers[0]; a.Message != "INVALID_CLAIM_ID: no" || a.Worker != "w1" || a.Caller == "" || !a.Settled || !a.Acked {
		t.Errorf("FailJob was noted as %+v", a)
	}
	if a := thrown.Answers[0]; a.ErrorCode != "PERMANENT_ERROR" || a.Variables != `{"b":2}` {
		t.Errorf("ThrowError was noted as %+v", a)
	}
	if left := held.Activations[0].Deadline.Sub(g.Now()); held.Retries != 9 || left < time.Minute {
		t.Errorf("after the updates: %d retries, %v left", held.Retries, left)
	}
	_, err := c.ResolveIncident(ctx, &pb.ResolveIncidentRequest{IncidentKey: failed.Incident})
	wantCode(t, "incident of a job without retries", err, codes.FailedPrecondition)
	_, err = c.CancelProcessInstance(ctx, &pb.CancelProcessInstanceRequest{ProcessInstanceKey: jobs[3].ProcessInstanceKey})
	wantCode(t, "cancel", err, codes.OK)
	wantCode(t, "complete after the cancel", c.complete(keys[3], ""), codes.NotFound)
	_, err = c.PublishMessage(ctx, &pb.PublishMessageRequest{Name: "m"})
	wantCode(t, "an RPC it does not serve", err, codes.Unimplemented)
}

func wantState(t *testing.T, e *gatewaytest.Engine, keys []int64, want ...gatewaytest.State) {
	t.Helper()
	for i, key := range keys {
		if got := record(t, e, key).State; got != want[i] {
			t.Errorf("job %d is %v, want %v", i, got, want[i])
		}
	}
}

func TestTopology(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	out, err := c.Topology(deadline(t), &pb.TopologyRequest{})
	if err != nil || out.GatewayVersion != "8.5.8" || len(out.Brokers) != 1 {
		t.Fatalf("%v, %v", out, err)
	}
	if p := out.Brokers[0].Partitions[0]; p.Role != pb.Partition_LEADER || p.Health != pb.Partition_HEALTHY {
		t.Errorf("partition %v", p)
	}
	if g.Calls(gatewaytest.Topology, codes.OK) != 1 || g.Calls(gatewaytest.Topology) != 1 {
		t.Errorf("%d calls counted", g.Calls(gatewaytest.Topology))
	}
}

func TestTLS(t *testing.T) {
	g, c := start(t, gatewaytest.Options{TLS: true})
	if _, err := c.Topology(deadline(t), &pb.TopologyRequest{}); err != nil {
		t.Errorf("with the gateway's authority: %v", err)
	}
	other := gatewaytest.Start(gatewaytest.Options{TLS: true})
	defer other.Close()
	if string(other.CAPEM()) == string(g.CAPEM()) {
		t.Error("two gateways share an authority")
	}
}

func TestTLSRefusesThoseWhoDoNotTrustIt(t *testing.T) {
	g, _ := start(t, gatewaytest.Options{TLS: true})
	plain, _ := start(t, gatewaytest.Options{})
	wrong := dialAt(t, g.Addr(), plain) // plaintext to a TLS port
	_, err := wrong.Topology(deadline(t), &pb.TopologyRequest{})
	wantCode(t, "plaintext to TLS", err, codes.Unavailable)
}

func dialAt(t *testing.T, addr string, like *gatewaytest.Gateway) client {
	return dial(t, like, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}))
}

func TestDownRefusesAndUpServesAtTheSameAddress(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	keys := g.AddJobs(work(2)...)
	c.take(2)
	addr := g.Addr()
	for range 3 {
		g.Down()
		g.Down()
		if _, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("while down: %v, want refused", err)
		}
		wantCode(t, "while down", c.complete(keys[0], ""), codes.Unavailable)
		g.Up()
		g.Up()
	}
	if g.Addr() != addr {
		t.Errorf("back at %s, was at %s", g.Addr(), addr)
	}
	again := dial(t, g)
	wantCode(t, "held from before", again.complete(keys[0], ""), codes.OK)
	g.Close()
	g.Close()
	g.Up()
	wantCode(t, "closed", again.complete(keys[1], ""), codes.Unavailable)
}

func TestDownEndsWhatHangs(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	request := poll(1)
	request.RequestTimeout = 60_000
	ended := make(chan error, 1)
	go func() {
		_, err := c.activate(deadline(t), request)
		ended <- err
	}()
	if err := g.WaitFor(deadline(t), func(v gatewaytest.View) bool { return v.Waiting() == 1 }); err != nil {
		t.Fatal(err)
	}
	g.Down()
	wantCode(t, "long poll", <-ended, codes.Unavailable)
	if now, _ := g.UnderWay(gatewaytest.ActivateJobs); now != 0 {
		t.Errorf("%d polls outlived the server", now)
	}
}

func TestDownGracefullyAnswersWhatRuns(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	request := poll(1)
	request.RequestTimeout = 60_000
	ended := make(chan error, 1)
	go func() {
		_, err := c.activate(deadline(t), request)
		ended <- err
	}()
	if err := g.WaitFor(deadline(t), func(v gatewaytest.View) bool { return v.Waiting() == 1 }); err != nil {
		t.Fatal(err)
	}
	g.DownGracefully(limit)
	if err := <-ended; err != nil {
		t.Errorf("the waiting poll got %v, want an empty answer", err)
	}
	g.Up()
	g.AddJob(work(1)[0])
	request.RequestTimeout = -1
	if jobs, err := dial(t, g).activate(deadline(t), request); err != nil || len(jobs) != 1 {
		t.Errorf("after it is back: %d jobs, %v", len(jobs), err)
	}
}

func TestDropConnections(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	g.AddJob(work(1)[0])
	key := c.take(1)[0].Key
	g.DropConnections()
	if err := g.WaitFor(deadline(t), func(gatewaytest.View) bool { open, _ := g.Connections(); return open == 0 }); err != nil {
		t.Fatal(err)
	}
	err := c.complete(key, "")
	for status.Code(err) == codes.Unavailable { // until the client has noticed
		err = c.complete(key, "")
	}
	wantCode(t, "on a new connection", err, codes.OK)
	if open, accepted := g.Connections(); open != 1 || accepted != 2 {
		t.Errorf("%d connections open of %d, want 1 of 2", open, accepted)
	}
}

func TestFreezeStandsStillAndThawServes(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	keys := g.AddJobs(work(2)...)
	c.take(2)
	g.Freeze()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := c.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: keys[0]})
	wantCode(t, "while frozen", err, codes.DeadlineExceeded)
	if r := record(t, g.Engine, keys[0]); len(r.Answers) != 0 {
		t.Errorf("a frozen gateway took %+v", r.Answers)
	}
	done := make(chan error)
	go func() { done <- c.complete(keys[1], "") }()
	g.Thaw()
	wantCode(t, "after the thaw", <-done, codes.OK)
}

func TestCloseOfAFrozenGateway(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	g.AddJob(work(1)[0])
	c.take(1)
	g.Freeze()
	g.Close()
	if open, _ := g.Connections(); open != 0 {
		t.Errorf("%d connections left", open)
	}
}

func TestTokensAreDemanded(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	g.RequireToken(func(token string) bool { return token == "good" })
	for header, want := range map[string]codes.Code{
		"": codes.Unauthenticated, "Bearer bad": codes.Unauthenticated, "good": codes.Unauthenticated, "Bearer good": codes.OK,
	} {
		ctx := deadline(t)
		if header != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", header)
		}
		_, err := c.Topology(ctx, &pb.TopologyRequest{})
		wantCode(t, header, err, want)
		_, err = c.activate(ctx, poll(1))
		wantCode(t, header, err, want)
	}
	g.RequireToken(nil)
	_, err := c.Topology(deadline(t), &pb.TopologyRequest{})
	wantCode(t, "no token demanded", err, codes.OK)
}

func TestMessagesOfAnAnswer(t *testing.T) {
	g, c := start(t, gatewaytest.Options{JobsPerMessage: 3})
	g.AddJobs(work(7)...)
	stream, err := c.ActivateJobs(deadline(t), poll(10))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{3, 3, 1} {
		if m, err := stream.Recv(); err != nil || len(m.Jobs) != want {
			t.Fatalf("message of %d jobs, %v, want %d", len(m.GetJobs()), err, want)
		}
	}
}

func TestRequestAboveTheReceiveLimit(t *testing.T) {
	g, c := start(t, gatewaytest.Options{MaxReceive: 10_000})
	g.AddJob(work(1)[0])
	key := c.take(1)[0].Key
	big, _ := json.Marshal(map[string]string{"x": strings.Repeat("x", 20_000)})
	wantCode(t, "20 kB", c.complete(key, string(big)), codes.ResourceExhausted)
	wantCode(t, "2 bytes", c.complete(key, "{}"), codes.OK)
}

// The client library pings every 10 s at most, so frames are written by hand.
func TestPingsFasterThanAllowedAreDisconnected(t *testing.T) {
	g, _ := start(t, gatewaytest.Options{})
	conn, err := net.Dial("tcp", g.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(limit))
	frames := http2.NewFramer(conn, conn)
	_, err = conn.Write([]byte(http2.ClientPreface))
	if err = errors.Join(err, frames.WriteSettings()); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := frames.WritePing(false, [8]byte{}); err != nil {
			t.Fatal(err)
		}
	}
	for {
		frame, err := frames.ReadFrame()
		if err != nil {
			t.Fatalf("%v, want GOAWAY", err)
		}
		if away, ok := frame.(*http2.GoAwayFrame); ok {
			if text := string(away.DebugData()); text != "too_many_pings" {
				t.Errorf("told to go away for %q", text)
			}
			return
		}
	}
}

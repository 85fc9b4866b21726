package gateway_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"retry-worker/internal/testkit/gateway"
)

// TestGateway plays a job's way: given out, failed, given out again after its back-off, completed late.
func TestGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateway.New(t, gateway.Options{InMemory: true})
		conn, err := grpc.NewClient(g.Addr(), grpc.WithContextDialer(g.Dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		client := pb.NewGatewayClient(conn)
		key := g.AddJob(gateway.Job{Type: "work", Variables: `{"a":1,"b":2}`})
		if j := activate(t, client); j == nil || j.Key != key || j.Variables != `{"a":1}` || j.Retries != 3 {
			t.Fatalf("activated %v", j)
		}
		lost := g.Inject(gateway.Fault{Method: gateway.FailJob, DropAck: true, Times: 1})
		_, err = client.FailJob(t.Context(), &pb.FailJobRequest{JobKey: key, Retries: 2, RetryBackOff: 5000})
		if status.Code(err) != codes.Unavailable || lost.Fired() != 1 {
			t.Errorf("a dropped acknowledgement: %v", err)
		}
		began := time.Now()
		if j := activate(t, client); j == nil || j.Retries != 2 || time.Since(began) != 5*time.Second {
			t.Errorf("after %s: activated %v", time.Since(began), j)
		}
		time.Sleep(time.Minute) // past its time-out
		for _, want := range []codes.Code{codes.OK, codes.NotFound} {
			if _, err := client.CompleteJob(t.Context(), &pb.CompleteJobRequest{JobKey: key}); status.Code(err) != want {
				t.Errorf("completed with %v, want %v", err, want)
			}
		}
		r, _ := g.Job(key)
		if len(r.Activations) != 2 || !r.Activations[1].TimedOut || len(r.Answers) != 3 || r.Answers[0].Acked || !r.Answers[1].Acked {
			t.Errorf("remembered %+v", r)
		}
		if c := g.Counts(); c != (gateway.Counts{HandedOut: 2, TimedOut: 1, HandedBack: 1, Settled: 1}) {
			t.Errorf("counted %+v", c)
		}
		g.Down()
		if _, err := client.Topology(t.Context(), &pb.TopologyRequest{}); status.Code(err) != codes.Unavailable {
			t.Errorf("while it is down: %v", err)
		}
	})
}

// activate polls for one job of type "work", for its variable a.
func activate(t *testing.T, client pb.GatewayClient) *pb.ActivatedJob {
	t.Helper()
	stream, err := client.ActivateJobs(t.Context(), &pb.ActivateJobsRequest{
		Type: "work", Worker: "tester", Timeout: 10_000, MaxJobsToActivate: 1, RequestTimeout: 60_000, FetchVariable: []string{"a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return answer.Jobs[0]
}

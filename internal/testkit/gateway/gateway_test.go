package gateway_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
)

// TestGateway plays a job's way: given out, handed back, given out again, completed late.
func TestGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateway.New(t, gateway.Options{InMemory: true})
		conn, err := grpc.NewClient(g.Addr(), grpc.WithContextDialer(g.Dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
		testkit.Must(t, err)
		defer conn.Close()
		client, key := pb.NewGatewayClient(conn), g.AddJob(gateway.Job{Type: "work"})
		for retries := range int32(2) {
			stream, err := client.ActivateJobs(t.Context(), &pb.ActivateJobsRequest{
				Type: "work", Worker: "tester", Timeout: 10_000, MaxJobsToActivate: 1, RequestTimeout: 60_000})
			testkit.Must(t, err)
			answer, err := stream.Recv()
			testkit.Must(t, err)
			if j := answer.Jobs[0]; j.Key != key || j.Retries != 3-retries {
				t.Fatalf("activated %v", j)
			}
			if retries == 0 {
				_, err = client.FailJob(t.Context(), &pb.FailJobRequest{JobKey: key, Retries: 2, RetryBackOff: 5000})
				testkit.Must(t, err)
			}
		}
		time.Sleep(time.Minute) // past its time-out
		_, err = client.CompleteJob(t.Context(), &pb.CompleteJobRequest{JobKey: key})
		testkit.Must(t, err)
		if c := g.Counts(); c != (gateway.Counts{HandedOut: 2, TimedOut: 1, HandedBack: 1, Settled: 1}) {
			t.Errorf("counted %+v", c)
		}
	})
}

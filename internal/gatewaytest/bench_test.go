package gatewaytest_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"retry-worker/internal/gatewaytest"
)

// BenchmarkEngine is the engine alone: activate, and complete one job at a time.
func BenchmarkEngine(b *testing.B) {
	e := gatewaytest.NewEngine(gatewaytest.EngineOptions{})
	defer e.Close()
	e.SetEndless(gatewaytest.Endless{Types: []string{"analyze-retry"}, Job: gatewaytest.DefaultMix().Job})
	poll := gatewaytest.ActivateRequest{
		Type: "analyze-retry", Worker: "bench", Timeout: 10 * time.Second, MaxJobs: 50,
		FetchVariables: []string{"claimId", "submissionError", "retryCount", "lastSubmissionTime"},
	}
	b.ReportAllocs()
	for done := 0; done < b.N; {
		jobs, err := e.Activate(b.Context(), poll)
		if err != nil {
			b.Fatal(err)
		}
		for _, j := range jobs {
			if err := e.Complete(b.Context(), gatewaytest.CompleteRequest{JobKey: j.Key, Variables: outputs}); err != nil {
				b.Fatal(err)
			}
			done++
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkGateway is the way of a whole job over the loopback, the client's
// share of the CPU included.
func BenchmarkGateway(b *testing.B) {
	g := gatewaytest.Start(gatewaytest.Options{Endless: &gatewaytest.Endless{
		Types: []string{"analyze-retry"}, Limit: int64(b.N), Job: gatewaytest.DefaultMix().Job,
	}})
	defer g.Close()
	conn, err := grpc.NewClient(g.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	drain(b, pb.NewGatewayClient(conn), b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

const outputs = `{"shouldRetry":true,"retryCount":2,"maxRetries":5,"backoffMinutes":12,"backoffDuration":"PT12M",` +
	`"nextRetryTime":"2026-01-12T11:00:00Z","retryReason":"Transient error, retry 2 of 5",` +
	`"errorClassification":"TRANSIENT","originalError":"TIMEOUT","retryPolicy":"tiss-submission"}`

// drain activates and completes n jobs, 50 at once.
func drain(tb testing.TB, client pb.GatewayClient, n int) {
	ctx := context.Background()
	var done atomic.Int64
	for done.Load() < int64(n) {
		stream, err := client.ActivateJobs(ctx, &pb.ActivateJobsRequest{
			Type: "analyze-retry", Worker: "bench", Timeout: 10_000, MaxJobsToActivate: 50, RequestTimeout: -1,
			FetchVariable: []string{"claimId", "submissionError", "retryCount", "lastSubmissionTime"},
		})
		if err != nil {
			tb.Fatal(err)
		}
		message, err := stream.Recv()
		if err != nil {
			tb.Fatalf("after %d jobs: %v", done.Load(), err)
		}
		var all sync.WaitGroup
		for _, j := range message.Jobs {
			all.Go(func() {
				if _, err := client.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: j.Key, Variables: outputs}); err != nil {
					tb.Error(err)
				}
				done.Add(1)
			})
		}
		all.Wait()
		_, _ = stream.Recv() // the end
	}
}

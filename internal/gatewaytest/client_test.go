package gatewaytest_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"retry-worker/internal/gatewaytest"
)

// limit bounds what a test waits for; it is reached only where the test fails.
const limit = 30 * time.Second

// client is the raw protocol client; nothing of the worker is in it.
type client struct {
	pb.GatewayClient
	tb testing.TB
}

func start(tb testing.TB, o gatewaytest.Options) (*gatewaytest.Gateway, client) {
	tb.Helper()
	g := gatewaytest.Start(o)
	tb.Cleanup(g.Close)
	return g, dial(tb, g)
}

func dial(tb testing.TB, g *gatewaytest.Gateway, more ...grpc.DialOption) client {
	tb.Helper()
	secure := insecure.NewCredentials()
	if pem := g.CAPEM(); pem != nil {
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM(pem)
		secure = credentials.NewClientTLSFromCert(trusted, "")
	}
	options := append([]grpc.DialOption{grpc.WithTransportCredentials(secure)}, more...)
	conn, err := grpc.NewClient(g.Addr(), options...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return client{pb.NewGatewayClient(conn), tb}
}

func deadline(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	tb.Cleanup(cancel)
	return ctx
}

// poll asks for up to n jobs of type "work" without waiting.
func poll(n int32) *pb.ActivateJobsRequest {
	return &pb.ActivateJobsRequest{
		Type: "work", Worker: "w1", Timeout: 60_000, MaxJobsToActivate: n, RequestTimeout: -1,
	}
}

// activate reads a whole answer: its messages' jobs, and how it ended.
func (c client) activate(ctx context.Context, r *pb.ActivateJobsRequest) ([]*pb.ActivatedJob, error) {
	stream, err := c.ActivateJobs(ctx, r)
	if err != nil {
		return nil, err
	}
	var jobs []*pb.ActivatedJob
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return jobs, nil
		}
		if err != nil {
			return jobs, err
		}
		jobs = append(jobs, message.Jobs...)
	}
}

// take activates exactly n jobs, or fails the test.
func (c client) take(n int32) []*pb.ActivatedJob {
	c.tb.Helper()
	jobs, err := c.activate(deadline(c.tb), poll(n))
	if err != nil || len(jobs) != int(n) {
		c.tb.Fatalf("activated %d jobs with %v, want %d", len(jobs), err, n)
	}
	return jobs
}

func (c client) complete(key int64, variables string) error {
	_, err := c.CompleteJob(deadline(c.tb), &pb.CompleteJobRequest{JobKey: key, Variables: variables})
	return err
}

func wantCode(tb testing.TB, what string, err error, want codes.Code) {
	tb.Helper()
	if got := status.Code(err); got != want {
		tb.Errorf("%s: %v (%v), want %v", what, got, err, want)
	}
}

// work is n jobs of type "work".
func work(n int) []gatewaytest.Job {
	jobs := make([]gatewaytest.Job, n)
	for i := range jobs {
		jobs[i] = gatewaytest.Job{Type: "work", Variables: `{"claimId":"CLM-T-1","other":[1,{"a":"}"}]}`}
	}
	return jobs
}

func record(tb testing.TB, e *gatewaytest.Engine, key int64) gatewaytest.JobRecord {
	tb.Helper()
	r, ok := e.Job(key)
	if !ok {
		tb.Fatalf("no record of job %d", key)
	}
	return r
}

package chaos_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// deaf is a gateway before a real one that passes jobs on, and keeps every answer to itself.
type deaf struct {
	pb.UnimplementedGatewayServer
	engine  pb.GatewayClient
	address string

	mu       sync.Mutex
	analyses map[int64]bool // by their jobs' keys: whether an answer came
}

// kept is how many analyses were answered, to nobody's knowledge.
func (d *deaf) kept() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, answered := range d.analyses {
		if answered {
			n++
		}
	}
	return n
}

func newDeaf(t *testing.T, gateway string) *deaf {
	t.Helper()
	conn, err := grpc.NewClient(gateway, grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	d := &deaf{engine: pb.NewGatewayClient(conn), address: listener.Addr().String(), analyses: map[int64]bool{}}
	server := grpc.NewServer()
	pb.RegisterGatewayServer(server, d)
	go func() { _ = server.Serve(listener) }() // ends by Stop
	t.Cleanup(func() {
		server.Stop()
		_ = conn.Close()
	})
	return d
}

// ActivateJobs is passed on.
func (d *deaf) ActivateJobs(r *pb.ActivateJobsRequest, out pb.Gateway_ActivateJobsServer) error {
	in, err := d.engine.ActivateJobs(out.Context(), r)
	if err != nil {
		return err
	}
	for {
		response, err := in.Recv()
		if err != nil {
			return nil //nolint:nilerr // the end, mostly; otherwise the worker asks again
		}
		d.note(r.Type, response.Jobs)
		if err := out.Send(response); err != nil {
			return err
		}
	}
}

func (d *deaf) note(jobType string, jobs []*pb.ActivatedJob) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, j := range jobs {
		if jobType == worker.AnalyzeRetry {
			d.analyses[j.Key] = false
		}
	}
}

// CompleteJob is kept, and not answered.
func (d *deaf) CompleteJob(ctx context.Context, r *pb.CompleteJobRequest) (*pb.CompleteJobResponse, error) {
	d.mu.Lock()
	if _, analysis := d.analyses[r.JobKey]; analysis {
		d.analyses[r.JobKey] = true
	}
	d.mu.Unlock()
	<-ctx.Done()
	return nil, ctx.Err()
}

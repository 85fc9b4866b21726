package chaos_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// deaf is a gateway before a real one that passes jobs on, and keeps every answer to itself.
type deaf struct {
	pb.UnimplementedGatewayServer
	engine  pb.GatewayClient
	address string
	kept    atomic.Int64
}

func newDeaf(t *testing.T, gateway string) *deaf {
	t.Helper()
	conn, err := grpc.NewClient(gateway, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	d := &deaf{engine: pb.NewGatewayClient(conn), address: listener.Addr().String()}
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
		if err := out.Send(response); err != nil {
			return err
		}
	}
}

// CompleteJob is kept, and not answered.
func (d *deaf) CompleteJob(ctx context.Context, _ *pb.CompleteJobRequest) (*pb.CompleteJobResponse, error) {
	d.kept.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

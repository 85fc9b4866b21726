package zeebe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"retry-worker/internal/worker"
)

// newGRPC prepares a connection by gRPC. Commands are the Zeebe module's protocol messages, so that variables are
// encoded once. Its JobWorker is not used because it loses jobs at a stop, and zbc is not used because it lets the
// environment override code and retries inside a call.
func newGRPC(o *Options) (connection, error) {
	transport := insecure.NewCredentials()
	if !o.Plaintext {
		config, err := o.tlsConfig()
		if err != nil {
			return nil, err
		}
		transport = credentials.NewTLS(config)
	}
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithUserAgent(o.UserAgent),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: o.KeepAlive}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
				MaxDelay: reconnectMost},
			MinConnectTimeout: connectTimeout,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReceiveBytes)),
		grpc.WithDisableRetry(), // the worker retries, within the job's deadline
	}
	if o.Trace != nil {
		dial = append(dial, o.Trace)
	}
	if o.Dialer != nil {
		dial = append(dial, grpc.WithContextDialer(o.Dialer))
	}
	if o.OverrideAuthority != "" {
		dial = append(dial, grpc.WithAuthority(o.OverrideAuthority))
	}
	conn, err := grpc.NewClient(o.Address, dial...)
	if err != nil {
		return nil, fmt.Errorf("engine address %q: %w; expected host:port (%s)", o.Address, err, o.setting())
	}
	return overGRPC{conn}, nil
}

// overGRPC is a connection by gRPC.
type overGRPC struct{ *grpc.ClientConn }

func (c overGRPC) activate(ctx context.Context, r *pb.ActivateJobsRequest) (jobs []worker.Job, err error) {
	stream, err := pb.NewGatewayClient(c).ActivateJobs(ctx, r)
	for err == nil {
		var response *pb.ActivateJobsResponse
		response, err = stream.Recv()
		for _, j := range response.GetJobs() {
			jobs = append(jobs, worker.Job{
				Key: j.Key, ProcessInstanceKey: j.ProcessInstanceKey, ElementInstanceKey: j.ElementInstanceKey,
				Type: j.Type, TenantID: j.TenantId, Retries: j.Retries,
				Headers: j.CustomHeaders, Variables: j.Variables, LockedUntil: j.Deadline,
			})
		}
	}
	if errors.Is(err, io.EOF) { // the end of the answer
		err = nil
	}
	return jobs, err
}

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
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"

	"retry-worker/internal/worker"
)

// buffers that messages are read into. gRPC's own take (and clear) a whole MiB for each message above 32 KiB, which
// most answers to a poll are; here none has more than twice what it needs.
var buffers = must(mem.NewBinaryTieredBufferPool(8, 12, 14, 15, 16, 17, 18, 19, 20))

func must(pool mem.BufferPool, err error) mem.BufferPool {
	if err != nil {
		panic(err) // cannot be: the sizes are given above
	}
	return pool
}

// grpcGateway speaks gRPC. The job commands are sent as the Zeebe module's protocol messages, so that variables are
// encoded once; its JobWorker and zbc are not used: the one loses jobs at a stop, the other lets the environment
// override code and retries inside a call.
type grpcGateway struct {
	pb.GatewayClient
	conn   *grpc.ClientConn
	tokens *tokenSource // for the one stream; the other calls show them by themselves
}

func newGRPC(o *Options, tokens *tokenSource) (*grpcGateway, error) {
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
		experimental.WithBufferPool(buffers),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn,
			invoke grpc.UnaryInvoker, o ...grpc.CallOption,
		) error {
			return tokens.call(ctx, func(ctx context.Context) error { return invoke(ctx, method, in, out, conn, o...) })
		}),
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
	return &grpcGateway{pb.NewGatewayClient(conn), conn, tokens}, nil
}

func (g *grpcGateway) close() error { return g.conn.Close() }

func (g *grpcGateway) activate(ctx context.Context, r *worker.ActivateRequest) (jobs []worker.Job, err error) {
	err = g.tokens.call(ctx, func(ctx context.Context) error {
		jobs, err = g.jobs(ctx, r)
		return err
	})
	return jobs, err
}

func (g *grpcGateway) jobs(ctx context.Context, r *worker.ActivateRequest) ([]worker.Job, error) {
	stream, err := g.ActivateJobs(ctx, &pb.ActivateJobsRequest{
		Type:              r.JobType,
		Worker:            r.Worker,
		Timeout:           r.JobTimeout.Milliseconds(),
		MaxJobsToActivate: int32(r.MaxJobs),
		FetchVariable:     r.Variables,
		RequestTimeout:    r.PollTimeout.Milliseconds(),
		TenantIds:         r.TenantIDs,
	})
	if err != nil {
		return nil, err
	}
	var jobs []worker.Job
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return jobs, nil
		}
		if err != nil {
			return jobs, err
		}
		for _, j := range response.Jobs {
			jobs = append(jobs, worker.Job{
				Key: j.Key, ProcessInstanceKey: j.ProcessInstanceKey, ElementInstanceKey: j.ElementInstanceKey,
				Type: j.Type, TenantID: j.TenantId, Retries: j.Retries,
				Headers: j.CustomHeaders, Variables: j.Variables, LockedUntil: j.Deadline,
			})
		}
	}
}

func (g *grpcGateway) complete(ctx context.Context, j *worker.Job, variables string) error {
	_, err := g.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: j.Key, Variables: variables})
	return err
}

func (g *grpcGateway) throw(ctx context.Context, j *worker.Job, e *worker.BPMNError) error {
	_, err := g.ThrowError(ctx, &pb.ThrowErrorRequest{
		JobKey: j.Key, ErrorCode: e.Code, ErrorMessage: e.Message, Variables: e.Variables,
	})
	return err
}

func (g *grpcGateway) fail(ctx context.Context, j *worker.Job, f *worker.Failure) error {
	_, err := g.FailJob(ctx, &pb.FailJobRequest{
		JobKey: j.Key, Retries: f.Retries, RetryBackOff: f.Backoff.Milliseconds(), ErrorMessage: f.Message,
	})
	return err
}

func (g *grpcGateway) setTimeout(ctx context.Context, j *worker.Job, long time.Duration) error {
	_, err := g.UpdateJobTimeout(ctx, &pb.UpdateJobTimeoutRequest{JobKey: j.Key, Timeout: long.Milliseconds()})
	return err
}

func (g *grpcGateway) setVariables(ctx context.Context, elementInstanceKey int64, variables string) error {
	_, err := g.SetVariables(ctx, &pb.SetVariablesRequest{ElementInstanceKey: elementInstanceKey, Variables: variables})
	return err
}

// touch implements gateway: setting no variables changes nothing (tried on 8.5.8).
func (g *grpcGateway) touch(ctx context.Context, processInstanceKey int64) error {
	_, err := g.SetVariables(ctx,
		&pb.SetVariablesRequest{ElementInstanceKey: processInstanceKey, Variables: "{}", Local: true})
	return err
}

func (g *grpcGateway) topology(ctx context.Context) (Topology, error) {
	r, err := g.Topology(ctx, &pb.TopologyRequest{})
	if err != nil {
		return Topology{}, err
	}
	t := Topology{
		GatewayVersion: r.GatewayVersion, Brokers: int32(len(r.Brokers)),
		Partitions: r.PartitionsCount, ReplicationFactor: r.ReplicationFactor,
	}
	for _, b := range r.Brokers {
		for _, p := range b.Partitions {
			if p.Role == pb.Partition_LEADER {
				t.Leaders++
			}
		}
	}
	return t, nil
}

func (g *grpcGateway) deploy(ctx context.Context, name string, content []byte, tenant string) ([]Deployment, error) {
	r, err := g.DeployResource(ctx, &pb.DeployResourceRequest{
		Resources: []*pb.Resource{{Name: name, Content: content}}, TenantId: tenant,
	})
	if err != nil {
		return nil, err
	}
	var all []Deployment
	for _, d := range r.Deployments {
		if p := d.GetProcess(); p != nil {
			all = append(all, Deployment{p.BpmnProcessId, p.Version, p.ProcessDefinitionKey})
		}
	}
	return all, nil
}

func (g *grpcGateway) create(ctx context.Context, processID, variables string) (int64, error) {
	r, err := g.CreateProcessInstance(ctx,
		&pb.CreateProcessInstanceRequest{BpmnProcessId: processID, Version: newestVersion, Variables: variables})
	return r.GetProcessInstanceKey(), err
}

func (g *grpcGateway) publish(ctx context.Context, name, key string, life time.Duration) error {
	_, err := g.PublishMessage(ctx,
		&pb.PublishMessageRequest{Name: name, CorrelationKey: key, TimeToLive: life.Milliseconds()})
	return err
}

const newestVersion = -1

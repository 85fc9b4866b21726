package server

import (
	"cmp"
	"context"
	"net"
	"slices"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"retry-worker/internal/engine"
)

const (
	// mostStreams bounds the streams of one connection.
	mostStreams = 256
	// sendQuota is how many bytes a stream buffers before the next message must wait.
	sendQuota = 64 << 10
	// minPing is the shortest allowed interval between a client's pings.
	minPing = 5 * time.Second
	// defaultWait is how long a poll, or a wait for an instance's result, lasts by default.
	defaultWait = 10 * time.Second
)

// GRPC returns a server of the gateway's protocol; Close stops it.
func (s *Server) GRPC(more ...grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(append([]grpc.ServerOption{
		grpc.MaxConcurrentStreams(mostStreams),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
	}, more...)...)
	pb.RegisterGatewayServer(server, &gateway{s: s})
	s.atClose(server.Stop)
	return server
}

// ServeGRPC serves the gateway's protocol until Close.
func (s *Server) ServeGRPC(l net.Listener) {
	server := s.GRPC()
	go func() { _ = server.Serve(l) }() // ends with Stop
}

// gateway implements the protocol. Unsupported commands return UNIMPLEMENTED.
type gateway struct {
	pb.UnimplementedGatewayServer
	s *Server
}

// version returns the version of Zeebe whose protocol is spoken.
func (s *Server) version() string { return cmp.Or(s.options.Version, s.options.Shape+".0") }

// host is the name of the only broker in the topology.
const host = "development-engine"

func (g *gateway) Topology(ctx context.Context, _ *pb.TopologyRequest) (*pb.TopologyResponse, error) {
	return &pb.TopologyResponse{
		ClusterSize: 1, PartitionsCount: 1, ReplicationFactor: 1, GatewayVersion: g.s.version(),
		Brokers: []*pb.BrokerInfo{{
			Host: host, Version: g.s.version(),
			Partitions: []*pb.Partition{{PartitionId: 1, Role: pb.Partition_LEADER, Health: pb.Partition_HEALTHY}},
		}},
	}, g.s.topology(ctx)
}

func (s *Server) topology(ctx context.Context) error {
	return s.options.Around(ctx, nil, func() error { return nil })
}

// tenant returns the tenant that a request names, or the default one if tenants are off.
func (s *Server) tenant(id string) (string, error) {
	switch {
	case id == "" && len(s.options.Tenants) > 0:
		return "", status.Error(codes.InvalidArgument, "Expected to handle the request with a tenant identifier, but none given")
	case id == "" || id == engine.DefaultTenant:
		return engine.DefaultTenant, nil
	case len(s.options.Tenants) == 0:
		return "", status.Errorf(codes.InvalidArgument, "Expected to handle the request with tenant identifier '%s', but multi-tenancy is disabled", id)
	case !slices.Contains(s.options.Tenants, id):
		return "", status.Errorf(codes.PermissionDenied, "Expected to handle the request with tenant identifier '%s', but there is no access to it", id)
	}
	return id, nil
}

func (s *Server) tenants(ids []string) ([]string, error) {
	if len(ids) == 0 && len(s.options.Tenants) > 0 {
		return nil, status.Error(codes.InvalidArgument, "Expected to handle the request with tenant identifiers, but none given")
	}
	all := []string{}
	for _, id := range ids {
		tenant, err := s.tenant(id)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, tenant) {
			all = append(all, tenant)
		}
	}
	if len(all) == 0 {
		all = append(all, engine.DefaultTenant)
	}
	return all, nil
}

func millis(ms int64) time.Duration {
	const longest = 100 * 365 * 24 * time.Hour
	return min(max(time.Duration(ms), -1), longest/time.Millisecond) * time.Millisecond
}

// poll activates jobs for a request of either protocol.
func (s *Server) poll(ctx context.Context, in *pb.ActivateJobsRequest) (jobs []engine.Job, err error) {
	err = s.options.Around(ctx, in, func() (err error) {
		jobs, err = s.jobs(ctx, in)
		return err
	})
	return jobs, err
}

func (s *Server) jobs(ctx context.Context, in *pb.ActivateJobsRequest) ([]engine.Job, error) {
	tenants, err := s.tenants(in.TenantIds)
	if err != nil {
		return nil, err
	}
	wait := millis(in.RequestTimeout)
	if wait == 0 {
		wait = defaultWait
	}
	return s.activate(ctx, engine.Activate{
		Type: in.Type, Worker: in.Worker, Timeout: millis(in.Timeout), Max: int(in.MaxJobsToActivate), Tenants: tenants,
	}, in.FetchVariable, wait)
}

func (g *gateway) ActivateJobs(in *pb.ActivateJobsRequest, stream pb.Gateway_ActivateJobsServer) error {
	ctx := stream.Context()
	jobs, err := g.s.poll(ctx, in)
	if err != nil || len(jobs) == 0 {
		return err
	}
	out, size := &pb.ActivateJobsResponse{}, 0
	for i := range jobs {
		j := &jobs[i]
		size += len(j.Variables)
		out.Jobs = append(out.Jobs, &pb.ActivatedJob{
			Key: j.Key, Type: j.Type, ProcessInstanceKey: j.InstanceKey, BpmnProcessId: j.ProcessID, ProcessDefinitionVersion: j.Version,
			ProcessDefinitionKey: j.Definition.Key, ElementId: j.ElementID, ElementInstanceKey: j.ElementInstanceKey, CustomHeaders: j.Headers,
			Worker: j.Worker, Retries: j.Retries, Deadline: j.Deadline, Variables: j.Variables, TenantId: j.Tenant,
		})
	}
	if err = ctx.Err(); err == nil {
		err = stream.Send(out)
	}
	if err == nil && size > sendQuota {
		err = stream.Send(&pb.ActivateJobsResponse{}) // sent only once the jobs are read
	}
	if err != nil {
		g.s.giveBack(jobs)
	}
	return err
}

func (g *gateway) DeployResource(ctx context.Context, in *pb.DeployResourceRequest) (*pb.DeployResourceResponse, error) {
	resources := make([]engine.Resource, len(in.Resources))
	for i, r := range in.Resources {
		resources[i] = engine.Resource{Name: r.GetName(), Content: string(r.GetContent())}
	}
	key, tenant, all, err := g.s.deploy(ctx, resources, in.GetTenantId())
	if err != nil {
		return nil, err
	}
	out := &pb.DeployResourceResponse{Key: key, TenantId: tenant}
	for _, d := range all {
		out.Deployments = append(out.Deployments, &pb.Deployment{Metadata: &pb.Deployment_Process{Process: &pb.ProcessMetadata{
			BpmnProcessId: d.ProcessID, Version: d.Version, ProcessDefinitionKey: d.Key, ResourceName: d.Resource, TenantId: tenant,
		}}})
	}
	return out, nil
}

// deploy deploys resources. It returns the deployment's key and what is deployed.
func (s *Server) deploy(ctx context.Context, resources []engine.Resource, of string) (key int64, tenant string, all []engine.Definition, err error) {
	if tenant, err = s.tenant(of); err != nil {
		return 0, "", nil, err
	}
	err = s.do(ctx, "CREATE", engine.Deploy{Resources: resources, Tenant: tenant}, func(c *engine.Core, events []engine.Event) {
		key = events[0].Key
		for _, r := range resources {
			all = append(all, c.Deployed(tenant, r)...)
		}
	})
	return key, tenant, all, err
}

// create starts an instance. If it is awaited, create returns its variables at the end.
func (s *Server) create(ctx context.Context, command engine.Create, within time.Duration) (i engine.Instance, variables string, err error) {
	if command.Tenant, err = s.tenant(command.Tenant); err != nil {
		return i, "", err
	}
	position := int64(0)
	err = s.do(ctx, "CREATE", command, func(_ *engine.Core, events []engine.Event) {
		i, position = engine.Started(events), events[0].Position
	})
	if err != nil || !command.Await {
		return i, "", err
	}
	if within <= 0 {
		within = defaultWait
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	variables, err = s.result(ctx, i.Key, position)
	return i, variables, err
}

// result waits for the end of an awaited instance, created at that position, and returns its variables.
func (s *Server) result(ctx context.Context, instance, position int64) (variables string, err error) {
	for {
		events, _, more := s.recent.from(position)
		for i := range events {
			if key, variables, is := events[i].Result(); is && key == instance {
				return variables, nil
			}
			position = events[i].Position + 1
		}
		if len(events) > 0 {
			continue
		}
		if more == nil {
			return "", errStopping
		}
		select {
		case <-more:
		case <-ctx.Done():
			return "", status.Error(codes.DeadlineExceeded, "Expected to await the result of the process instance, but it has not ended in time")
		}
	}
}

// creation returns the command of a request, which may be nil.
func creation(in *pb.CreateProcessInstanceRequest) engine.Create {
	starts := make([]string, len(in.GetStartInstructions()))
	for i, at := range in.GetStartInstructions() {
		starts[i] = at.GetElementId()
	}
	return engine.Create{
		DefinitionKey: in.GetProcessDefinitionKey(), ProcessID: in.GetBpmnProcessId(), Version: in.GetVersion(), Tenant: in.GetTenantId(),
		Variables: in.GetVariables(), StartAt: starts,
	}
}

func (g *gateway) CreateProcessInstance(ctx context.Context, in *pb.CreateProcessInstanceRequest) (*pb.CreateProcessInstanceResponse, error) {
	i, _, err := g.s.create(ctx, creation(in), 0)
	if err != nil {
		return nil, err
	}
	return &pb.CreateProcessInstanceResponse{ProcessDefinitionKey: i.Definition.Key, BpmnProcessId: i.ProcessID, Version: i.Version,
		ProcessInstanceKey: i.Key, TenantId: i.Tenant}, nil
}

func (g *gateway) CreateProcessInstanceWithResult(
	ctx context.Context, in *pb.CreateProcessInstanceWithResultRequest,
) (*pb.CreateProcessInstanceWithResultResponse, error) {
	command := creation(in.GetRequest())
	command.Await = true
	i, variables, err := g.s.create(ctx, command, millis(in.RequestTimeout))
	if err != nil {
		return nil, err
	}
	return &pb.CreateProcessInstanceWithResultResponse{ProcessDefinitionKey: i.Definition.Key, BpmnProcessId: i.ProcessID, Version: i.Version,
		ProcessInstanceKey: i.Key, Variables: engine.Select(variables, in.FetchVariables), TenantId: i.Tenant}, nil
}

func (g *gateway) CancelProcessInstance(ctx context.Context, in *pb.CancelProcessInstanceRequest) (*pb.CancelProcessInstanceResponse, error) {
	return &pb.CancelProcessInstanceResponse{}, g.s.do(ctx, "CANCEL", engine.Cancel{Key: in.ProcessInstanceKey}, nil)
}

func (g *gateway) CompleteJob(ctx context.Context, in *pb.CompleteJobRequest) (*pb.CompleteJobResponse, error) {
	return &pb.CompleteJobResponse{}, g.s.do(ctx, "COMPLETE", engine.Complete{Key: in.JobKey, Variables: in.Variables}, nil)
}

func (g *gateway) FailJob(ctx context.Context, in *pb.FailJobRequest) (*pb.FailJobResponse, error) {
	return &pb.FailJobResponse{}, g.s.do(ctx, "FAIL", engine.Fail{
		Key: in.JobKey, Retries: in.Retries, BackOff: millis(in.RetryBackOff), Message: in.ErrorMessage, Variables: in.Variables,
	}, nil)
}

func (g *gateway) ThrowError(ctx context.Context, in *pb.ThrowErrorRequest) (*pb.ThrowErrorResponse, error) {
	return &pb.ThrowErrorResponse{}, g.s.do(ctx, "THROW_ERROR", engine.Throw{
		Key: in.JobKey, Code: in.ErrorCode, Message: in.ErrorMessage, Variables: in.Variables,
	}, nil)
}

func (g *gateway) SetVariables(ctx context.Context, in *pb.SetVariablesRequest) (*pb.SetVariablesResponse, error) {
	out := &pb.SetVariablesResponse{}
	err := g.s.do(ctx, "UPDATE", engine.SetVariables{Key: in.ElementInstanceKey, Variables: in.Variables, Local: in.Local},
		func(c *engine.Core, _ []engine.Event) { out.Key = c.Position() })
	return out, err
}

func (g *gateway) ResolveIncident(ctx context.Context, in *pb.ResolveIncidentRequest) (*pb.ResolveIncidentResponse, error) {
	return &pb.ResolveIncidentResponse{}, g.s.do(ctx, "RESOLVE", engine.Resolve{Key: in.IncidentKey}, nil)
}

func (g *gateway) UpdateJobRetries(ctx context.Context, in *pb.UpdateJobRetriesRequest) (*pb.UpdateJobRetriesResponse, error) {
	return &pb.UpdateJobRetriesResponse{}, g.s.do(ctx, "UPDATE_RETRIES", engine.UpdateRetries{Key: in.JobKey, Retries: in.Retries}, nil)
}

func (g *gateway) UpdateJobTimeout(ctx context.Context, in *pb.UpdateJobTimeoutRequest) (*pb.UpdateJobTimeoutResponse, error) {
	return &pb.UpdateJobTimeoutResponse{}, g.s.do(ctx, "UPDATE_TIMEOUT", engine.UpdateTimeout{Key: in.JobKey, Timeout: millis(in.Timeout)}, nil)
}

func (g *gateway) PublishMessage(ctx context.Context, in *pb.PublishMessageRequest) (*pb.PublishMessageResponse, error) {
	key, tenant, err := g.s.publish(ctx, engine.Publish{
		Name: in.Name, Key: in.CorrelationKey, ID: in.MessageId, Tenant: in.TenantId, TimeToLive: millis(in.TimeToLive), Variables: in.Variables,
	})
	if err != nil {
		return nil, err
	}
	return &pb.PublishMessageResponse{Key: key, TenantId: tenant}, nil
}

func (s *Server) publish(ctx context.Context, command engine.Publish) (key int64, tenant string, err error) {
	if command.Tenant, err = s.tenant(command.Tenant); err != nil {
		return 0, "", err
	}
	err = s.do(ctx, "PUBLISH", command, func(_ *engine.Core, events []engine.Event) { key = events[0].Key })
	return key, command.Tenant, err
}

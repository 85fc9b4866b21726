package gatewaytest

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/peer"
)

// service maps the protocol to the engine, and nothing else.
type service struct {
	pb.UnimplementedGatewayServer
	gateway *Gateway
}

// callerOf is the connection that a call came by, and its name.
func callerOf(ctx context.Context) (*peerAddr, string) {
	if p, ok := peer.FromContext(ctx); ok {
		if c, ok := p.Addr.(*peerAddr); ok {
			return c, c.name
		}
	}
	return nil, ""
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

func (s *service) ActivateJobs(in *pb.ActivateJobsRequest, stream pb.Gateway_ActivateJobsServer) error {
	conn, caller := callerOf(stream.Context())
	jobs, err := s.gateway.Activate(stream.Context(), ActivateRequest{
		Type: in.Type, Worker: in.Worker, Timeout: millis(in.Timeout), MaxJobs: int(in.MaxJobsToActivate),
		FetchVariables: in.FetchVariable, RequestTimeout: millis(in.RequestTimeout),
		TenantIDs: in.TenantIds, Caller: caller,
	})
	if failed := s.send(jobs, stream); failed != nil {
		return failed
	}
	return finish(conn, err)
}

// send streams the jobs; those that cannot be sent are noted as undelivered.
func (s *service) send(jobs []Job, stream pb.Gateway_ActivateJobsServer) error {
	size := s.gateway.options.JobsPerMessage
	if size <= 0 {
		size = len(jobs)
	}
	for len(jobs) > 0 {
		n := min(size, len(jobs))
		err := stream.Send(&pb.ActivateJobsResponse{Jobs: activatedJobs(jobs[:n])})
		if err == nil {
			err = stream.Context().Err()
		}
		if err != nil {
			s.gateway.Undelivered(jobs)
			return err
		}
		jobs = jobs[n:]
	}
	return nil
}

func activatedJobs(jobs []Job) []*pb.ActivatedJob {
	messages := make([]pb.ActivatedJob, len(jobs)) // one piece of memory for all
	out := make([]*pb.ActivatedJob, len(jobs))
	for i := range jobs {
		fill(&messages[i], &jobs[i])
		out[i] = &messages[i]
	}
	return out
}

func fill(m *pb.ActivatedJob, j *Job) {
	m.Key, m.Type = j.Key, j.Type
	m.ProcessInstanceKey, m.ElementInstanceKey = j.ProcessInstanceKey, j.ElementInstanceKey
	m.BpmnProcessId, m.ElementId = j.BpmnProcessID, j.ElementID
	m.ProcessDefinitionKey, m.ProcessDefinitionVersion = j.ProcessDefinitionKey, int32(j.ProcessDefinitionVersion)
	m.CustomHeaders, m.Variables = j.CustomHeaders, j.Variables
	m.Worker, m.Retries = j.Worker, int32(j.Retries)
	m.Deadline, m.TenantId = j.Deadline.UnixMilli(), j.TenantID
}

func (s *service) CompleteJob(ctx context.Context, in *pb.CompleteJobRequest) (*pb.CompleteJobResponse, error) {
	conn, caller := callerOf(ctx)
	err := s.gateway.Complete(ctx, CompleteRequest{JobKey: in.JobKey, Variables: in.Variables, Caller: caller})
	return &pb.CompleteJobResponse{}, finish(conn, err)
}

func (s *service) FailJob(ctx context.Context, in *pb.FailJobRequest) (*pb.FailJobResponse, error) {
	conn, caller := callerOf(ctx)
	err := s.gateway.Fail(ctx, FailRequest{
		JobKey: in.JobKey, Retries: int(in.Retries), BackOff: millis(in.RetryBackOff),
		Message: in.ErrorMessage, Variables: in.Variables, Caller: caller,
	})
	return &pb.FailJobResponse{}, finish(conn, err)
}

func (s *service) ThrowError(ctx context.Context, in *pb.ThrowErrorRequest) (*pb.ThrowErrorResponse, error) {
	conn, caller := callerOf(ctx)
	err := s.gateway.Throw(ctx, ThrowRequest{
		JobKey: in.JobKey, Code: in.ErrorCode, Message: in.ErrorMessage,
		Variables: in.Variables, Caller: caller,
	})
	return &pb.ThrowErrorResponse{}, finish(conn, err)
}

func (s *service) SetVariables(ctx context.Context, in *pb.SetVariablesRequest) (*pb.SetVariablesResponse, error) {
	conn, caller := callerOf(ctx)
	err := s.gateway.SetVariables(ctx, SetVariablesRequest{
		ElementInstanceKey: in.ElementInstanceKey, Variables: in.Variables, Local: in.Local, Caller: caller,
	})
	return &pb.SetVariablesResponse{Key: in.ElementInstanceKey}, finish(conn, err)
}

func (s *service) UpdateJobTimeout(ctx context.Context, in *pb.UpdateJobTimeoutRequest) (*pb.UpdateJobTimeoutResponse, error) {
	conn, caller := callerOf(ctx)
	err := s.gateway.UpdateTimeout(ctx, caller, in.JobKey, millis(in.Timeout))
	return &pb.UpdateJobTimeoutResponse{}, finish(conn, err)
}

func (s *service) UpdateJobRetries(ctx context.Context, in *pb.UpdateJobRetriesRequest) (*pb.UpdateJobRetriesResponse, error) {
	conn, caller := callerOf(ctx)
	err := s.gateway.UpdateRetries(ctx, caller, in.JobKey, int(in.Retries))
	return &pb.UpdateJobRetriesResponse{}, finish(conn, err)
}

func (s *service) ResolveIncident(ctx context.Context, in *pb.ResolveIncidentRequest) (*pb.ResolveIncidentResponse, error) {
	conn, caller := callerOf(ctx)
	err := s.gateway.Resolve(ctx, caller, in.IncidentKey)
	return &pb.ResolveIncidentResponse{}, finish(conn, err)
}

func (s *service) DeployResource(ctx context.Context, in *pb.DeployResourceRequest) (*pb.DeployResourceResponse, error) {
	conn, caller := callerOf(ctx)
	files := make([]Resource, len(in.Resources))
	for i, r := range in.Resources {
		files[i] = Resource{Name: r.Name, Content: r.Content}
	}
	deployed, err := s.gateway.Deploy(ctx, caller, files)
	out := &pb.DeployResourceResponse{TenantId: DefaultTenant}
	for _, p := range deployed {
		out.Key = max(out.Key, p.Key)
		out.Deployments = append(out.Deployments, deployment(p))
	}
	return out, finish(conn, err)
}

func deployment(p Process) *pb.Deployment {
	return &pb.Deployment{Metadata: &pb.Deployment_Process{Process: &pb.ProcessMetadata{
		BpmnProcessId: p.BpmnProcessID, Version: int32(p.Version), ProcessDefinitionKey: p.Key,
		ResourceName: p.ResourceName, TenantId: DefaultTenant,
	}}}
}

func (s *service) CreateProcessInstance(ctx context.Context, in *pb.CreateProcessInstanceRequest) (*pb.CreateProcessInstanceResponse, error) {
	conn, caller := callerOf(ctx)
	var elements []string
	for _, start := range in.StartInstructions {
		elements = append(elements, start.ElementId)
	}
	i, err := s.gateway.Create(ctx, CreateRequest{
		StartElements: elements,
		DefinitionKey: in.ProcessDefinitionKey, BpmnProcessID: in.BpmnProcessId, Version: int(in.Version),
		Variables: in.Variables, TenantID: in.TenantId, Caller: caller,
	})
	return &pb.CreateProcessInstanceResponse{
		ProcessDefinitionKey: i.Process.Key, BpmnProcessId: i.Process.BpmnProcessID,
		Version: int32(i.Process.Version), ProcessInstanceKey: i.Key, TenantId: i.TenantID,
	}, finish(conn, err)
}

func (s *service) CancelProcessInstance(ctx context.Context, in *pb.CancelProcessInstanceRequest) (*pb.CancelProcessInstanceResponse, error) {
	conn, caller := callerOf(ctx)
	return &pb.CancelProcessInstanceResponse{}, finish(conn, s.gateway.Cancel(ctx, caller, in.ProcessInstanceKey))
}

// Topology shows one healthy broker with one partition.
func (s *service) Topology(ctx context.Context, _ *pb.TopologyRequest) (*pb.TopologyResponse, error) {
	conn, caller := callerOf(ctx)
	version, err := s.gateway.Version(ctx, caller)
	host, portText, _ := net.SplitHostPort(s.gateway.Addr())
	number, _ := strconv.Atoi(portText)
	leader := &pb.Partition{PartitionId: 1, Role: pb.Partition_LEADER, Health: pb.Partition_HEALTHY}
	return &pb.TopologyResponse{
		Brokers: []*pb.BrokerInfo{{
			Host: host, Port: int32(number), Version: version, Partitions: []*pb.Partition{leader},
		}},
		ClusterSize: 1, PartitionsCount: 1, ReplicationFactor: 1, GatewayVersion: version,
	}, finish(conn, err)
}

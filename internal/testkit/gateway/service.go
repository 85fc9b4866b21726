package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// connOf returns the connection that a call came by; nil for one that the test made itself.
func connOf(ctx context.Context) *conn {
	if p, ok := peer.FromContext(ctx); ok {
		c, _ := p.Addr.(*conn)
		return c
	}
	return nil
}

// caller returns the name of a call's connection, and the worker that polled by it last. Before its first poll the
// connection is taken for that of the worker which holds the job. mu is held.
func (g *Gateway) caller(ctx context.Context, j *job) (connection, worker string) {
	c := connOf(ctx)
	if c == nil {
		return "", ""
	}
	if worker = g.workers[c.name]; worker == "" && j != nil && len(j.Activations) > 0 {
		worker = j.Activations[len(j.Activations)-1].Worker
	}
	return c.name, worker
}

// ActivateJobs implements pb.GatewayServer.
func (g *Gateway) ActivateJobs(in *pb.ActivateJobsRequest, stream pb.Gateway_ActivateJobsServer) error {
	ctx := stream.Context()
	p := &Poll{ActivateJobsRequest: in}
	g.change(func() {
		p.At = g.now()
		g.polls = append(g.polls, p)
		if c := connOf(ctx); c != nil {
			g.workers[c.name] = in.Worker
		}
	})
	var jobs []*job
	cut, err := g.call(ctx, Call{Method: ActivateJobs, Worker: in.Worker}, func() (err error) {
		jobs, err = g.activate(ctx, in)
		return err
	})
	arrive := len(jobs)
	switch {
	case err != nil:
		arrive = 0
	case cut != nil && arrive > 0:
		arrive, err = min(cut.CutAfter, arrive), cut.err()
	}
	if sending := g.send(jobs[:arrive], in, stream); err == nil {
		err = sending
	}
	g.change(func() { p.Ended = g.now() })
	return err
}

// send streams jobs.
func (g *Gateway) send(jobs []*job, in *pb.ActivateJobsRequest, stream pb.Gateway_ActivateJobsServer) error {
	for part := range slices.Chunk(jobs, max(1, cmp.Or(g.options.JobsPerMessage, len(jobs)))) {
		out := &pb.ActivateJobsResponse{}
		g.change(func() {
			for _, j := range part {
				out.Jobs = append(out.Jobs, j.activated())
			}
		})
		for _, j := range out.Jobs {
			j.Variables = fetched(j.Variables, in.FetchVariable)
		}
		if err := stream.Send(out); err != nil {
			return err
		}
		if err := stream.Context().Err(); err != nil {
			return status.FromContextError(err).Err()
		}
	}
	return nil
}

func (j *job) activated() *pb.ActivatedJob {
	last := j.Activations[len(j.Activations)-1]
	return &pb.ActivatedJob{
		Key: j.Key, Type: j.Type, ProcessInstanceKey: j.ProcessInstanceKey, ElementInstanceKey: j.ElementInstanceKey,
		BpmnProcessId: "process", ElementId: "task", CustomHeaders: j.CustomHeaders, Variables: j.Variables,
		Retries: int32(j.Retries), TenantId: j.TenantID, Worker: last.Worker, Deadline: last.Deadline.UnixMilli(),
	}
}

// activate hands out what is ready, and waits for the first job as long as the poll says.
func (g *Gateway) activate(ctx context.Context, in *pb.ActivateJobsRequest) ([]*job, error) {
	tenants, err := g.tenants(in.TenantIds)
	if err != nil {
		return nil, err
	}
	if in.Type == "" || in.Worker == "" || in.Timeout < 1 || in.MaxJobsToActivate < 1 {
		return nil, status.Error(codes.InvalidArgument, "a poll needs a type, a worker, a timeout and a number of jobs")
	}
	limit := time.NewTimer(max(0, millis(in.RequestTimeout)))
	defer limit.Stop()
	g.change(func() { g.counts.Waiting++ })
	defer g.change(func() { g.counts.Waiting-- })
	for {
		jobs, changed := g.take(ctx, in, tenants)
		if len(jobs) > 0 {
			return jobs, nil
		}
		if g.wait(ctx, changed, limit.C) {
			continue
		}
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		jobs, _ = g.take(ctx, in, tenants)
		return jobs, nil
	}
}

func (g *Gateway) tenants(asked []string) ([]string, error) {
	if !g.options.MultiTenancy {
		for _, id := range asked {
			if id != DefaultTenant {
				return nil, status.Errorf(codes.InvalidArgument, "tenant %q given, but multi-tenancy is off", id)
			}
		}
		return []string{DefaultTenant}, nil
	}
	if len(asked) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no tenant given, but multi-tenancy is on")
	}
	for _, id := range asked {
		if g.options.Tenants != nil && !slices.Contains(g.options.Tenants, id) {
			return nil, status.Errorf(codes.PermissionDenied, "the caller has no access to tenant %q", id)
		}
	}
	return asked, nil
}

// take activates what is ready for a poll.
func (g *Gateway) take(ctx context.Context, in *pb.ActivateJobsRequest, tenants []string) (jobs []*job, changed chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expire()
	size := 0
	for _, j := range g.ready[in.Type] {
		if len(jobs) == int(in.MaxJobsToActivate) || len(jobs) > 0 && size+len(j.Variables) > maxBatch {
			break
		}
		if slices.Contains(tenants, j.TenantID) {
			jobs, size = append(jobs, j), size+len(j.Variables)
		}
	}
	for _, j := range jobs {
		if j.lease = ""; g.version() == LeaseVersion && leaseIn(ctx) != "" {
			j.lease = fmt.Sprintf("lease-%d", g.counts.HandedOut)
		}
		j.due = g.now().Add(millis(in.Timeout))
		j.Activations = append(j.Activations, Activation{At: g.now(), Deadline: j.due, Worker: in.Worker})
		g.counts.HandedOut++
		g.move(j, Activated)
	}
	return jobs, g.changed
}

// CompleteJob implements pb.GatewayServer. Like the other answers it is accepted after the time-out too, while nobody
// else answered.
func (g *Gateway) CompleteJob(ctx context.Context, in *pb.CompleteJobRequest) (*pb.CompleteJobResponse, error) {
	a := &Answer{Method: CompleteJob, Variables: in.Variables}
	return &pb.CompleteJobResponse{}, g.command(ctx, in.JobKey, a, func(j *job) error {
		j.Output = a.Variables
		g.move(j, Completed)
		return nil
	})
}

// FailJob implements pb.GatewayServer.
func (g *Gateway) FailJob(ctx context.Context, in *pb.FailJobRequest) (*pb.FailJobResponse, error) {
	a := &Answer{
		Method: FailJob, Variables: in.Variables, Retries: int(in.Retries), BackOff: millis(in.RetryBackOff),
		Message: in.ErrorMessage,
	}
	return &pb.FailJobResponse{}, g.command(ctx, in.JobKey, a, func(j *job) error {
		j.Retries = a.Retries
		if a.Retries <= 0 {
			g.move(j, Incident)
			return nil
		}
		g.counts.HandedBack++
		j.due = g.now().Add(a.BackOff)
		g.move(j, BackingOff)
		return nil
	})
}

// ThrowError implements pb.GatewayServer. The error is caught; its variables are lost, as where a boundary event maps
// none.
func (g *Gateway) ThrowError(ctx context.Context, in *pb.ThrowErrorRequest) (*pb.ThrowErrorResponse, error) {
	a := &Answer{Method: ThrowError, ErrorCode: in.ErrorCode, Variables: in.Variables, Message: in.ErrorMessage}
	return &pb.ThrowErrorResponse{}, g.command(ctx, in.JobKey, a, func(j *job) error {
		g.move(j, ErrorThrown)
		return nil
	})
}

// UpdateJobTimeout implements pb.GatewayServer.
func (g *Gateway) UpdateJobTimeout(ctx context.Context, in *pb.UpdateJobTimeoutRequest) (*pb.UpdateJobTimeoutResponse, error) {
	a := &Answer{Method: UpdateJobTimeout}
	return &pb.UpdateJobTimeoutResponse{}, g.command(ctx, in.JobKey, a, func(j *job) error {
		if j.State != Activated {
			return status.Errorf(codes.FailedPrecondition, "job %d is %s", j.Key, j.State)
		}
		j.due = g.now().Add(millis(in.Timeout))
		j.Activations[len(j.Activations)-1].Deadline = j.due
		return nil
	})
}

// SetVariables implements pb.GatewayServer, for an element with a job and for a process instance.
func (g *Gateway) SetVariables(ctx context.Context, in *pb.SetVariablesRequest) (*pb.SetVariablesResponse, error) {
	g.mu.Lock()
	runs, instance := g.instances[in.ElementInstanceKey]
	g.mu.Unlock()
	if instance {
		_, err := g.call(ctx, Call{Method: SetVariables}, func() error {
			if !runs {
				return status.Errorf(codes.NotFound, "no process instance with key %d", in.ElementInstanceKey)
			}
			return nil
		})
		return &pb.SetVariablesResponse{}, err
	}
	a := &Answer{Method: SetVariables, Variables: in.Variables}
	return &pb.SetVariablesResponse{}, g.command(ctx, in.ElementInstanceKey+1, a, func(j *job) error {
		if !in.Local {
			j.Output, j.Variables = a.Variables, merged(j.Variables, a.Variables)
		}
		return nil
	})
}

// command is the way of every command on a job: through the faults, to its effect, into the job's record.
func (g *Gateway) command(ctx context.Context, key int64, a *Answer, effect func(*job) error) error {
	g.change(func() { a.caller, a.Worker = g.caller(ctx, g.jobs[key]) })
	a.lease = leaseIn(ctx)
	_, err := g.call(ctx, Call{Method: a.Method, JobKey: key, Worker: a.Worker}, func() (err error) {
		g.change(func() {
			j := g.jobs[key]
			if err = a.refusal(key, j); err == nil {
				err = effect(j)
				a.Settled = err == nil && j.State.Settled()
			}
			a.Reached = true
			g.note(j, a, err)
		})
		return err
	})
	g.change(func() {
		if !a.Reached {
			g.note(g.jobs[key], a, err)
		}
		a.Acked = a.Accepted() && err == nil && ctx.Err() == nil && !connOf(ctx).isClosed()
	})
	return err
}

func (g *Gateway) note(j *job, a *Answer, err error) {
	a.At, a.Code = g.now(), status.Code(err)
	if j != nil {
		j.answers = append(j.answers, a)
	}
}

// refusal returns why the gateway does not take a command, or nil.
func (a *Answer) refusal(key int64, j *job) error {
	switch {
	case j == nil || j.State.gone():
		return status.Errorf(codes.NotFound, "%s: no job with key %d", a.Method, key)
	case j.State.Settled() || j.State == BackingOff:
		return status.Errorf(codes.FailedPrecondition, "%s: job %d is %s", a.Method, key, j.State)
	case j.lease != "" && a.Method != SetVariables && a.lease != j.lease:
		return status.Errorf(codes.FailedPrecondition, "%s: job %d is leased to another activation", a.Method, key)
	case a.Variables != "" && !json.Valid([]byte(a.Variables)):
		return status.Errorf(codes.InvalidArgument, "%s: variables are no JSON: %.60q", a.Method, a.Variables)
	}
	return nil
}

var processID = regexp.MustCompile(`<(?:\w+:)?process\s[^>]*?\bid="([^"]+)"`)

// DeployResource implements pb.GatewayServer: a process with new content gets the next version, which is its key too.
func (g *Gateway) DeployResource(ctx context.Context, in *pb.DeployResourceRequest) (*pb.DeployResourceResponse, error) {
	out := &pb.DeployResourceResponse{TenantId: in.GetTenantId()}
	_, err := g.call(ctx, Call{Method: DeployResource}, func() error {
		for _, r := range in.Resources {
			ids := processID.FindAllStringSubmatch(string(r.Content), -1)
			if len(ids) == 0 {
				return status.Errorf(codes.InvalidArgument, "resource %q: no process in it", r.Name)
			}
			for _, id := range ids {
				version := g.deploy(id[1], string(r.Content))
				out.Deployments = append(out.Deployments, &pb.Deployment{Metadata: &pb.Deployment_Process{Process: &pb.ProcessMetadata{
					BpmnProcessId: id[1], Version: int32(version), ProcessDefinitionKey: int64(version), ResourceName: r.Name, TenantId: DefaultTenant,
				}}})
			}
		}
		return nil
	})
	return out, err
}

func (g *Gateway) deploy(id, content string) (version int) {
	g.change(func() {
		if all := g.deployed[id]; len(all) == 0 || all[len(all)-1] != content {
			g.deployed[id] = append(all, content)
		}
		version = len(g.deployed[id])
	})
	return version
}

// CreateProcessInstance implements pb.GatewayServer. No element of a process is known to it to start at.
func (g *Gateway) CreateProcessInstance(ctx context.Context, in *pb.CreateProcessInstanceRequest) (*pb.CreateProcessInstanceResponse, error) {
	out := &pb.CreateProcessInstanceResponse{}
	_, err := g.call(ctx, Call{Method: CreateProcessInstance}, func() (err error) {
		g.change(func() {
			g.lastKey++
			out.ProcessInstanceKey = g.lastKey
			if len(in.StartInstructions) > 0 {
				err = status.Errorf(codes.InvalidArgument, "no element found with id %q", in.StartInstructions[0].ElementId)
			}
			if len(g.deployed[in.BpmnProcessId]) == 0 {
				err = status.Errorf(codes.NotFound, "no process %q", in.BpmnProcessId)
			}
			g.instances[g.lastKey] = err == nil
		})
		return err
	})
	return out, err
}

// Topology implements pb.GatewayServer: one healthy broker with one partition.
func (g *Gateway) Topology(ctx context.Context, _ *pb.TopologyRequest) (*pb.TopologyResponse, error) {
	_, err := g.call(ctx, Call{Method: Topology}, func() error { return nil })
	return &pb.TopologyResponse{
		ClusterSize: 1, PartitionsCount: 1, ReplicationFactor: 1, GatewayVersion: g.version(),
		Brokers: []*pb.BrokerInfo{{
			Version:    Version,
			Partitions: []*pb.Partition{{PartitionId: 1, Role: pb.Partition_LEADER, Health: pb.Partition_HEALTHY}},
		}},
	}, err
}

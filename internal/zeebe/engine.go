package zeebe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/worker"
)

var _ worker.Engine = (*Client)(nil)

// Activate implements worker.Engine.
func (c *Client) Activate(ctx context.Context, r worker.ActivateRequest) (jobs []worker.Job, err error) {
	err = c.tokens.call(ctx, func(ctx context.Context) error {
		jobs, err = c.conn.activate(ctx, &pb.ActivateJobsRequest{
			Type: r.JobType, Worker: r.Worker, Timeout: r.JobTimeout.Milliseconds(), MaxJobsToActivate: int32(r.MaxJobs),
			FetchVariable: r.Variables, RequestTimeout: r.PollTimeout.Milliseconds(), TenantIds: r.TenantIDs,
		})
		return err
	})
	return jobs, replyError(err)
}

// Complete implements worker.Engine.
func (c *Client) Complete(ctx context.Context, j *worker.Job, variables string) error {
	_, err := c.gateway.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: j.Key, Variables: variables})
	return replyError(err)
}

// Throw implements worker.Engine. The engine drops an error's variables unless the boundary event maps them. So they
// are first set on the task's element instance, from where they reach the process.
func (c *Client) Throw(ctx context.Context, j *worker.Job, e worker.BPMNError) error {
	if !c.plainErrors {
		_, err := c.gateway.SetVariables(ctx, &pb.SetVariablesRequest{ElementInstanceKey: j.ElementInstanceKey, Variables: e.Variables})
		if err != nil {
			return preparationError(err)
		}
	}
	_, err := c.gateway.ThrowError(ctx, &pb.ThrowErrorRequest{
		JobKey: j.Key, ErrorCode: e.Code, ErrorMessage: e.Message, Variables: e.Variables,
	})
	return replyError(err)
}

// Fail implements worker.Engine.
func (c *Client) Fail(ctx context.Context, j *worker.Job, f worker.Failure) error {
	_, err := c.gateway.FailJob(ctx, &pb.FailJobRequest{
		JobKey: j.Key, Retries: f.Retries, RetryBackOff: f.Backoff.Milliseconds(), ErrorMessage: f.Message,
	})
	return replyError(err)
}

// Hold implements worker.Engine.
func (c *Client) Hold(ctx context.Context, j *worker.Job, long time.Duration) error {
	_, err := c.gateway.UpdateJobTimeout(ctx, &pb.UpdateJobTimeoutRequest{JobKey: j.Key, Timeout: long.Milliseconds()})
	return replyError(err)
}

// Runs implements worker.Engine. It sets no variables, which changes nothing (tried on 8.5.8) and is refused if
// the process instance has ended. No query exists in all versions.
func (c *Client) Runs(ctx context.Context, processInstanceKey int64) (bool, error) {
	_, err := c.gateway.SetVariables(ctx,
		&pb.SetVariablesRequest{ElementInstanceKey: processInstanceKey, Variables: "{}", Local: true})
	if err != nil && kindOf(err) == worker.Gone {
		return false, nil
	}
	if err == nil {
		c.knowsInstances.Store(true)
	}
	return err == nil, replyError(err)
}

// Ended implements worker.Engine. It believes the engine once that has said of another instance that it runs: an
// engine that cannot answer the question says that none does. The key 0 is of no process.
func (c *Client) Ended(ctx context.Context, processInstanceKey int64) bool {
	if processInstanceKey == 0 {
		return false
	}
	runs, err := c.Runs(ctx, processInstanceKey)
	return err == nil && !runs && c.knowsInstances.Load()
}

// replyError classifies an error of an activation or an answer; nil stays nil.
func replyError(err error) error {
	if err == nil {
		return nil
	}
	return &worker.EngineError{Kind: kindOf(err), Err: err}
}

// preparationError is replyError for a command before the answer: whatever became of it, the job has not been answered.
func preparationError(err error) error {
	kind := kindOf(err)
	if kind == worker.Ambiguous {
		kind = worker.NotTaken
	}
	return &worker.EngineError{Kind: kind, Err: err}
}

func kindOf(err error) worker.ErrorKind {
	if _, ok := errors.AsType[*tokenError](err); ok {
		return worker.NotTaken // nothing was sent
	}
	switch status.Code(err) {
	case codes.NotFound, codes.FailedPrecondition:
		return worker.Gone
	case codes.ResourceExhausted:
		if strings.Contains(err.Error(), "received message") { // this client's own limit, not a busy gateway
			return worker.TooLarge
		}
		return worker.NotTaken
	case codes.Unauthenticated, codes.PermissionDenied:
		return worker.NotTaken
	case codes.InvalidArgument, codes.Unimplemented, codes.OutOfRange, codes.AlreadyExists:
		return worker.Refused
	default: // UNAVAILABLE, DEADLINE_EXCEEDED, CANCELED, UNKNOWN, INTERNAL, ABORTED, DATA_LOSS
		return worker.Ambiguous
	}
}

// Topology describes the gateway's cluster: the cheapest test of the connection. Its error may say that the cluster
// does not work.
func (c *Client) Topology(ctx context.Context) (string, error) {
	r, err := c.gateway.Topology(ctx, &pb.TopologyRequest{})
	switch {
	case err != nil:
		return "", fmt.Errorf("ask for the topology: %w", err)
	case r.PartitionsCount < 1:
		return "", errors.New("ask for the topology: the answer names no partitions, so it is not the engine's")
	}
	leaders := int32(0)
	for _, b := range r.Brokers {
		for _, p := range b.Partitions {
			if p.Role == pb.Partition_LEADER {
				leaders++
			}
		}
	}
	if leaders < r.PartitionsCount {
		return "", fmt.Errorf("%d of %d partitions have a leader; wait until the cluster is healthy", leaders, r.PartitionsCount)
	}
	return fmt.Sprintf("gateway %s, brokers: %d, partitions: %d, with a leader: %d", r.GatewayVersion, len(r.Brokers),
		r.PartitionsCount, leaders), nil
}

// Deployment is one process as it is now deployed, from a file for a tenant.
type Deployment struct {
	Process string `json:"process"`
	Version int32  `json:"version"`
	Key     int64  `json:"key"`
	File    string `json:"file"`
	Tenant  string `json:"tenant"`
}

// Deploy deploys a model; an unchanged one keeps its version. An empty tenant means the default one.
func (c *Client) Deploy(ctx context.Context, name string, content []byte, tenant string) ([]Deployment, error) {
	r, err := c.gateway.DeployResource(ctx,
		&pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: name, Content: content}}, TenantId: tenant})
	if said := status.Convert(err).Message(); status.Code(err) == codes.InvalidArgument &&
		!strings.Contains(said, "tenant") {
		return nil, refusedModel(name, said)
	}
	if err != nil {
		return nil, fmt.Errorf("deploy %s: %w; `retry-worker check` says what is wrong with the connection", name, err)
	}
	var all []Deployment
	for _, d := range r.Deployments {
		if p := d.GetProcess(); p != nil {
			all = append(all, Deployment{p.BpmnProcessId, p.Version, p.ProcessDefinitionKey, name,
				cmp.Or(tenant, "<default>")})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("deploy %s: the answer names no process, so it is not the engine's; `retry-worker check` "+
			"says what is wrong with the connection", name)
	}
	return all, nil
}

// modelProblem matches the engine's message about an element; more messages may follow.
var modelProblem = regexp.MustCompile(`Element: (.+)\s+- (?:ERROR|WARNING): (.+)`)

// refusedModel returns the error of a model of which the engine says what is wrong.
func refusedModel(name, said string) error {
	at, reason := "", strings.Join(strings.Fields(said), " ")
	if m := modelProblem.FindStringSubmatch(said); m != nil {
		at, reason = " at "+strings.TrimSpace(m[1]), strings.TrimSpace(m[2])
	}
	return fmt.Errorf("deploy %s: the engine refuses the model%s: %s; correct it there, or deploy a model that this engine's "+
		"version takes", name, at, reason)
}

// Create starts an instance of the newest version of a process and returns its key. variables is a JSON object.
func (c *Client) Create(ctx context.Context, processID, variables string) (int64, error) {
	r, err := c.gateway.CreateProcessInstance(ctx,
		&pb.CreateProcessInstanceRequest{BpmnProcessId: processID, Version: -1, Variables: variables})
	if err != nil {
		return 0, fmt.Errorf("start an instance of %s: %w", processID, err)
	}
	return r.ProcessInstanceKey, nil
}

// noSuch is a job type that no model uses.
const noSuch = "retry-worker-check"

// MayActivate checks that token and tenants allow taking jobs, by asking for a job that cannot exist.
func (c *Client) MayActivate(ctx context.Context, tenants []string) error {
	_, err := c.Activate(ctx, worker.ActivateRequest{
		JobType: noSuch, Worker: noSuch, MaxJobs: 1, JobTimeout: time.Second, TenantIDs: tenants,
		PollTimeout: -time.Millisecond, // answer at once
	})
	if err != nil {
		return fmt.Errorf("ask for jobs: %w", err)
	}
	return nil
}

// Publish sends a message to the instances that wait for it under key, now or within life (0: now only).
func (c *Client) Publish(ctx context.Context, name, key string, life time.Duration) error {
	_, err := c.gateway.PublishMessage(ctx,
		&pb.PublishMessageRequest{Name: name, CorrelationKey: key, TimeToLive: life.Milliseconds()})
	if err != nil {
		return fmt.Errorf("publish the message %s: %w", name, err)
	}
	return nil
}

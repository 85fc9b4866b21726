package zeebe

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Topology is what the gateway says of its cluster.
type Topology struct {
	GatewayVersion                         string
	Brokers, Partitions, ReplicationFactor int32
	// Leaders is the number of partitions that have one: work goes on where it equals Partitions.
	Leaders int32
}

// Topology asks the gateway for its cluster; the cheapest proof that it can be reached.
func (c *Client) Topology(ctx context.Context) (Topology, error) {
	r, err := c.gateway.Topology(ctx, &pb.TopologyRequest{})
	if err != nil {
		return Topology{}, fmt.Errorf("ask for the topology: %w", err)
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

// Deployment is one process as the engine has it now.
type Deployment struct {
	ProcessID string
	Version   int32
	Key       int64
}

// Deploy gives the engine a model; one it has already keeps its version. An empty tenant is the default.
func (c *Client) Deploy(ctx context.Context, name string, content []byte, tenant string) ([]Deployment, error) {
	r, err := c.gateway.DeployResource(ctx, &pb.DeployResourceRequest{
		Resources: []*pb.Resource{{Name: name, Content: content}}, TenantId: tenant,
	})
	if said := status.Convert(err).Message(); status.Code(err) == codes.InvalidArgument &&
		!strings.Contains(said, "tenant") {
		return nil, refusedModel(name, said, err)
	}
	if err != nil {
		return nil, fmt.Errorf("deploy %s: %w", name, err)
	}
	var all []Deployment
	for _, d := range r.Deployments {
		if p := d.GetProcess(); p != nil {
			all = append(all, Deployment{p.BpmnProcessId, p.Version, p.ProcessDefinitionKey})
		}
	}
	return all, nil
}

// RefusedModel is a model that the engine does not take.
type RefusedModel struct {
	// Model is the file's name; Element, which may be empty, is where it is wrong.
	Model, Element string
	// Reason is what the engine said, in one line.
	Reason string
	cause  error
}

func (e *RefusedModel) Unwrap() error { return e.cause }

func (e *RefusedModel) Error() string {
	at := ""
	if e.Element != "" {
		at = " at " + e.Element
	}
	return fmt.Sprintf("deploy %s: the engine refuses the model%s: %s", e.Model, at, e.Reason)
}

// modelProblem is how the engine says what is wrong with which element; more may follow.
var modelProblem = regexp.MustCompile(`Element: (.+)\s+- (?:ERROR|WARNING): (.+)`)

func refusedModel(name, said string, cause error) error {
	e := &RefusedModel{Model: name, Reason: strings.Join(strings.Fields(said), " "), cause: cause}
	if m := modelProblem.FindStringSubmatch(said); m != nil {
		e.Element, e.Reason = strings.TrimSpace(m[1]), strings.TrimSpace(m[2])
	}
	return e
}

// busyPause is between two tries of a gateway that is too busy.
const busyPause = 100 * time.Millisecond

// Create starts an instance of the newest version of a process and returns its key. variables is a JSON object. A gateway that
// is too busy to take it is asked again until ctx ends.
func (c *Client) Create(ctx context.Context, processID, variables string) (int64, error) {
	request := &pb.CreateProcessInstanceRequest{BpmnProcessId: processID, Version: newestVersion, Variables: variables}
	r, err := c.gateway.CreateProcessInstance(ctx, request)
	for status.Code(err) == codes.ResourceExhausted && ctx.Err() == nil {
		select {
		case <-time.After(busyPause):
		case <-ctx.Done():
		}
		r, err = c.gateway.CreateProcessInstance(ctx, request)
	}
	if err != nil {
		return 0, fmt.Errorf("start an instance of %s: %w", processID, err)
	}
	return r.ProcessInstanceKey, nil
}

const (
	newestVersion = -1
	// noSuch is the id of an element, and the type of a job, that no model has.
	noSuch = "retry-worker-check"
)

// HasProcess reports whether a process is deployed. The protocol has no query for it: an instance that
// is to begin at an element that does not exist is refused as invalid where the process is known, and
// as not found where it is not. Nothing is ever started.
func (c *Client) HasProcess(ctx context.Context, processID, tenant string) (bool, error) {
	_, err := c.gateway.CreateProcessInstance(ctx, &pb.CreateProcessInstanceRequest{
		BpmnProcessId: processID, Version: newestVersion, TenantId: tenant,
		StartInstructions: []*pb.ProcessInstanceCreationStartInstruction{{ElementId: noSuch}},
	})
	switch status.Code(err) {
	case codes.OK:
		return true, fmt.Errorf("look for the process %s: the gateway ignores where an instance is to begin, and started one",
			processID)
	case codes.NotFound:
		return false, nil
	case codes.InvalidArgument:
		return true, nil
	default:
		return false, fmt.Errorf("look for the process %s: %w", processID, err)
	}
}

// MayActivate asks for a job that cannot exist: whether token and tenants allow taking jobs.
func (c *Client) MayActivate(ctx context.Context, tenants []string) error {
	stream, err := c.gateway.ActivateJobs(ctx, &pb.ActivateJobsRequest{
		Type: noSuch, Worker: noSuch, MaxJobsToActivate: 1, Timeout: time.Second.Milliseconds(),
		RequestTimeout: -1, // answer at once
		TenantIds:      tenants,
	})
	for err == nil {
		_, err = stream.Recv()
	}
	if pollEnded(err) {
		return nil
	}
	return fmt.Errorf("ask for jobs: %w", err)
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

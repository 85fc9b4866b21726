package zeebe

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/clock"
	"retry-worker/internal/worker"
)

var (
	_ worker.HoldingEngine = (*Client)(nil)
	_ worker.ReviewEngine  = (*Client)(nil)
)

// Activate implements worker.Engine.
func (c *Client) Activate(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
	jobs, err := c.gateway.activate(ctx, &r)
	return jobs, pollError(err)
}

// Complete implements worker.Engine.
func (c *Client) Complete(ctx context.Context, j *worker.Job, variables string) error {
	return replyError(c.gateway.complete(ctx, j, variables))
}

// Throw implements worker.Engine. The engine drops variables of an error that the boundary event does
// not map, so they are set on the task's element instance first, from where they reach the process.
func (c *Client) Throw(ctx context.Context, j *worker.Job, e worker.BPMNError) error {
	if !c.plainErrors {
		if err := c.gateway.setVariables(ctx, j.ElementInstanceKey, e.Variables); err != nil {
			return preparationError(err)
		}
	}
	return replyError(c.gateway.throw(ctx, j, &e))
}

// Fail implements worker.Engine.
func (c *Client) Fail(ctx context.Context, j *worker.Job, f worker.Failure) error {
	return replyError(c.gateway.fail(ctx, j, &f))
}

// Hold implements worker.HoldingEngine.
func (c *Client) Hold(ctx context.Context, j *worker.Job, long time.Duration) error {
	return replyError(c.gateway.setTimeout(ctx, j, long))
}

// Runs implements worker.ReviewEngine.
func (c *Client) Runs(ctx context.Context, processInstanceKey int64) (bool, error) {
	err := c.gateway.touch(ctx, processInstanceKey)
	if err != nil && kindOf(err) == worker.Gone {
		return false, nil
	}
	return err == nil, replyError(err)
}

// replyError classifies what the gateway said to an answer; nil stays nil.
func replyError(err error) error {
	if err == nil {
		return nil
	}
	return &worker.EngineError{Kind: kindOf(err), Err: err}
}

// preparationError is replyError for a command before the answer itself: whatever became of it, the
// job has not been answered.
func preparationError(err error) error {
	kind := kindOf(err)
	if kind == worker.Ambiguous {
		kind = worker.NotTaken
	}
	return &worker.EngineError{Kind: kind, Err: err}
}

// pollError classifies what the gateway said to an activation; nil stays nil.
func pollError(err error) error {
	if err == nil {
		return nil
	}
	kind := kindOf(err)
	// The receive limit is enforced on this side, with the code the gateway uses for being busy.
	if status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "received message") {
		kind = worker.TooLarge
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
	case codes.ResourceExhausted, codes.Unauthenticated, codes.PermissionDenied:
		return worker.NotTaken
	case codes.InvalidArgument, codes.Unimplemented, codes.OutOfRange, codes.AlreadyExists:
		return worker.Refused
	default: // UNAVAILABLE, DEADLINE_EXCEEDED, CANCELED, UNKNOWN, INTERNAL, ABORTED, DATA_LOSS
		return worker.Ambiguous
	}
}

// Topology is what the gateway says of its cluster.
type Topology struct {
	GatewayVersion                         string
	Brokers, Partitions, ReplicationFactor int32
	// Leaders is the number of partitions that have one: work goes on where it equals Partitions.
	Leaders int32
}

// Topology asks the gateway for its cluster; the cheapest proof that it can be reached.
func (c *Client) Topology(ctx context.Context) (Topology, error) {
	t, err := c.gateway.topology(ctx)
	if err != nil {
		return t, fmt.Errorf("ask for the topology: %w", err)
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
	all, err := c.gateway.deploy(ctx, name, content, tenant)
	if said := status.Convert(err).Message(); status.Code(err) == codes.InvalidArgument &&
		!strings.Contains(said, "tenant") {
		return nil, refusedModel(name, said, err)
	}
	if err != nil {
		return nil, fmt.Errorf("deploy %s: %w", name, err)
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

// Create starts an instance of the newest version of a process and returns its key. variables is a JSON object. A
// gateway that is too busy to take it is asked again until ctx ends.
func (c *Client) Create(ctx context.Context, processID, variables string) (int64, error) {
	key, err := c.gateway.create(ctx, processID, variables)
	for status.Code(err) == codes.ResourceExhausted && ctx.Err() == nil {
		clock.Machine{}.Rest(ctx, busyPause)
		key, err = c.gateway.create(ctx, processID, variables)
	}
	if err != nil {
		return 0, fmt.Errorf("start an instance of %s: %w", processID, err)
	}
	return key, nil
}

// noSuch is the type of a job that no model has.
const noSuch = "retry-worker-check"

// MayActivate asks for a job that cannot exist: whether token and tenants allow taking jobs.
func (c *Client) MayActivate(ctx context.Context, tenants []string) error {
	_, err := c.gateway.activate(ctx, &worker.ActivateRequest{
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
	if err := c.gateway.publish(ctx, name, key, life); err != nil {
		return fmt.Errorf("publish the message %s: %w", name, err)
	}
	return nil
}

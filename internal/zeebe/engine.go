package zeebe

import (
	"context"
	"errors"
	"io"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/internal/worker"
)

var _ worker.Engine = (*Client)(nil)

// Activate implements worker.Engine.
func (c *Client) Activate(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
	stream, err := c.gateway.ActivateJobs(ctx, &pb.ActivateJobsRequest{
		Type:              r.JobType,
		Worker:            r.Worker,
		Timeout:           r.JobTimeout.Milliseconds(),
		MaxJobsToActivate: int32(r.MaxJobs),
		FetchVariable:     r.Variables,
		RequestTimeout:    r.PollTimeout.Milliseconds(),
		TenantIds:         r.TenantIDs,
	})
	if err != nil {
		return nil, pollError(err)
	}
	var jobs []worker.Job
	for {
		response, err := stream.Recv()
		if pollEnded(err) {
			return jobs, nil
		}
		if err != nil {
			return jobs, pollError(err)
		}
		for _, j := range response.Jobs {
			jobs = append(jobs, worker.Job{
				Key: j.Key, ProcessInstanceKey: j.ProcessInstanceKey, ElementInstanceKey: j.ElementInstanceKey,
				Type: j.Type, TenantID: j.TenantId, Retries: j.Retries,
				Headers: j.CustomHeaders, Variables: j.Variables,
			})
		}
	}
}

// Complete implements worker.Engine.
func (c *Client) Complete(ctx context.Context, j *worker.Job, variables string) error {
	_, err := c.gateway.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: j.Key, Variables: variables})
	return replyError(err)
}

// Throw implements worker.Engine. The engine drops variables of an error that the boundary event does
// not map, so they are set on the task's element instance first, from where they reach the process.
func (c *Client) Throw(ctx context.Context, j *worker.Job, e worker.BPMNError) error {
	if !c.plainErrors {
		_, err := c.gateway.SetVariables(ctx, &pb.SetVariablesRequest{
			ElementInstanceKey: j.ElementInstanceKey, Variables: e.Variables, Local: false,
		})
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

// pollEnded reports whether the gateway has said all it had to say.
func pollEnded(err error) bool { return errors.Is(err, io.EOF) }

package zeebe

import (
	"context"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/internal/worker"
)

var (
	_ worker.KeepingEngine = (*Client)(nil)
	_ worker.Waiters       = (*Client)(nil)
)

// Hold implements worker.KeepingEngine.
func (c *Client) Hold(ctx context.Context, j *worker.Job, long time.Duration) error {
	_, err := c.gateway.UpdateJobTimeout(ctx, &pb.UpdateJobTimeoutRequest{JobKey: j.Key, Timeout: long.Milliseconds()})
	return replyError(err)
}

// Runs implements worker.Waiters. The gateway has no query; setting no variables in an instance changes nothing, and is
// refused where it has ended (tried on 8.5.8).
func (c *Client) Runs(ctx context.Context, processInstanceKey int64) (bool, error) {
	_, err := c.gateway.SetVariables(ctx,
		&pb.SetVariablesRequest{ElementInstanceKey: processInstanceKey, Variables: "{}", Local: true})
	if err == nil {
		return true, nil
	}
	if kindOf(err) == worker.Gone {
		return false, nil
	}
	return false, replyError(err)
}

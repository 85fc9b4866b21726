package image

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// claims are instances of testdata/restarts.bpmn: the worker analyses each, and the test takes it.
type claims struct {
	gateway pb.GatewayClient
	created int
	seen    map[string]int // how often each came
}

// submit deploys the model to the engine at an address.
func submit(t *testing.T, address string) *claims {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	c := &claims{pb.NewGatewayClient(connection), 0, map[string]int{}}
	_, err = c.gateway.DeployResource(wait.Context(t), &pb.DeployResourceRequest{
		Resources: []*pb.Resource{{Name: "restarts.bpmn", Content: []byte(testkit.Read(t, "testdata/restarts.bpmn"))}},
	})
	testkit.Must(t, err)
	return c
}

func (c *claims) create(ctx context.Context) error {
	c.created++
	_, err := c.gateway.CreateProcessInstance(ctx, &pb.CreateProcessInstanceRequest{
		BpmnProcessId: "RESTARTS", Version: -1,
		Variables: fmt.Sprintf(`{"claimId":"CLM-RESTARTS-%d","submissionError":"TIMEOUT"}`, c.created),
	}, grpc.WaitForReady(true))
	return err
}

// expectOnce waits until every claim was analysed, and holds that it was once: by the engine, and by its history as JSON.
func (c *claims) expectOnce(t *testing.T, history func(claim string) string) {
	t.Helper()
	wait.Until(t, "every claim analysed", func() bool {
		c.take(t)
		return len(c.seen) == c.created
	}, func() string { return fmt.Sprintf("%d of %d", len(c.seen), c.created) })
	for claim, times := range c.seen {
		if attempts := strings.Count(history(claim), `"attemptNumber"`); times != 1 || attempts != 1 {
			t.Errorf("%s came %d times with %d attempts, expected one of each", claim, times, attempts)
		}
	}
}

// take takes claims that were analysed. An engine that is not ready yet has none.
func (c *claims) take(t *testing.T) {
	t.Helper()
	const most, long = 100, 600_000
	stream, err := c.gateway.ActivateJobs(wait.Context(t), &pb.ActivateJobsRequest{
		Type: "take", Worker: "test", MaxJobsToActivate: most, Timeout: long, RequestTimeout: 1000,
	})
	for err == nil {
		var batch *pb.ActivateJobsResponse
		batch, err = stream.Recv()
		for _, job := range batch.GetJobs() {
			var claim struct {
				ClaimID    string `json:"claimId"`
				RetryCount int
			}
			testkit.Must(t, json.Unmarshal([]byte(job.GetVariables()), &claim))
			if c.seen[claim.ClaimID]++; claim.RetryCount != 1 {
				t.Errorf("%s has the count %d, expected 1", claim.ClaimID, claim.RetryCount)
			}
		}
	}
}

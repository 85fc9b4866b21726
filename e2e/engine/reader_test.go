package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"golang.org/x/sync/errgroup"

	"retry-worker/internal/testkit"
)

// TestWhoDoesNotReadHurtsNobody has a client ask for jobs on many streams and read none of them. It gets no more than its
// connection may hold; others are served.
func TestWhoDoesNotReadHurtsNobody(t *testing.T) {
	c := start(t)
	c.deploy("LARGE", "large")
	c.deploy("SMALL", "small")
	const jobs, size = 400, 200 << 10 // 80 MB in all
	text := strings.Repeat("x", size)
	var creating errgroup.Group
	creating.SetLimit(8)
	for range jobs {
		creating.Go(func() error {
			_, err := c.CreateProcessInstance(t.Context(), &pb.CreateProcessInstanceRequest{BpmnProcessId: "LARGE", Version: -1, Variables: `{"text":"` + text + `"}`})
			return err
		})
	}
	testkit.Must(t, creating.Wait())
	silent := connect(t, c.Engine)
	var asking sync.WaitGroup
	for range 200 {
		asking.Go(func() {
			_, err := silent.ActivateJobs(t.Context(), &pb.ActivateJobsRequest{
				Type: "large", Worker: "silent", Timeout: 60_000, MaxJobsToActivate: 10, RequestTimeout: 60_000,
			})
			testkit.Must(t, err)
		})
	}
	asking.Wait()
	_, err := c.CreateProcessInstance(t.Context(), &pb.CreateProcessInstanceRequest{BpmnProcessId: "SMALL", Version: -1})
	testkit.Must(t, err)
	if got := take(t.Context(), c, "small"); len(got) != 1 {
		t.Errorf("another client was given %d jobs, expected 1", len(got))
	}
	if got := take(t.Context(), c, "large"); len(got) == 0 {
		t.Error("another client was given none of the jobs that the silent one asked for: that one holds them all")
	}
}

func take(ctx context.Context, c *client, jobType string) (jobs []*pb.ActivatedJob) {
	stream, err := c.ActivateJobs(ctx, &pb.ActivateJobsRequest{
		Type: jobType, Worker: "load", Timeout: 60_000, MaxJobsToActivate: 50, RequestTimeout: 2000,
	})
	for err == nil {
		var r *pb.ActivateJobsResponse
		if r, err = stream.Recv(); err == nil {
			jobs = append(jobs, r.Jobs...)
		}
	}
	return jobs
}

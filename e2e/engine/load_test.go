package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/engine"
	"retry-worker/internal/testkit"
)

// mostMemory is what the engine may take at its peak, in MB, however many instances have passed through it: the events that it
// keeps for readers, and what 500 open instances take.
const mostMemory = 400

// TestManyInstances plays ENGINE_INSTANCES through SUB_06's loop, 500 at a time: one failure, a wait that is over at once, a
// success. What has ended takes no memory.
func TestManyInstances(t *testing.T) {
	instances := harness.Setting(t, "ENGINE_INSTANCES", 2000)
	c := start(t)
	testkit.Must(t, engine.Deploy(t.Context(), c))
	before, _ := taken(t, c.PID())
	begun := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	var jobs, commands atomic.Int64
	var ended sync.WaitGroup
	ended.Add(instances)
	room := make(chan struct{}, 500)
	var working errgroup.Group
	for jobType, answers := range map[string][]string{
		"submission-gate": {`{"gateHeld":"PT0S","gateReason":"up","gateCanary":false}`},
		"analyze-retry": {`{"shouldRetry":true,"retryCount":1,"maxRetries":5,"backoffMinutes":5,"backoffDuration":"PT5M",` +
			`"nextRetryTime":"2026-01-01T00:00:00Z","retryReason":"Transient error, retry 1 of 5","errorClassification":"TRANSIENT",` +
			`"originalError":"TIMEOUT","retryPolicy":"tiss-submission"}`},
		"submit-claim":         {`{"submissionError":"TIMEOUT"}`},
		"record-retry-outcome": {`{}`},
	} {
		for range 2 {
			working.Go(func() error {
				for ctx.Err() == nil {
					for _, j := range take(ctx, c, jobType) {
						if err := answer(ctx, c, j, answers[0]); err != nil {
							return fmt.Errorf("%s: %w", jobType, err)
						}
						jobs.Add(1)
						commands.Add(1)
						if jobType == "record-retry-outcome" {
							<-room
							ended.Done()
						}
					}
					commands.Add(1)
				}
				return nil
			})
		}
	}
	for n := range instances {
		room <- struct{}{}
		_, err := c.CreateProcessInstance(t.Context(), &pb.CreateProcessInstanceRequest{
			BpmnProcessId: "SUB_06", Version: -1, Variables: fmt.Sprintf(`{"claimId":"CLM-%d","operadora":"portal"}`, n),
		})
		testkit.Must(t, err)
		commands.Add(1)
	}
	ended.Wait()
	took := time.Since(begun)
	cpu, peak := taken(t, c.PID())
	cancel()
	testkit.Must(t, working.Wait())
	if peak > mostMemory {
		t.Errorf("%d instances took %d MB, at most %d are expected", instances, peak, mostMemory)
	}
	harness.Report(t, "engine  %d instances of SUB_06's loop in %.1f s: %d jobs, %.0f commands/s, %.0f µs CPU a job, peak %d MB", instances,
		took.Seconds(), jobs.Load(), float64(commands.Load())/took.Seconds(), 1e6*(cpu-before)/float64(jobs.Load()), peak)
}

func take(ctx context.Context, c *client, jobType string) (jobs []*pb.ActivatedJob) {
	stream, err := c.ActivateJobs(ctx, &pb.ActivateJobsRequest{
		Type: jobType, Worker: "load", Timeout: 60_000, MaxJobsToActivate: 50, RequestTimeout: 2000,
		FetchVariable: []string{"claimId", "retryCount", "submissionError"},
	})
	for err == nil {
		var r *pb.ActivateJobsResponse
		if r, err = stream.Recv(); err == nil {
			jobs = append(jobs, r.Jobs...)
		}
	}
	return jobs
}

// answer completes a job; a claim's first submission fails.
func answer(ctx context.Context, c *client, j *pb.ActivatedJob, variables string) (err error) {
	if j.Type == "submit-claim" && !strings.Contains(j.Variables, "retryCount") {
		_, err = c.ThrowError(ctx, &pb.ThrowErrorRequest{JobKey: j.Key, ErrorCode: "SUBMISSION_FAILED", Variables: variables})
		return err
	}
	_, err = c.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: j.Key, Variables: variables})
	return err
}

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

// taken returns the CPU time that a process has taken, in seconds, and the most memory that it had at once, in MB.
func taken(t *testing.T, pid int) (cpu float64, peak uint64) {
	t.Helper()
	p, err := procfs.NewProc(pid)
	testkit.Must(t, err)
	stat, err := p.Stat()
	testkit.Must(t, err)
	status, err := p.NewStatus()
	testkit.Must(t, err)
	return stat.CPUTime(), status.VmHWM >> 20
}

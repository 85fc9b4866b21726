package engine_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// witness is what clients were told by an engine that is killed again and again.
type witness struct {
	*client
	mu       sync.Mutex
	created  map[int64]bool  // instances
	held     map[int64]int64 // the deadline of a job that a client was given, by its key
	answered map[int64]bool  // jobs whose completion was acknowledged
	jobs     map[int64]int   // completions by instance
	ended    map[int64]bool  // instances, by the engine's events
}

const (
	clients = 8
	// inFlight is how many jobs the clients hold together.
	inFlight = 200
	// jobTimeout is when a job comes back that a client took and did not answer, as the engine was killed.
	jobTimeout = time.Second
)

// TestKilledEngineLosesNothing kills the engine under load ENGINE_KILLS times. Every instance that a client was told of is
// carried through; no job is given again that was answered, or before its time-out that a client holds.
func TestKilledEngineLosesNothing(t *testing.T) {
	t.Parallel()
	kills := harness.Setting(t, "ENGINE_KILLS", 5)
	seed := uint64(harness.Setting(t, "ENGINE_SEED", 20260301))
	dice := rand.New(rand.NewPCG(seed, 0))
	w := &witness{client: start(t), created: map[int64]bool{}, held: map[int64]int64{}, answered: map[int64]bool{}, jobs: map[int64]int{},
		ended: map[int64]bool{}}
	w.deploy("TWO", "one", "two")
	ctx, cancel := context.WithCancel(t.Context())
	var working, reading sync.WaitGroup
	read, enough := context.WithCancel(t.Context())
	reading.Go(func() { w.follow(read, w.see) })
	for range clients {
		working.Go(func() { w.create(ctx) })
		working.Go(func() { w.work(ctx, "one") })
		working.Go(func() { w.work(ctx, "two") })
	}
	for range kills {
		time.Sleep(time.Duration(20+dice.IntN(150)) * time.Millisecond) // the instant of a kill is the draw
		w.Kill()
		testkit.Must(t, w.Restart(t.Context()))
	}
	cancel()
	working.Wait()
	w.finish()
	enough()
	reading.Wait()
	harness.Report(t, "engine  %d kills (seed %d) under %d jobs in flight: %d instances told of, %d jobs answered, none lost, none given again",
		kills, seed, inFlight, len(w.created), len(w.answered))
}

// create starts instances, no more than the clients can hold.
func (w *witness) create(ctx context.Context) {
	for ctx.Err() == nil {
		w.mu.Lock()
		open := 0
		for key := range w.created {
			if w.jobs[key] < 2 {
				open++
			}
		}
		w.mu.Unlock()
		if open >= inFlight {
			time.Sleep(time.Millisecond)
			continue
		}
		for range inFlight / clients {
			r, err := w.CreateProcessInstance(ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: "TWO", Version: -1}, grpc.WaitForReady(true))
			if err != nil {
				break
			}
			w.mu.Lock()
			w.created[r.ProcessInstanceKey] = true
			w.mu.Unlock()
		}
	}
}

func (w *witness) work(ctx context.Context, jobType string) {
	for ctx.Err() == nil {
		jobs := w.poll(ctx, jobType, time.Second)
		for _, j := range jobs {
			if w.complete(ctx, j) != nil {
				break // it holds the others, and lets them be
			}
		}
	}
}

// poll takes jobs, and holds each against what is known of it.
func (w *witness) poll(ctx context.Context, jobType string, wait time.Duration) (jobs []*pb.ActivatedJob) {
	stream, err := w.ActivateJobs(ctx, &pb.ActivateJobsRequest{
		Type: jobType, Worker: "witness", Timeout: jobTimeout.Milliseconds(), MaxJobsToActivate: inFlight / clients,
		RequestTimeout: wait.Milliseconds(),
	}, grpc.WaitForReady(true))
	for err == nil {
		var r *pb.ActivateJobsResponse
		if r, err = stream.Recv(); err == nil {
			jobs = append(jobs, r.Jobs...)
		}
	}
	if !errors.Is(err, io.EOF) && len(jobs) == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range jobs {
		if w.answered[j.Key] {
			w.t.Errorf("job %d was answered, which was acknowledged, and is given again", j.Key)
		}
		if deadline, is := w.held[j.Key]; is && j.Deadline-jobTimeout.Milliseconds() < deadline {
			w.t.Errorf("job %d is held until %d, and given again at %d", j.Key, deadline, j.Deadline-jobTimeout.Milliseconds())
		}
		w.held[j.Key] = j.Deadline
	}
	return jobs
}

func (w *witness) complete(ctx context.Context, j *pb.ActivatedJob) error {
	_, err := w.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: j.Key, Variables: `{"done":true}`})
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.answered[j.Key] = true
		w.jobs[j.ProcessInstanceKey]++
	}
	return err
}

// finish carries on what is left, once the clients' jobs have timed out, and holds what ended against what was told.
func (w *witness) finish() {
	testkit.Must(w.t, w.AddTime(w.t.Context(), jobTimeout+time.Second))
	wait.Until(w.t, "the end of all instances that clients were told of", func() bool {
		// A poll that was cancelled may take jobs even now: they come back a second later.
		for _, jobType := range []string{"one", "two"} {
			for _, j := range w.poll(w.t.Context(), jobType, -time.Millisecond) {
				testkit.Must(w.t, w.complete(w.t.Context(), j))
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for key := range w.created {
			if !w.ended[key] {
				return false
			}
		}
		return true
	})
}

// see notes which instances came to their end.
func (w *witness) see(e *event) {
	if e.ValueType == "PROCESS_INSTANCE" && e.Intent == "ELEMENT_COMPLETED" && e.Value.BpmnElementType == "PROCESS" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended[e.Key] = true
	}
}

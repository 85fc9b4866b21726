package gatewaytest_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/gatewaytest"
)

// TestNoJobIsLostWhateverHappens plays many workers, refusals, lost
// acknowledgements and a server that comes and goes; with -race it is the proof
// that the stub itself is sound.
func TestNoJobIsLostWhateverHappens(t *testing.T) {
	const jobs = 600
	g := gatewaytest.Start(gatewaytest.Options{JobsPerMessage: 4})
	t.Cleanup(g.Close)
	g.Inject(gatewaytest.Fault{Probability: 0.05, Seed: 1, Code: codes.ResourceExhausted})
	g.Inject(gatewaytest.Fault{Method: gatewaytest.CompleteJob, Probability: 0.05, Seed: 2, DropAck: true})
	g.Inject(gatewaytest.Fault{Method: gatewaytest.CompleteJob, Probability: 0.01, Seed: 3, DropAck: true, DropConnection: true})
	g.Inject(gatewaytest.Fault{Method: gatewaytest.ActivateJobs, Probability: 0.2, Seed: 4, CutStream: true, CutAfter: 2})
	ctx, stop := context.WithCancel(deadline(t))
	defer stop()
	var workers sync.WaitGroup
	for n := range 6 {
		c := dial(t, g)
		workers.Go(func() { playWorker(ctx, c, uint64(n)) })
	}
	keys := g.AddJobs(work(jobs)...)
	for _, share := range []int{jobs / 4, jobs / 2} {
		settled(t, g, share)
		g.Down()
		g.Up()
	}
	settled(t, g, jobs)
	stop()
	workers.Wait()
	report := g.Report()
	if report.Unanswered != 0 || report.Locked != 0 {
		t.Errorf("%v; want each of %d answered, none locked", report, jobs)
	}
	for _, j := range report.Jobs {
		// An acknowledgement that went down with its connection looks like one that arrived, and the crude
		// worker's next try like a repeat; that one answer settles a job is what must hold.
		if j.Settling != 1 {
			t.Errorf("job %d was settled by %d answers, want 1", j.Key, j.Settling)
		}
	}
	for _, key := range keys {
		if r := record(t, g.Engine, key); r.State != gatewaytest.Completed {
			t.Errorf("job %d is %v after %+v", key, r.State, r.Answers)
		}
	}
	t.Log(report)
}

func settled(t *testing.T, g *gatewaytest.Gateway, n int) {
	t.Helper()
	if err := g.WaitFor(deadline(t), func(v gatewaytest.View) bool { return v.Settled() >= n }); err != nil {
		t.Fatal(err)
	}
}

// playWorker is a crude worker: it polls, completes or hands back, asks again
// until it is told something final, and moves the jobs' time-outs on by short
// holds.
func playWorker(ctx context.Context, c client, seed uint64) {
	draws := rand.New(rand.NewPCG(seed, 1))
	request := poll(7)
	request.Timeout, request.RequestTimeout, request.Worker = 300, 200, "w"+string(rune('a'+seed))
	for ctx.Err() == nil {
		jobs, _ := c.activate(ctx, request)
		for _, j := range jobs {
			answerUntilFinal(ctx, c, j, draws.IntN(10) == 0)
		}
	}
}

func answerUntilFinal(ctx context.Context, c client, j *pb.ActivatedJob, handBack bool) {
	for ctx.Err() == nil {
		var err error
		if handBack {
			_, err = c.FailJob(ctx, &pb.FailJobRequest{JobKey: j.Key, Retries: j.Retries}, grpc.WaitForReady(true))
		} else {
			_, err = c.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: j.Key}, grpc.WaitForReady(true))
		}
		if code := status.Code(err); code != codes.ResourceExhausted && code != codes.Unavailable {
			return
		}
		_ = waitABit(ctx)
	}
}

func waitABit(ctx context.Context) error {
	t := time.NewTimer(time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestWatchersAndPollsTogether lets the engine's waiting, watching and moving
// clock meet, for the race detector and for lost wake-ups.
func TestWatchersAndPollsTogether(t *testing.T) {
	e := newEngine(t, gatewaytest.EngineOptions{})
	ctx := deadline(t)
	const jobs = 300
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for e.Counts().Settled() < jobs {
				got, _ := e.Activate(ctx, ask("w1", 3, 20*time.Millisecond))
				for _, j := range got {
					_ = e.Complete(ctx, completion("w1", j.Key))
				}
				if ctx.Err() != nil {
					return
				}
			}
		})
	}
	done.Go(func() {
		for range jobs {
			e.AddJob(work(1)[0])
			e.Advance(time.Second)
		}
	})
	for _, n := range []int{1, jobs / 2, jobs} {
		if err := e.WaitFor(ctx, func(v gatewaytest.View) bool { return v.Settled() >= n }); err != nil {
			t.Fatal(err)
		}
	}
	done.Wait()
}

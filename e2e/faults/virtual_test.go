package faults_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/gatewaytest"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// The tests here run on a bubble's clock: hours pass in milliseconds, and bounds are exact, whatever else
// the machine does. No socket is in them.

// What the loop promises (docs/architecture.md, one job's way).
const (
	firstPause    = 50 * time.Millisecond  // between two polls, the first of them refused
	longestPause  = 2 * time.Second        // between two polls
	longestRetry  = 500 * time.Millisecond // between two tries of an answer
	realTimeout   = 10 * time.Second       // of a job, as by default
	giveUpPolling = 10 * time.Second       // a poll that hangs
)

// bare is the stub engine as the loop's port.
type bare struct{ *gatewaytest.Engine }

func (b bare) Activate(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
	given, err := b.Engine.Activate(ctx, gatewaytest.ActivateRequest{
		Type: r.JobType, Worker: r.Worker, Caller: r.Worker, MaxJobs: r.MaxJobs, FetchVariables: r.Variables,
		Timeout: r.JobTimeout, RequestTimeout: r.PollTimeout, TenantIDs: r.TenantIDs,
	})
	jobs := make([]worker.Job, len(given))
	for i, j := range given {
		jobs[i] = worker.Job{
			Key: j.Key, ProcessInstanceKey: j.ProcessInstanceKey, ElementInstanceKey: j.ElementInstanceKey,
			Type: j.Type, TenantID: j.TenantID, Retries: int32(j.Retries), Headers: j.CustomHeaders, Variables: j.Variables,
		}
	}
	return jobs, classified(err)
}

func (b bare) Complete(ctx context.Context, j *worker.Job, variables string) error {
	return classified(b.Engine.Complete(ctx, gatewaytest.CompleteRequest{JobKey: j.Key, Variables: variables}))
}

func (b bare) Throw(ctx context.Context, j *worker.Job, e worker.BPMNError) error {
	return classified(b.Engine.Throw(ctx, gatewaytest.ThrowRequest{JobKey: j.Key, Code: e.Code, Message: e.Message, Variables: e.Variables}))
}

func (b bare) Fail(ctx context.Context, j *worker.Job, f worker.Failure) error {
	return classified(b.Engine.Fail(ctx, gatewaytest.FailRequest{
		JobKey: j.Key, Retries: int(f.Retries), BackOff: f.Backoff, Message: f.Message,
	}))
}

// classified stands for the adapter's table, which internal/zeebe's tests and the rows over sockets hold.
func classified(err error) error {
	kinds := map[codes.Code]worker.ErrorKind{
		codes.NotFound: worker.Gone, codes.FailedPrecondition: worker.Gone,
		codes.ResourceExhausted: worker.NotTaken, codes.Unauthenticated: worker.NotTaken, codes.PermissionDenied: worker.NotTaken,
		codes.InvalidArgument: worker.Refused, codes.Unimplemented: worker.Refused,
	}
	if err == nil {
		return nil
	}
	return &worker.EngineError{Kind: kinds[status.Code(err)], Err: err}
}

// bubble runs play with an engine and a worker on it, and ends both.
func bubble(t *testing.T, play func(t *testing.T, e *gatewaytest.Engine, counts *tally)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, counts := gatewaytest.NewEngine(gatewaytest.EngineOptions{}), newTally()
		defer e.Close()
		analyzer := worker.NewAnalyzer(decisiontest.Policies, decision.RNBIL005, testkit.StartJournal(t, testkit.NewMemory(), time.Now), time.Now, counts.hooks(), zap.NewNop())
		w := worker.New(bare{e}, worker.Config{
			Name: "w1", JobTimeout: realTimeout, PollTimeout: 2 * time.Second, MaxJobsActive: 50, Concurrency: 50,
		}, []worker.Subscription{
			{JobType: worker.AnalyzeRetry, Begin: analyzer.Begin},
		}, counts.hooks(), zap.NewNop())
		stop, stopNow := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.Run(stop, context.Background())
		}()
		play(t, e, counts)
		stopNow()
		<-ended
		if r := e.Report(); r.AnsweredMore > 0 || r.Unanswered > 0 || r.Locked > 0 {
			t.Errorf("%v; want each answered once, none locked", r)
		}
	})
}

// waitsAtMost fails where a job waited longer, or for its time-out.
func waitsAtMost(t *testing.T, e *gatewaytest.Engine, bound time.Duration) {
	t.Helper()
	if r := e.Report(); r.WaitAnswered > bound || r.TimedOut > 0 {
		t.Errorf("%v; want a wait of at most %s, and no time-out", r, bound)
	}
}

// TestRecovery: ten minutes of every status code, then none: the polls stay few, and what waits is answered
// with the next one.
func TestRecovery(t *testing.T) {
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		t.Run(codeName(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, e *gatewaytest.Engine, _ *tally) {
				polls := 0
				rule := e.Inject(gatewaytest.Fault{Method: gatewaytest.ActivateJobs, Code: code, Empty: code == codes.OK, Match: func(gatewaytest.Call) bool {
					if polls++; polls > 10_000 { // without pauses the bubble's clock would never move
						panic("polls without end")
					}
					return true
				}})
				time.Sleep(10 * time.Minute)
				if n := rule.Fired(); n < 300 || n > 610 {
					t.Errorf("%d polls in ten minutes, want one every second or two", n)
				}
				e.AddJobs(claim(0, passing), claim(1, permanent), claim(2, rejected))
				rule.Remove()
				time.Sleep(longestPause)
				synctest.Wait()
				waitsAtMost(t, e, longestPause)
				e.Inject(gatewaytest.Fault{Method: gatewaytest.ActivateJobs, Code: codes.Unavailable, Times: 1})
				e.AddJob(claim(3, passing)) // goes to the poll that waits; the next is refused
				synctest.Wait()
				late := e.AddJob(claim(4, passing))
				time.Sleep(firstPause)
				synctest.Wait()
				if j, _ := e.Job(late); j.LongestWait > firstPause || j.State != gatewaytest.Completed {
					t.Errorf("after a success a refusal costs %s (%v), want a short pause again", j.LongestWait, j.State)
				}
			})
		})
	}
}

// TestAnswersRefusedForAWhile: a refusal costs what it lasts and a pause, never the time-out, as long as it
// ends before that and before the longest poll can have eaten from it.
func TestAnswersRefusedForAWhile(t *testing.T) {
	for _, code := range []codes.Code{codes.ResourceExhausted, codes.Unavailable, codes.Unauthenticated, codes.Internal} {
		for _, lasts := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, 7 * time.Second} {
			t.Run(codeName(code)+" for "+lasts.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T, e *gatewaytest.Engine, _ *tally) {
					rule := e.Inject(gatewaytest.Fault{Code: code, Match: func(c gatewaytest.Call) bool { return c.Method != gatewaytest.ActivateJobs }})
					time.Sleep(3 * time.Second) // into a poll
					e.AddJobs(claim(0, passing), claim(1, permanent), claim(2, rejected))
					time.Sleep(lasts)
					rule.Remove()
					time.Sleep(longestRetry)
					synctest.Wait()
					waitsAtMost(t, e, lasts+longestRetry)
					if n := rule.Fired(); n > 3*(7+int(lasts/(longestRetry/2))) {
						t.Errorf("%d tries for three jobs in %s, want growing pauses", n, lasts)
					}
				})
			})
		}
	}
}

// TestRefusedUntilTheDeadline: what is known of a job that could not be answered depends on what was said.
func TestRefusedUntilTheDeadline(t *testing.T) {
	for code, want := range map[codes.Code]worker.Action{
		codes.ResourceExhausted: worker.Released, codes.Unauthenticated: worker.Released, codes.PermissionDenied: worker.Released,
		codes.Unavailable: worker.Unconfirmed, codes.Internal: worker.Unconfirmed,
	} {
		t.Run(codeName(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, e *gatewaytest.Engine, counts *tally) {
				rule := e.Inject(gatewaytest.Fault{Code: code, Match: func(c gatewaytest.Call) bool { return c.Method != gatewaytest.ActivateJobs }})
				e.AddJobs(claim(0, passing), claim(1, permanent), claim(2, rejected))
				time.Sleep(realTimeout - time.Millisecond)
				rule.Remove()
				if got := counts.figures().actions; got[want] != 3 {
					t.Errorf("the jobs became %v, want all %s", got, want)
				}
				time.Sleep(longestRetry)
				if r := e.Report(); r.AnsweredOnce != 3 || r.TimedOut != 3 {
					t.Errorf("%v; want all answered when they came again", r)
				}
			})
		})
	}
}

// TestAnHourOfTrouble: a claim a second, and a gateway that is away for five seconds of every minute.
func TestAnHourOfTrouble(t *testing.T) {
	const away = 5 * time.Second
	bubble(t, func(t *testing.T, e *gatewaytest.Engine, counts *tally) {
		for n := range 3600 {
			switch n % 60 {
			case 0:
				e.Inject(gatewaytest.Fault{Code: codes.Unavailable})
			case int(away / time.Second):
				e.ClearFaults()
			}
			e.AddJob(claim(n, []string{passing, permanent, rejected}[n%3]))
			time.Sleep(time.Second)
		}
		time.Sleep(longestPause)
		waitsAtMost(t, e, away+longestPause)
		if f := counts.figures().actions; f[worker.Completed] != 1200 || f[worker.Thrown] != 1200 || f[worker.Failed] != 1200 {
			t.Errorf("the jobs became %v, want 1200 of each kind", f)
		}
	})
}

// TestPausedBroker: for a minute no call is answered, with jobs in hand and others coming. When it goes on,
// the jobs that were in hand have run out, and all are answered once.
func TestPausedBroker(t *testing.T) {
	bubble(t, func(t *testing.T, e *gatewaytest.Engine, _ *tally) {
		hang := e.Inject(gatewaytest.Fault{Hang: true, Match: func(c gatewaytest.Call) bool { return c.Method != gatewaytest.ActivateJobs }})
		e.AddJobs(claim(0, passing), claim(1, permanent), claim(2, rejected))
		synctest.Wait()
		all := e.Inject(gatewaytest.Fault{Hang: true})
		for n := range 60 {
			e.AddJob(claim(3+n, passing))
			time.Sleep(time.Second)
		}
		hang.Remove()
		all.Remove()
		before := e.Now()
		time.Sleep(giveUpPolling + longestPause)
		synctest.Wait()
		for _, j := range e.Journal() {
			if last := j.Answers[len(j.Answers)-1]; last.At.Sub(before) > giveUpPolling+longestPause || !j.State.Settled() {
				t.Errorf("job %d is %v, %s after the pause", j.Key, j.State, last.At.Sub(before))
			}
		}
	})
}

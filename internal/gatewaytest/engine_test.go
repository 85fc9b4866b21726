package gatewaytest_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/gatewaytest"
)

// The tests here run the engine alone, inside bubbles: time moves by itself,
// and durations are exact.

func newEngine(t *testing.T, o gatewaytest.EngineOptions) *gatewaytest.Engine {
	e := gatewaytest.NewEngine(o)
	t.Cleanup(e.Close)
	return e
}

// ask is a poll of worker for up to n jobs that waits for wait.
func ask(worker string, n int, wait time.Duration) gatewaytest.ActivateRequest {
	return gatewaytest.ActivateRequest{
		Type: "work", Worker: worker, Caller: worker, MaxJobs: n,
		Timeout: 10 * time.Second, RequestTimeout: wait,
	}
}

// grab takes exactly one job at once.
func grab(t *testing.T, e *gatewaytest.Engine, worker string) gatewaytest.Job {
	t.Helper()
	jobs, err := e.Activate(t.Context(), ask(worker, 1, -1))
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%s got %d jobs with %v, want 1", worker, len(jobs), err)
	}
	return jobs[0]
}

func completion(worker string, key int64) gatewaytest.CompleteRequest {
	return gatewaytest.CompleteRequest{JobKey: key, Caller: worker}
}

func TestLongPollIsAnsweredAtOnceWhenAJobAppears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		begin := time.Now()
		time.AfterFunc(1234*time.Millisecond, func() { e.AddJobs(work(2)...) })
		jobs, err := e.Activate(t.Context(), ask("w1", 5, time.Minute))
		if err != nil || len(jobs) != 2 || time.Since(begin) != 1234*time.Millisecond {
			t.Errorf("got %d jobs with %v after %v, want 2 at 1.234s", len(jobs), err, time.Since(begin))
		}
		if d := time.Until(jobs[0].Deadline); d != 10*time.Second || jobs[0].Worker != "w1" || jobs[0].Retries != 3 {
			t.Errorf("activated for %v by %q with %d retries", d, jobs[0].Worker, jobs[0].Retries)
		}
	})
}

func TestEmptyPollEndsAfterItsRequestTimeout(t *testing.T) {
	for _, tt := range []struct{ wait, want time.Duration }{
		{-1, 0}, {0, gatewaytest.DefaultRequestTimeout}, {3 * time.Second, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, begin := newEngine(t, gatewaytest.EngineOptions{}), time.Now()
			jobs, err := e.Activate(t.Context(), ask("w1", 5, tt.wait))
			if err != nil || len(jobs) != 0 || time.Since(begin) != tt.want {
				t.Errorf("wait %v: %d jobs, %v after %v, want none after %v", tt.wait, len(jobs), err, time.Since(begin), tt.want)
			}
		})
	}
}

func TestOneJobWakesOnePollAndTheRestArePassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		var mu sync.Mutex
		var order []string
		var polls sync.WaitGroup
		for _, worker := range []string{"first", "second", "third"} {
			polls.Go(func() {
				jobs, _ := e.Activate(t.Context(), ask(worker, 1, time.Minute))
				mu.Lock()
				defer mu.Unlock()
				if len(jobs) == 1 {
					order = append(order, worker)
				}
			})
			synctest.Wait()
		}
		e.AddJob(work(1)[0])
		synctest.Wait()
		if got := strings.Join(order, " "); got != "first" {
			t.Errorf("one job went to %q, want the oldest poll", got)
		}
		e.AddJobs(work(2)...)
		synctest.Wait()
		if len(order) != 3 {
			t.Errorf("two more jobs, but %v were served", order)
		}
		polls.Wait()
	})
}

func TestAPollThatIsCancelledLeavesItsJobToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := e.Activate(ctx, ask("gone", 1, time.Minute))
			gone <- err
		}()
		synctest.Wait()
		cancel()
		wantCode(t, "cancelled poll", <-gone, codes.Canceled)
		e.AddJob(work(1)[0])
		grab(t, e, "w1")
	})
}

func TestTimeOutMakesAJobActivatableAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		key := e.AddJob(work(1)[0])
		grab(t, e, "a")
		begin := time.Now()
		jobs, err := e.Activate(t.Context(), ask("b", 1, time.Minute))
		if err != nil || len(jobs) != 1 || time.Since(begin) != 10*time.Second {
			t.Fatalf("b got %d jobs with %v after %v, want 1 after a's 10s", len(jobs), err, time.Since(begin))
		}
		r := record(t, e, key)
		if !r.Activations[0].RanOut || r.Activations[1].Worker != "b" || jobs[0].Retries != 3 {
			t.Errorf("a time-out must be noted and take no retry: %+v, %d retries", r.Activations, jobs[0].Retries)
		}
	})
}

func TestTenants(t *testing.T) {
	for name, tt := range map[string]struct {
		on      bool
		allowed []string
		ask     []string
		code    codes.Code
		jobs    int
	}{
		"off, none named":     {false, nil, nil, codes.OK, 1},
		"off, default named":  {false, nil, []string{"<default>"}, codes.OK, 1},
		"off, another named":  {false, nil, []string{"north"}, codes.InvalidArgument, 0},
		"on, none named":      {true, nil, nil, codes.InvalidArgument, 0},
		"on, one of two":      {true, nil, []string{"north"}, codes.OK, 1},
		"on, both":            {true, nil, []string{"north", "<default>"}, codes.OK, 2},
		"on, one not allowed": {true, []string{"north"}, []string{"north", "south"}, codes.PermissionDenied, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEngine(t, gatewaytest.EngineOptions{MultiTenancy: tt.on, Tenants: tt.allowed})
				e.AddJob(work(1)[0])
				e.AddJob(gatewaytest.Job{Type: "work", TenantID: "north"})
				r := ask("w1", 10, -1)
				r.TenantIDs = tt.ask
				jobs, err := e.Activate(t.Context(), r)
				wantCode(t, "poll", err, tt.code)
				if len(jobs) != tt.jobs {
					t.Errorf("%d jobs, want %d", len(jobs), tt.jobs)
				}
			})
		})
	}
}

func TestTenantsAreServedInTheOrderOfTheirJobs(t *testing.T) {
	e := newEngine(t, gatewaytest.EngineOptions{MultiTenancy: true})
	first := e.AddJob(gatewaytest.Job{Type: "work", TenantID: "south"})
	e.AddJob(gatewaytest.Job{Type: "work", TenantID: "north"})
	r := ask("w1", 1, -1)
	r.TenantIDs = []string{"north", "south"}
	if jobs, err := e.Activate(t.Context(), r); err != nil || len(jobs) != 1 || jobs[0].Key != first {
		t.Errorf("got %+v, %v; want the older job", jobs, err)
	}
}

func TestPollsThatMakeNoSense(t *testing.T) {
	e := newEngine(t, gatewaytest.EngineOptions{})
	for name, spoil := range map[string]func(*gatewaytest.ActivateRequest){
		"type":     func(r *gatewaytest.ActivateRequest) { r.Type = "" },
		"worker":   func(r *gatewaytest.ActivateRequest) { r.Worker = "" },
		"timeout":  func(r *gatewaytest.ActivateRequest) { r.Timeout = 0 },
		"max jobs": func(r *gatewaytest.ActivateRequest) { r.MaxJobs = 0 },
	} {
		r := ask("w1", 1, -1)
		spoil(&r)
		_, err := e.Activate(t.Context(), r)
		wantCode(t, name, err, codes.InvalidArgument)
	}
}

func TestABatchIsBoundedInBytesButNeverEmpty(t *testing.T) {
	e := newEngine(t, gatewaytest.EngineOptions{MaxBatch: 1000})
	big := `{"submissionError":"` + strings.Repeat("x", 1500) + `"}`
	small := `{"submissionError":"` + strings.Repeat("x", 300) + `"}`
	for _, doc := range []string{big, small, small, small} {
		e.AddJob(gatewaytest.Job{Type: "work", Variables: doc})
	}
	for i, want := range []int{1, 2, 1} {
		jobs, err := e.Activate(t.Context(), ask("w1", 10, -1))
		if err != nil || len(jobs) != want {
			t.Errorf("batch %d holds %d jobs (%v), want %d", i+1, len(jobs), err, want)
		}
	}
}

func TestMovableClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{ClockOffset: time.Hour})
		e.AddJob(work(1)[0])
		if ahead := time.Until(grab(t, e, "w1").Deadline); ahead != time.Hour+10*time.Second {
			t.Errorf("deadline %v ahead of the local clock, want 1h10s", ahead)
		}
		got := make(chan int)
		go func() {
			jobs, _ := e.Activate(t.Context(), ask("w2", 1, time.Minute))
			got <- len(jobs)
		}()
		synctest.Wait()
		begin := time.Now()
		e.Advance(10 * time.Second)
		if n := <-got; n != 1 || time.Since(begin) != 0 {
			t.Errorf("%d jobs %v after the clock moved past the time-out, want 1 at once", n, time.Since(begin))
		}
	})
}

func TestWipeStartsKeysOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		first := e.AddJob(work(1)[0])
		grab(t, e, "w1")
		e.Wipe()
		wantCode(t, "from before", e.Complete(t.Context(), completion("w1", first)), codes.NotFound)
		if again := e.AddJob(work(1)[0]); again != first {
			t.Errorf("first key %d after the wipe, %d before", again, first)
		}
	})
}

func TestHeldIsCountedPerWorker(t *testing.T) {
	e := newEngine(t, gatewaytest.EngineOptions{})
	keys := e.AddJobs(work(5)...)
	for _, worker := range []string{"a", "b"} {
		if _, err := e.Activate(t.Context(), ask(worker, 2, -1)); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, "complete", e.Complete(t.Context(), completion("a", keys[0])), codes.OK)
	now, most := e.HeldBy("a")
	if c := e.Counts(); now != 1 || most != 2 || c.Held != 3 || c.MaxHeld != 4 {
		t.Errorf("a holds %d (most %d), all %d (most %d); want 1 (2) and 3 (4)", now, most, c.Held, c.MaxHeld)
	}
}

func TestWaitForSeesWhatTimeDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		e.AddJob(work(1)[0])
		grab(t, e, "w1")
		begin := time.Now()
		err := e.WaitFor(t.Context(), func(v gatewaytest.View) bool { return v.TimedOut == 1 })
		if err != nil || time.Since(begin) != 10*time.Second {
			t.Errorf("%v after %v, want the time-out after 10s", err, time.Since(begin))
		}
	})
}

func TestWaitForSaysWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		e.AddJob(work(1)[0])
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := e.WaitFor(ctx, func(v gatewaytest.View) bool { return v.Settled() == 1 })
		if err == nil || !strings.Contains(err.Error(), "1 ACTIVATABLE") {
			t.Errorf("found %v, want the engine's state in it", err)
		}
	})
}

func TestMistakesOfATestPanic(t *testing.T) {
	for name, mistake := range map[string]func(*gatewaytest.Engine){
		"job without a type":   func(e *gatewaytest.Engine) { e.AddJob(gatewaytest.Job{}) },
		"variables no object":  func(e *gatewaytest.Engine) { e.AddJob(gatewaytest.Job{Type: "a", Variables: "[]"}) },
		"fault without effect": func(e *gatewaytest.Engine) { e.Inject(gatewaytest.Fault{Times: 1}) },
		"two ends of a call":   func(e *gatewaytest.Engine) { e.Inject(gatewaytest.Fault{Hang: true, Code: codes.Aborted}) },
		"cut of a completion": func(e *gatewaytest.Engine) {
			e.Inject(gatewaytest.Fault{Method: gatewaytest.CompleteJob, CutStream: true})
		},
		"probability of 2":       func(e *gatewaytest.Engine) { e.Inject(gatewaytest.Fault{Hang: true, Probability: 2}) },
		"lost ack of no effect":  func(e *gatewaytest.Engine) { e.Inject(gatewaytest.Fault{Empty: true, DropAck: true}) },
		"endless without a type": func(e *gatewaytest.Engine) { e.SetEndless(gatewaytest.Endless{}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			mistake(newEngine(t, gatewaytest.EngineOptions{}))
		})
	}
}

package worker_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/worker"
)

func TestActivationRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEngine()
		cfg := config()
		cfg.TenantIDs = []string{"hospital-a", "hospital-b"}
		r := start(t, e, cfg, []worker.Subscription{
			{JobType: "one", Begin: worker.Always(completing, "claimId")},
			{JobType: "two", Begin: worker.Always(completing, "messageId", "sendError")},
		})
		time.Sleep(time.Second) // two polls each
		variables := map[string][]string{"one": {"claimId"}, "two": {"messageId", "sendError"}}
		polls := map[string]int{}
		for _, p := range e.asked() {
			wait := pollTimeout
			if polls[p.JobType]++; polls[p.JobType] == 1 {
				wait = firstPoll
			}
			if p.Worker != "tester" || p.MaxJobs != 50 || p.JobTimeout != jobTimeout || p.PollTimeout != wait ||
				!slices.Equal(p.TenantIDs, cfg.TenantIDs) || !slices.Equal(p.Variables, variables[p.JobType]) {
				t.Errorf("poll %d asked for %+v", polls[p.JobType], p.ActivateRequest)
			}
		}
		if polls["one"] != 2 || polls["two"] != 2 {
			t.Errorf("%v polls, want two for each job type", polls)
		}
		r.finish(t)
	})
}

// TestAsksBelowSeventyPercent holds the loop to §1: it asks again as soon as less than 70 % of its
// places are taken, not before, and for no more than are free.
func TestAsksBelowSeventyPercent(t *testing.T) {
	for _, most := range []int{1, 2, 3, 7, 10, 50, 90, 100} {
		t.Run(strconv.Itoa(most), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := newEngine()
				e.endless()
				cfg := config()
				cfg.MaxJobsActive, cfg.Concurrency = most, most
				answers := make(chan struct{})
				all := sync.OnceFunc(func() { close(answers) })
				defer all()
				r := start(t, e, cfg, one(func(context.Context, *worker.Job) worker.Reply {
					<-answers
					return worker.Reply{Action: worker.Completed, Variables: "{}"}
				}))
				synctest.Wait()
				for held := most; held*10 >= most*7; held-- {
					if n := len(e.asked()); n != 1 {
						t.Fatalf("%d polls while %d of %d places are taken, want the first one only", n, held, most)
					}
					answers <- struct{}{}
					synctest.Wait()
				}
				asked := e.asked()
				if len(asked) != 2 {
					t.Fatalf("%d polls below 70 %%, want a second one", len(asked))
				}
				if free := len(e.told()); asked[1].MaxJobs != free {
					t.Errorf("asked for %d jobs with %d places free", asked[1].MaxJobs, free)
				}
				all()
				r.finish(t)
				if r.highest > most {
					t.Errorf("held %d jobs, want at most %d", r.highest, most)
				}
			})
		})
	}
}

// TestBursts lets the engine give all that is asked for, all the time, and more than the handlers can do.
func TestBursts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEngine()
		e.endless()
		r := start(t, e, config(), one(func(context.Context, *worker.Job) worker.Reply {
			time.Sleep(7 * time.Millisecond)
			return worker.Reply{Action: worker.Completed, Variables: "{}"}
		}))
		time.Sleep(time.Minute)
		r.finish(t)
		if r.highest > 50 {
			t.Errorf("held %d jobs at once, want at most 50", r.highest)
		}
		// 8 handlers at 7 ms each are never without work.
		if n := r.actions()[worker.Completed]; n < 8*60_000/7-50 {
			t.Errorf("%d jobs in a minute: the handlers had to wait for jobs", n)
		}
		for _, p := range e.asked() {
			if p.MaxJobs < 1 || p.MaxJobs > 50 {
				t.Fatalf("asked for %d jobs, want 1 to 50", p.MaxJobs)
			}
		}
	})
}

// TestEngineThatGivesTooMuch: what was activated is answered even if it was not asked for.
func TestEngineThatGivesTooMuch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEngine()
		first := true
		e.onPoll = func(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
			if first {
				first = false
				return jobs(r.JobType, 1, 5*r.MaxJobs), nil
			}
			return idle(ctx, r)
		}
		r := start(t, e, config(), one(completing))
		time.Sleep(time.Second)
		r.finish(t)
		r.wantActions(t, map[worker.Action]int{worker.Completed: 250})
	})
}

// TestOneLoopPerType: a type whose places are all taken keeps no other from being served.
func TestOneLoopPerType(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEngine()
		e.endless()
		cfg := config()
		cfg.MaxJobsActive, cfg.Concurrency = 5, 6
		stuck := make(chan struct{})
		release := sync.OnceFunc(func() { close(stuck) })
		defer release()
		r := start(t, e, cfg, []worker.Subscription{
			{JobType: "stuck", Begin: worker.Always(func(_ context.Context, _ *worker.Job) worker.Reply {
				<-stuck
				return worker.Reply{Action: worker.Completed, Variables: "{}"}
			}, "a")},
			{JobType: "lively", Begin: worker.Always(func(context.Context, *worker.Job) worker.Reply {
				time.Sleep(10 * time.Millisecond)
				return worker.Reply{Action: worker.Completed, Variables: "{}"}
			}, "a")},
		})
		time.Sleep(time.Second)
		polls := map[string]int{}
		for _, p := range e.asked() {
			polls[p.JobType]++
		}
		if polls["stuck"] != 1 {
			t.Errorf("%d polls for the type that is full, want 1", polls["stuck"])
		}
		if n := r.actions()[worker.Completed]; n < 95 { // one handler is left for them: 100 in a second
			t.Errorf("%d jobs of the other type in a second, want about 100", n)
		}
		release()
		r.finish(t)
	})
}

func TestGlobalConcurrency(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEngine()
		e.endless()
		cfg := config()
		cfg.Concurrency = 4
		var now, highest atomic.Int64
		handler := func(context.Context, *worker.Job) worker.Reply {
			if n := now.Add(1); n > highest.Load() {
				highest.Store(n)
			}
			time.Sleep(time.Second)
			now.Add(-1)
			return worker.Reply{Action: worker.Completed, Variables: "{}"}
		}
		var subs []worker.Subscription
		for _, name := range []string{"one", "two", "three"} {
			subs = append(subs, worker.Subscription{JobType: name, Begin: worker.Always(handler, "a")})
		}
		r := start(t, e, cfg, subs)
		time.Sleep(5*time.Second - time.Millisecond)
		synctest.Wait()
		if now.Load() != 4 || highest.Load() != 4 {
			t.Errorf("%d handlers run and at most %d did, want 4 over all three types", now.Load(), highest.Load())
		}
		r.finish(t)
		if highest.Load() != 4 {
			t.Errorf("%d handlers ran at once, want at most 4", highest.Load())
		}
	})
}

// TestLongPolls: an engine that waits is asked again at once; one that does not is asked with pauses.
func TestLongPolls(t *testing.T) {
	tests := []struct {
		name        string
		takes       time.Duration
		least, most int // polls in ten minutes
	}{
		{"the whole time", pollTimeout, 300, 300},
		{"a little less", pollTimeout * 9 / 10, 333, 334},
		{"half", pollTimeout / 2, 600, 601},
		{"less than half", pollTimeout/2 - time.Millisecond, 200, 320},
		{"nothing", 0, 300, 620},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := newEngine()
				e.onPoll = func(ctx context.Context, _ worker.ActivateRequest) ([]worker.Job, error) {
					return nil, sleep(ctx, tt.takes)
				}
				r := start(t, e, config(), one(completing))
				time.Sleep(10*time.Minute - time.Millisecond)
				n := len(e.asked())
				r.finish(t)
				if n < tt.least || n > tt.most {
					t.Errorf("%d polls in ten minutes, want %d to %d", n, tt.least, tt.most)
				}
				if ups := r.upDown(); !slices.Equal(ups, []bool{true}) {
					t.Errorf("an engine without jobs was said to be %v, want up once", ups)
				}
			})
		})
	}
}

// everyKind is every error an engine may give to a poll, one that nobody classified included.
var everyKind = map[string]error{
	"ambiguous":    refusal(worker.Ambiguous),
	"not taken":    refusal(worker.NotTaken),
	"gone":         refusal(worker.Gone),
	"refused":      refusal(worker.Refused),
	"too large":    refusal(worker.TooLarge),
	"unclassified": errors.New("no engine error at all"),
}

// TestPollsThatFail: the pauses double from 50 ms to 2 s, drawn from their upper half, and are forgotten
// with the first success.
func TestPollsThatFail(t *testing.T) {
	for name, failure := range everyKind {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := newEngine()
				const failures = 60
				polls := 0
				e.onPoll = func(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
					polls++
					switch {
					case polls <= failures || polls == failures+2 || polls == failures+4:
						return nil, failure
					case polls == failures+1: // a success with jobs
						return jobs(r.JobType, 1, 1), nil
					default: // a success without
						return idle(ctx, r)
					}
				}
				r := start(t, e, config(), one(completing))
				time.Sleep(5 * time.Minute)
				asked := e.asked()
				r.finish(t)
				if len(asked) < failures+6 {
					t.Fatalf("%d polls in five minutes", len(asked))
				}
				distinct := map[time.Duration]bool{}
				for i := range failures {
					bound := min(50*time.Millisecond<<min(i, 10), 2*time.Second)
					gap := asked[i+1].at - asked[i].at
					if gap < bound/2 || gap >= bound {
						t.Errorf("pause %d is %s, want %s to %s", i+1, gap, bound/2, bound)
					}
					distinct[gap] = true
				}
				if len(distinct) < failures*9/10 {
					t.Errorf("%d different pauses of %d: they are not spread", len(distinct), failures)
				}
				if gap := asked[failures+1].at - asked[failures].at; gap != 0 {
					t.Errorf("the poll after jobs comes %s later, want at once", gap)
				}
				for _, i := range []int{failures + 1, failures + 3} { // after jobs; after an empty long poll
					if gap := asked[i+1].at - asked[i].at; gap < 25*time.Millisecond || gap >= 50*time.Millisecond {
						t.Errorf("the first pause after a success is %s, want 25 to 50 ms", gap)
					}
				}
			})
		})
	}
}

// TestJobsAndErrorTogether: a poll may lock jobs and fail all the same.
func TestJobsAndErrorTogether(t *testing.T) {
	for name, failure := range everyKind {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := newEngine()
				first := true
				e.onPoll = func(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
					if first {
						first = false
						return jobs(r.JobType, 1, 3), failure
					}
					return idle(ctx, r)
				}
				r := start(t, e, config(), one(completing))
				time.Sleep(time.Second)
				r.wantActions(t, map[worker.Action]int{worker.Completed: 3})
				asked := e.asked()
				r.finish(t)
				if len(asked) != 2 {
					t.Fatalf("%d polls in a second, want the one that failed and the next", len(asked))
				}
				if gap := asked[1].at - asked[0].at; gap < 25*time.Millisecond {
					t.Errorf("the poll after the error came %s later, want a pause", gap)
				}
			})
		})
	}
}

// TestJobsTooLargeForOneMessage: the ask is halved down to one and every such activation is counted. It
// grows again with each batch that arrives, but not before the large jobs have come back: they would not
// fit again. The engine is there all the time.
func TestJobsTooLargeForOneMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEngine()
		const failures, batchEvery = 7, 5 * time.Second
		var last time.Duration // when the last failure was
		e.onPoll = func(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
			asked := e.asked()
			if len(asked) <= failures {
				last = asked[len(asked)-1].at
				return nil, refusal(worker.TooLarge)
			}
			time.Sleep(batchEvery)
			return jobs(r.JobType, int64(len(asked)), 1), nil
		}
		r := start(t, e, config(), one(completing))
		time.Sleep(90 * time.Second)
		r.finish(t)
		grown := 1
		for i, p := range e.asked() {
			want := []int{50, 25, 12, 6, 3, 1, 1, 1}[min(i, failures)]
			if i > failures && p.at > last+2*jobTimeout {
				grown = min(2*grown, 50)
			}
			want = max(want, grown)
			if p.MaxJobs > want || p.MaxJobs < min(want, 49) { // one job may still be in hand
				t.Errorf("poll %d, %s after the last failure, asks for %d jobs, want %d", i+1, p.at-last, p.MaxJobs, want)
			}
		}
		if grown != 50 {
			t.Errorf("the ask has grown to %d in the end, want all of 50 again", grown)
		}
		if r.oversized != failures {
			t.Errorf("%d oversized activations were counted, want %d", r.oversized, failures)
		}
		if ups := r.upDown(); !slices.Equal(ups, []bool{true}) {
			t.Errorf("the engine was said to be %v, want up once: it did answer", ups)
		}
		if n := r.logs.FilterMessageSnippet("too large").Len(); n == 0 {
			t.Error("no log line says that jobs are too large")
		}
	})
}

package worker_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/worker"
)

func TestActivationRequest(t *testing.T) {
	onEngine(t, func(t *testing.T, e *engine) {
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
		each(t, strconv.Itoa(most), func(t *testing.T, e *engine) {
			e.endless()
			cfg := config()
			cfg.MaxJobsActive, cfg.Concurrency = most, most
			answers := make(chan struct{})
			all := sync.OnceFunc(func() { close(answers) })
			defer all()
			r := start(t, e, cfg, one(func(context.Context, *worker.Job) worker.Reply {
				<-answers
				return completion
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
	}
}

// TestOneLoopPerType: a type whose places are all taken keeps no other from being served, by the handlers that are left of
// all types together.
func TestOneLoopPerType(t *testing.T) {
	onEngine(t, func(t *testing.T, e *engine) {
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
				return completion
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
		if n := r.actions()[worker.Completed]; n < 95 || n > 105 { // one handler is left for them: 100 in a second
			t.Errorf("%d jobs of the other type in a second, want about 100", n)
		}
		release()
		r.finish(t)
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
		each(t, tt.name, func(t *testing.T, e *engine) {
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
	const failures = 20
	for name, failure := range everyKind {
		each(t, name, func(t *testing.T, e *engine) {
			e.onPoll = func(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
				switch n := len(e.asked()); {
				case n <= failures || n == failures+2 || n == failures+4:
					return nil, failure
				case n == failures+1: // a success with jobs
					return jobs(r.JobType, 1, 1), nil
				default: // a success without
					return idle(ctx, r)
				}
			}
			r := start(t, e, config(), one(completing))
			time.Sleep(time.Minute)
			r.finish(t)
			asked, longest := e.asked(), map[time.Duration]bool{}
			for i := range failures + 4 {
				least, most := 25*time.Millisecond, 50*time.Millisecond
				gap := asked[i+1].at - asked[i].at
				switch {
				case i < failures:
					most = min(50*time.Millisecond<<i, 2*time.Second)
					least = most / 2
					if most == 2*time.Second {
						longest[gap] = true
					}
				case i == failures: // after jobs: at once
					least, most = 0, 1
				case i == failures+2: // an empty long poll
					least, most = pollTimeout, pollTimeout+1
				}
				if gap < least || gap >= most {
					t.Errorf("the poll after poll %d comes %s later, want %s to %s", i+1, gap, least, most)
				}
			}
			if len(longest) == 1 {
				t.Errorf("all the longest pauses are %v: they are not spread", longest)
			}
		})
	}
}

// TestEngineThatGivesTooMuch: what was activated is answered even if it was not asked for, and if the poll failed all
// the same.
func TestEngineThatGivesTooMuch(t *testing.T) {
	for name, failure := range everyKind {
		each(t, name, func(t *testing.T, e *engine) {
			e.onPoll = func(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
				if len(e.asked()) == 1 {
					return jobs(r.JobType, 1, 5*r.MaxJobs), failure
				}
				return idle(ctx, r)
			}
			r := start(t, e, config(), one(completing))
			time.Sleep(time.Second)
			asked := e.asked()
			r.finish(t)
			r.wantActions(t, map[worker.Action]int{worker.Completed: 250})
			if len(asked) != 2 || asked[1].at-asked[0].at < 25*time.Millisecond {
				t.Errorf("polled at %v, want the one that failed, a pause and the next", asked)
			}
		})
	}
}

// TestJobsTooLargeForOneMessage: the ask is halved down to one and every such activation is counted. It
// grows again with each batch that arrives, but not before the large jobs have come back: they would not
// fit again. The engine is there all the time.
func TestJobsTooLargeForOneMessage(t *testing.T) {
	onEngine(t, func(t *testing.T, e *engine) {
		e.onPoll = func(_ context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
			n := len(e.asked())
			if n <= 7 {
				return nil, tooLarge
			}
			time.Sleep(jobTimeout / 2)
			return jobs(r.JobType, int64(n), 1), nil
		}
		r := start(t, e, config(), one(completing))
		time.Sleep(90 * time.Second)
		r.finish(t)
		var asks []int
		for _, p := range e.asked() {
			asks = append(asks, p.MaxJobs)
		}
		want := []int{50, 25, 12, 6, 3, 1, 1, 1, 1, 1, 1, 2, 4, 8, 16, 32}
		if !slices.Equal(asks[:len(want)], want) || asks[len(want)] < 49 { // one job may still be in hand
			t.Errorf("asked for %v jobs, want %v and then 50", asks, want)
		}
		if r.oversized != 7 || r.logs.FilterMessageSnippet("too large").Len() != 7 {
			t.Errorf("%d oversized activations were counted, and logged: %v; want 7", r.oversized, r.logs.All())
		}
		if ups := r.upDown(); !slices.Equal(ups, []bool{true}) {
			t.Errorf("the engine was said to be %v, want up once: it did answer", ups)
		}
	})
}

package worker_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/worker"
)

// stopping handles jobs that take so long, or until the worker is ended hard.
func stopping(d time.Duration) worker.Handler {
	return func(ctx context.Context, _ *worker.Job) worker.Reply {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		return completion
	}
}

// wantHandedBack fails unless a gives the job back as it was.
func wantHandedBack(t *testing.T, a answer) {
	t.Helper()
	if a.verb != "fail" || a.fail.Retries != a.job.Retries || a.fail.Backoff != 0 {
		t.Errorf("job %d was answered by %s %+v, want it back with its %d retries and no back-off",
			a.job.Key, a.verb, a.fail, a.job.Retries)
	}
	if !strings.Contains(a.fail.Message, "tester") {
		t.Errorf("the message does not name the worker that stops: %q", a.fail.Message)
	}
}

// TestStopHandsBack: what runs is finished, what waits is handed back at once, though every handler is
// busy; nothing is activated any more.
func TestStopHandsBack(t *testing.T) {
	onEngine(t, func(t *testing.T, e *engine) {
		e.offers(jobs(jobType, 1, 30))
		cfg := config()
		cfg.Concurrency = 4
		r := start(t, e, cfg, one(stopping(5*time.Second)))
		time.Sleep(time.Second)
		polls := len(e.asked())
		r.stop()
		synctest.Wait()
		for _, a := range e.told() {
			if a.at != time.Second {
				t.Errorf("job %d was handed back at %s, want at the stop, after 1s", a.job.Key, a.at)
			}
			wantHandedBack(t, a)
		}
		if n := len(e.told()); n != 26 {
			t.Errorf("%d jobs were handed back, want the 26 that had not begun", n)
		}
		r.finish(t)
		r.wantActions(t, map[worker.Action]int{worker.Completed: 4, worker.Released: 26})
		if n := len(e.asked()); n != polls {
			t.Errorf("%d polls after the stop", n-polls)
		}
		if took := time.Since(e.began); took != 5*time.Second {
			t.Errorf("ended after %s, want with the last handler, after 5s", took)
		}
	})
}

// TestPollThatHangs: without a stop, the poll is given up after a while, at the latest when jobs it might
// bring could not be answered any more.
func TestPollThatHangs(t *testing.T) {
	for timeout, givenUp := range map[time.Duration]time.Duration{
		3 * time.Second: 3 * time.Second, jobTimeout: 10 * time.Second, time.Hour: 32 * time.Second,
	} {
		each(t, timeout.String(), func(t *testing.T, e *engine) {
			e.onPoll = func(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
				if r.PollTimeout == firstPoll {
					return idle(ctx, r)
				}
				<-ctx.Done()
				return nil, ambiguous
			}
			cfg := config()
			cfg.JobTimeout = timeout
			r := start(t, e, cfg, one(completing))
			time.Sleep(time.Minute)
			asked := e.asked()
			r.finish(t)
			pause := asked[2].at - asked[1].at - givenUp
			if pause < 25*time.Millisecond || pause > 50*time.Millisecond {
				t.Errorf("the poll after the one that hung came %s after it, want %s and a pause", pause+givenUp, givenUp)
			}
		})
	}
}

// TestKill: the hard end waits for no poll, handler, delivery or queue; with a stop before it or none.
func TestKill(t *testing.T) {
	for name, before := range map[string]time.Duration{"after a stop": time.Second, "without a stop": 0} {
		each(t, name, func(t *testing.T, e *engine) {
			batch := jobs("busy", 1, 50)
			e.onPoll = func(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
				if r.JobType == "busy" && e.activated() == 0 {
					return batch, nil
				}
				return nil, sleep(ctx, time.Hour)
			}
			e.onAnswer = func(ctx context.Context, _ answer) error {
				<-ctx.Done()
				return ambiguous
			}
			cfg := config()
			cfg.Concurrency = 2
			r := start(t, e, cfg, []worker.Subscription{
				{JobType: "busy", Begin: worker.Always(func(ctx context.Context, j *worker.Job) worker.Reply {
					if j.Key == 1 {
						<-ctx.Done() // a handler at work; job 2 hangs in its delivery
					}
					return completion
				}, "a")},
				{JobType: "idle", Begin: worker.Always(completing, "a")},
			})
			time.Sleep(time.Second)
			if before > 0 {
				r.stop()
				time.Sleep(before)
			}
			killed, told := time.Now(), len(e.told())
			r.kill()
			<-r.ended
			if took := time.Since(killed); took != 0 {
				t.Errorf("ended %s after the hard end, want at once", took)
			}
			if n := len(e.told()); n != told {
				t.Errorf("%d answers were begun after the hard end", n-told)
			}
			r.sound(t)
		})
	}
}

// TestStopDuringPoll: the poll that runs is let end, or is cut off a second past its time, and its jobs are handed back.
func TestStopDuringPoll(t *testing.T) {
	hangs := func(ctx context.Context, _ worker.ActivateRequest) ([]worker.Job, error) {
		<-ctx.Done()
		return jobs(jobType, 1, 2), ambiguous // a cancelled poll may bring jobs all the same
	}
	for name, tt := range map[string]struct {
		poll func(context.Context, worker.ActivateRequest) ([]worker.Job, error)
		ends time.Duration
	}{
		"that ends":  {late(firstPoll, firstPoll*3/4, jobs(jobType, 1, 2)), firstPoll * 3 / 4},
		"that hangs": {hangs, firstPoll/2 + firstPoll + time.Second},
	} {
		each(t, name, func(t *testing.T, e *engine) {
			e.onPoll = tt.poll
			r := start(t, e, config(), one(completing))
			time.Sleep(firstPoll / 2)
			r.finish(t)
			r.wantActions(t, map[worker.Action]int{worker.Released: 2})
			for _, a := range e.told() {
				wantHandedBack(t, a)
			}
			if took := time.Since(e.began); took != tt.ends || len(e.asked()) != 1 {
				t.Errorf("ended after %s and %d polls, want after %s and one", took, len(e.asked()), tt.ends)
			}
			if ups := r.upDown(); len(ups) > 0 {
				t.Errorf("the engine was said to be %v, because of a poll during a stop", ups)
			}
		})
	}
}

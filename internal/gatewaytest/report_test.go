package gatewaytest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/gatewaytest"
)

// bubble runs a story on a fresh engine inside a bubble.
func bubble(t *testing.T, story func(*testing.T, *gatewaytest.Engine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { story(t, newEngine(t, gatewaytest.EngineOptions{})) })
}

func one(t *testing.T, e *gatewaytest.Engine) gatewaytest.JobReport {
	t.Helper()
	r := e.Report()
	if len(r.Jobs) != 1 {
		t.Fatalf("%d jobs in the report, want 1", len(r.Jobs))
	}
	return r.Jobs[0]
}

func TestReportOfAnOrdinaryJob(t *testing.T) {
	bubble(t, func(t *testing.T, e *gatewaytest.Engine) {
		key := e.AddJob(work(1)[0])
		time.Sleep(3 * time.Second)
		grab(t, e, "a")
		time.Sleep(time.Second)
		wantCode(t, "complete", e.Complete(t.Context(), completion("a", key)), codes.OK)
		time.Sleep(time.Hour)
		j := one(t, e)
		if !j.AnsweredOnce() || j.Locked || j.WaitActivated != 3*time.Second || j.WaitAnswered != 4*time.Second {
			t.Errorf("reported %+v", j)
		}
		if text := e.Report().String(); !strings.Contains(text, "1 answered once") || !strings.Contains(text, "3s till activated, 4s till answered") {
			t.Errorf("in words: %s", text)
		}
	})
}

func TestReportOfARepeatedAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, e *gatewaytest.Engine) {
		key := e.AddJob(work(1)[0])
		grab(t, e, "a")
		wantCode(t, "complete", e.Complete(t.Context(), completion("a", key)), codes.OK)
		again := completion("a", key)
		again.Caller = "a, connected anew"
		wantCode(t, "again", e.Complete(t.Context(), again), codes.NotFound)
		if r := e.Report(); r.AnsweredMore != 1 || r.AnsweredOnce != 0 || r.Jobs[0].Repeated != 1 {
			t.Errorf("%v; want one job answered more often", r)
		}
	})
}

func TestReportOfALateAnswerToAJobSomebodyElseDid(t *testing.T) {
	bubble(t, func(t *testing.T, e *gatewaytest.Engine) {
		key := e.AddJob(work(1)[0])
		grab(t, e, "a")
		time.Sleep(10 * time.Second)
		grab(t, e, "b")
		wantCode(t, "b", e.Complete(t.Context(), completion("b", key)), codes.OK)
		wantCode(t, "a, late", e.Complete(t.Context(), completion("a", key)), codes.NotFound)
		if j := one(t, e); !j.AnsweredOnce() || j.TimedOut != 1 || j.Activations != 2 {
			t.Errorf("a's late answer is no repeat, its time-out is one: %+v", j)
		}
	})
}

func TestReportOfAJobHandedBackAndDoneByAnother(t *testing.T) {
	bubble(t, func(t *testing.T, e *gatewaytest.Engine) {
		key := e.AddJob(work(1)[0])
		grab(t, e, "a")
		wantCode(t, "hand back", e.Fail(t.Context(), gatewaytest.FailRequest{JobKey: key, Retries: 3, Caller: "a"}), codes.OK)
		time.Sleep(2 * time.Second)
		grab(t, e, "b")
		wantCode(t, "complete", e.Complete(t.Context(), completion("b", key)), codes.OK)
		if j := one(t, e); !j.AnsweredOnce() || j.TimedOut != 0 || j.WaitActivated != 2*time.Second {
			t.Errorf("reported %+v", j)
		}
	})
}

func TestReportKeepsTheLongestWait(t *testing.T) {
	bubble(t, func(t *testing.T, e *gatewaytest.Engine) {
		key := e.AddJob(work(1)[0])
		for _, wait := range []time.Duration{2, 5, 1} {
			time.Sleep(wait * time.Second)
			grab(t, e, "a")
			wantCode(t, "hand back", e.Fail(t.Context(), gatewaytest.FailRequest{JobKey: key, Retries: 3, Caller: "a"}), codes.OK)
		}
		if j := one(t, e); j.WaitActivated != 5*time.Second || j.Repeated != 0 {
			t.Errorf("longest wait %v and %d repeats, want 5s and none", j.WaitActivated, j.Repeated)
		}
	})
}

func TestReportDoesNotGuessWhoAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, e *gatewaytest.Engine) {
		key := e.AddJob(work(1)[0])
		grab(t, e, "a")
		time.Sleep(10 * time.Second)
		grab(t, e, "b")
		wantCode(t, "one of them", e.Complete(t.Context(), completion("connection 3", key)), codes.OK)
		wantCode(t, "one of them", e.Complete(t.Context(), completion("connection 4", key)), codes.NotFound)
		if j := one(t, e); !j.AnsweredOnce() {
			t.Errorf("two workers had the job and nobody knows who answered: %+v", j)
		}
	})
}

func TestReportOfLocks(t *testing.T) {
	bubble(t, func(t *testing.T, e *gatewaytest.Engine) {
		e.AddJobs(work(3)...)
		grab(t, e, "a")
		time.Sleep(4 * time.Second)
		e.Undelivered([]gatewaytest.Job{grab(t, e, "b")})
		time.Sleep(time.Second)
		r := e.Report()
		if r.Locked != 2 || r.EngineLocked != 1 || r.Unanswered != 3 || r.LongestLock != 9*time.Second || r.MaxHeld != 2 {
			t.Errorf("%v; want 2 locked, 1 of them by the engine, for 9s", r)
		}
		if a := r.Jobs[0]; a.LockedBy != "a" || a.EngineLock || a.LockLeft != 5*time.Second {
			t.Errorf("a's lock is %+v", a)
		}
		if waiting := r.Jobs[2]; waiting.Locked || waiting.WaitActivated != 5*time.Second {
			t.Errorf("the job nobody took waits: %+v", waiting)
		}
		time.Sleep(9 * time.Second)
		if r := e.Report(); r.Locked != 0 || r.TimedOut != 2 {
			t.Errorf("%v; want no lock left and 2 time-outs", r)
		}
	})
}

func TestMostPolls(t *testing.T) {
	bubble(t, func(t *testing.T, e *gatewaytest.Engine) {
		for _, gap := range []time.Duration{0, 400, 400, 400, 3000, 100, 1000} {
			time.Sleep(gap * time.Millisecond)
			if _, err := e.Activate(t.Context(), ask("w1", 1, -1)); err != nil {
				t.Fatal(err)
			}
		}
		polls := e.Polls("work")
		if n := gatewaytest.MostPolls(polls, time.Second); n != 3 || len(polls) != 7 || len(e.Polls("other")) != 0 {
			t.Errorf("%d polls of %d in a second, want 3 of 7", n, len(polls))
		}
	})
}

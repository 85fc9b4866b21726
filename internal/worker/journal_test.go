package worker_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// TestStaleDelivery: what was given to another while this worker stood still, and answered, is neither recorded nor answered;
// what comes later is another failure. Without the engine's deadline nobody can tell.
func TestStaleDelivery(t *testing.T) {
	for _, jobType := range []string{worker.AnalyzeRetry, worker.RetrySubmissionBackoff} {
		bubble(t, func(t *testing.T) {
			store, e := testkit.NewMemory(), newEngine()
			deliver := func(until int64) (worker.Action, int, int64) {
				answers, records := len(e.told()), store.End().Record
				j := job(jobType, "{}", `{"claimId":"CLM-001-123","submissionError":"TIMEOUT"}`)
				j.LockedUntil, j.Deadline = until, time.Now().Add(time.Minute)
				memory := testkit.StartJournal(t, store, time.Now) // of another replica
				w := worker.New(e, config(), nil, newTally().hooks(), zap.NewNop())
				action := w.Handle(t.Context(), &j, handlerOf(jobType, memory, time.Now(), newTally().hooks(), zap.NewNop()))
				time.Sleep(2 * time.Second) // until it is marked
				return action, len(e.told()) - answers, store.End().Record - records
			}
			for _, d := range []struct {
				until  int64
				action worker.Action
				both   int // answers, and records
			}{{20, worker.Completed, 1}, {10, worker.Superseded, 0}, {20, worker.Superseded, 0}, {21, worker.Completed, 1}} {
				action, answers, records := deliver(d.until)
				if action != d.action || answers != d.both || records != int64(d.both) {
					t.Errorf("%s until %d: %s, %d answers and %d records; want %s and %d", jobType, d.until, action, answers, records, d.action, d.both)
				}
			}
		})
	}
}

// TestLongJobs: jobs of the largest size are analysed by twos, as their texts take memory; short ones do not wait.
func TestLongJobs(t *testing.T) {
	for size, want := range map[int]time.Duration{10: time.Second, 1 << 20: 4 * time.Second} {
		bubble(t, func(t *testing.T) {
			ps := policies()
			ps["tiss-submission"].Stretch = true
			h := worker.NewHandlers(worker.Options{Policies: func() decision.Policies { return ps },
				Memory: testkit.StartJournal(t, testkit.NewMemory(), time.Now), Now: time.Now, Hooks: newTally().hooks(), Log: zap.NewNop(),
				Expected: func(string) time.Time { // in the midst of an analysis
					time.Sleep(time.Second)
					return time.Time{}
				}})
			j := job(worker.AnalyzeRetry, "{}", claim(`"submissionError":"TIMEOUT"`))
			j.Variables += strings.Repeat(" ", max(size-len(j.Variables), 0))
			began := time.Now()
			var handling sync.WaitGroup
			for range 8 {
				handling.Go(func() {
					if r := h.Begin(worker.AnalyzeRetry).Handler(t.Context(), &j); r.Action != worker.Completed {
						t.Errorf("a job of %d bytes: %+v", size, r)
					}
				})
			}
			handling.Wait()
			if took := time.Since(began).Round(time.Second); took != want {
				t.Errorf("8 jobs of %d bytes took %s, want %s", size, took, want)
			}
		})
	}
}

// TestGateOfAnotherEngine: an engine that does not know the process has given the job's key to another, which is left alone.
func TestGateOfAnotherEngine(t *testing.T) {
	e := newEngine()
	a := &journal.GateAnswer{GateBody: journal.GateBody{Action: journal.GateReleased, HeldJob: journal.HeldJob{JobKey: 7, ProcessInstanceKey: 5}}}
	if action := worker.AnswerGate(t.Context(), another{e}, a, nil, nopLog); action != worker.Superseded || len(e.told()) > 0 {
		t.Errorf("the answer was %s, and the engine was told %+v", action, e.told())
	}
}

type another struct{ *engine }

func (another) Ended(context.Context, int64) bool { return true }

// TestGate: while the journal is closed no loop asks for jobs, and at once when it is open again.
func TestGate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		open := make(chan struct{})
		cfg := config()
		cfg.Await = func(ctx context.Context) bool {
			select {
			case <-open:
				return true
			case <-ctx.Done():
				return false
			}
		}
		r := start(t, newEngine(), cfg, one(completing))
		time.Sleep(time.Minute)
		if n := len(r.asked()); n != 0 {
			t.Errorf("%d polls while the journal was closed", n)
		}
		close(open)
		time.Sleep(time.Millisecond)
		if n := len(r.asked()); n != 1 {
			t.Errorf("%d polls after it was opened, want 1", n)
		}
		r.finish(t)
	})
}

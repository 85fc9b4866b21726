package faults_test

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/gatewaytest"
	"retry-worker/internal/worker"
)

// freezeRows: the worker's process stands still (SIGSTOP: a paused container, a machine that is moved)
// past its jobs' time-out and then goes on (SIGCONT), not knowing.
func freezeRows() []row {
	return []row{
		{"SIGSTOP with jobs in hand, SIGCONT after their time-out", playFrozenInHand},
		{"SIGSTOP during a poll, SIGCONT after its jobs' time-out", playFrozenInPoll},
	}
}

// quick is a time-out that passes soon.
const quick = "RETRY_WORKER_JOB_TIMEOUT=2s"

// witness notes the calls about jobs, whatever the engine says to them.
type witness struct {
	mu    sync.Mutex
	calls []gatewaytest.Call
}

func (s *scene) witness() *witness {
	w := &witness{}
	s.Inject(gatewaytest.Fault{Code: codes.Unknown, Match: func(c gatewaytest.Call) bool {
		if c.Method != gatewaytest.ActivateJobs {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.calls = append(w.calls, c)
		}
		return false // it only looks
	}})
	return w
}

// about is how many of the calls concern one of these jobs.
func (w *witness) about(s *scene, keys []int64) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, c := range w.calls {
		if slices.Contains(keys, s.jobOf(c)) {
			n++
		}
	}
	return n
}

// playFrozenInHand: the answers were under way when the process stopped.
func playFrozenInHand(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{})
	hang := s.Inject(gatewaytest.Fault{Method: gatewaytest.CompleteJob, Hang: true})
	keys := s.same(inHand, passing)
	p := s.program("first", quick)
	s.fired(hang, inHand)
	p.stopped()
	hang.Remove()
	return s.thaw(p, keys)
}

// playFrozenInPoll: the engine gave jobs to a poll whose process stood still already; they wait for it in
// the socket.
func playFrozenInPoll(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{})
	p := s.program("first", quick)
	for range 100 {
		s.until("a poll that waits", func(v gatewaytest.View) bool {
			polls := v.Polls(worker.AnalyzeRetry)
			return len(polls) > 1 && polls[len(polls)-1].Ended.IsZero() // the first is shorter
		})
		p.stopped()
		if keys := s.same(inHand, passing); s.givenSoon(keys) {
			return s.thaw(p, keys)
		}
		p.signal(syscall.SIGCONT) // the poll had ended before the process stood still
	}
	t.Fatal("the process never stood still during a poll")
	return result{}
}

// givenSoon tells whether the jobs are given away before any poll could have ended and another begun.
func (s *scene) givenSoon(keys []int64) bool {
	ctx, cancel := context.WithTimeout(within(s.t), 100*time.Millisecond)
	defer cancel()
	return s.WaitFor(ctx, func(v gatewaytest.View) bool {
		j, _ := v.Job(keys[0])
		return len(j.Activations) > 0
	}) == nil
}

// thaw has another worker answer the jobs when they have run out, lets the process go on, and sees that it
// says nothing about them and works on.
func (s *scene) thaw(p *program, keys []int64) result {
	s.t.Helper()
	next := s.worker("next")
	s.settled(s.Counts().Jobs)
	next.leave()
	seen := s.witness()
	p.signal(syscall.SIGCONT)
	s.same(inHand, passing)
	s.settled(s.Counts().Jobs)
	p.signal(syscall.SIGTERM)
	p.ends(soonGone)
	if n := seen.about(s, keys); n > 0 {
		s.t.Errorf("%d calls about jobs that were no longer its own, want none", n)
	}
	s.arrivedInTime("first", keys)
	r := s.result(s.Counts().TimedOut).soon(s.t, 2*time.Second+recovery) // 2 s may pass on a busy machine anyway
	r.remark = "their time-out of 2 s among it; another worker answered them"
	return r
}

package faults_test

import (
	"context"
	"syscall"
	"time"

	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/worker"
)

// freezeRows: the worker's process stands still (SIGSTOP: a paused container, a machine that is moved)
// past its jobs' time-out and then goes on (SIGCONT), not knowing.
func freezeRows() []row {
	return []row{
		{fault: "SIGSTOP with jobs in hand, SIGCONT after their time-out", play: playFrozenInHand, real: true, grpcOnly: true},
		{fault: "SIGSTOP during a poll, SIGCONT after its jobs' time-out", play: playFrozenInPoll, real: true},
	}
}

// quick is a time-out that passes soon.
const quick = "RETRY_WORKER_JOB_TIMEOUT=2s"

// playFrozenInHand: the answers were under way when the process stopped.
func playFrozenInHand(f *fixture) result {
	hang := f.Inject(gateway.Fault{Method: gateway.CompleteJob, Hang: true})
	keys := f.same(inHand, passing)
	p := f.program("first", quick)
	f.fired(hang, inHand)
	p.stopped()
	hang.Remove()
	return f.thaw(p, keys)
}

// playFrozenInPoll: the engine gave jobs to a poll whose process stood still already; they wait for it in
// the socket.
func playFrozenInPoll(f *fixture) result {
	p := f.program("first", quick)
	for range 100 {
		f.until("a poll that waits", func(gateway.Counts) bool {
			polls := f.Polls(worker.AnalyzeRetry)
			return len(polls) > 1 && polls[len(polls)-1].Ended.IsZero() // the first is shorter
		})
		p.stopped()
		if keys := f.same(inHand, passing); f.givenSoon(keys) {
			return f.thaw(p, keys)
		}
		p.signal(syscall.SIGCONT) // the poll had ended before the process stood still
	}
	f.t.Fatal("the process never stood still during a poll")
	return result{}
}

// givenSoon reports whether the jobs are given away before any poll could have ended and another begun.
func (f *fixture) givenSoon(keys []int64) bool {
	ctx, cancel := context.WithTimeout(within(f.t), 100*time.Millisecond)
	defer cancel()
	return f.WaitFor(ctx, func(gateway.Counts) bool {
		j, _ := f.Job(keys[0])
		return len(j.Activations) > 0
	}) == nil
}

// thaw has another worker answer the jobs when they have run out, lets the process go on, and sees that it
// says nothing about them and works on.
func (f *fixture) thaw(p *program, keys []int64) result {
	f.t.Helper()
	next := f.worker("next")
	f.settled(f.Counts().Jobs)
	next.leave()
	answered := map[int64]int{}
	for _, key := range keys {
		j, _ := f.Job(key)
		answered[key] = len(j.Answers)
	}
	p.signal(syscall.SIGCONT)
	f.same(inHand, passing)
	f.settled(f.Counts().Jobs)
	p.signal(syscall.SIGTERM)
	p.ends(soonGone)
	for _, key := range keys {
		j, _ := f.Job(key)
		if n := len(j.Answers) - answered[key]; n > 0 {
			f.t.Errorf("%d calls about job %d, which was no longer its own, want none", n, key)
		}
		for _, a := range j.Answers {
			if until := deadline(&j, "first"); a.Worker == "first" && a.Reached && a.At.After(until) {
				f.t.Errorf("job %d: %s came %s after its time-out", key, a.Method, a.At.Sub(until))
			}
		}
	}
	return f.result(f.Counts().TimedOut).soon(f.t, 2*time.Second+recovery). // 2 s may pass on a busy machine anyway
										with("their time-out of 2 s among it; another worker answered them")
}

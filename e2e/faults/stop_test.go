package faults_test

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"retry-worker/internal/testkit/gateway"
)

// recovery bounds a wait in rows by the machine's clock: far below a job's time-out.
const recovery = jobTimeout / 2

// stopRows: the program goes, asked to or made to.
func stopRows() []row {
	return []row{
		{fault: "SIGTERM with 1,000 jobs waiting, more coming", play: playStopUnderLoad, real: true},
		{fault: "second signal: ends hard", play: playSecondSignal, real: true},
		{fault: "SIGTERM while every call hangs", play: playStopHanging, real: true},
	}
}

// handedBack is how many jobs were handed back as they were, and the longest time until another worker
// had one of them.
func (f *fixture) handedBack() (n int, longest time.Duration) {
	for _, j := range f.Journal() {
		for _, a := range j.Answers {
			if a.Method != gateway.FailJob || !a.Accepted() || a.Retries != 3 {
				continue
			}
			n++
			for _, next := range j.Activations {
				if next.At.After(a.At) {
					longest = max(longest, next.At.Sub(a.At))
					break
				}
			}
		}
	}
	return n, longest
}

// asHere gives a program the job time-out that workers in this process have.
const asHere = "RETRY_WORKER_JOB_TIMEOUT=1m"

// playStopUnderLoad is the stop of every day: jobs in hand, jobs waiting, jobs coming all the time. Those begun are
// answered, the others handed back.
func playStopUnderLoad(f *fixture) result {
	const jobs, more = 1000, 200
	f.Inject(gateway.Fault{SlowReply: 20 * time.Millisecond, Match: isAnswer})
	f.claims(jobs)
	p := f.program("first", asHere, "RETRY_WORKER_CONCURRENCY=10") // so that some of the 50 have not begun
	f.settled(jobs / 4)
	p.signal(syscall.SIGTERM)
	next := f.worker("next", func(c *setup) { c.MaxJobsActive, c.Concurrency = 2*jobs, 100 })
	ctx, cancel := context.WithCancel(within(f.t))
	defer cancel()
	go func() {
		defer cancel()
		<-p.Done()
	}()
	for i := range more { // each when the one before was taken, or after a while
		f.bornInto(ctx, claim(jobs+i, passing))
	}
	took := p.ends(soonGone)
	for _, j := range f.Journal() {
		if j.State == gateway.Activated && j.Activations[len(j.Activations)-1].Worker == "first" {
			f.t.Errorf("job %d is left locked by the worker that stopped", j.Key)
		}
	}
	f.settled(jobs + more)
	next.leave()
	n, longest := f.handedBack()
	fmt.Fprintf(os.Stdout, "PRINT SIGTERM with 1,000 jobs waiting: gone after %s; %d jobs handed back, the next worker had them after %s at most\n",
		took.Round(10*time.Millisecond), n, longest.Round(time.Millisecond))
	return f.result(0).soon(f.t, jobTimeout)
}

// bornInto puts in a job and waits a moment for it to be taken.
func (f *fixture) bornInto(ctx context.Context, j gateway.Job) {
	key := f.AddJob(j)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	_ = f.WaitFor(ctx, func(gateway.Counts) bool {
		r, _ := f.Job(key)
		return len(r.Activations) > 0
	})
}

// playSecondSignal: who cannot wait ends the worker at once.
func playSecondSignal(f *fixture) result {
	return f.stopHeldUp(soonGone, func(p *program) { // the answers may take a minute, a stop 25 s
		p.signal(syscall.SIGTERM)
		p.logged("stopping", 1)
		p.signal(syscall.SIGTERM)
	})
}

// playStopHanging: calls that are never answered do not hold a stop beyond SHUTDOWN_TIMEOUT.
func playStopHanging(f *fixture) result {
	// For a busy machine; it plans to be gone before.
	return f.stopHeldUp(8*time.Second, func(p *program) { p.signal(syscall.SIGTERM) }, "RETRY_WORKER_SHUTDOWN_TIMEOUT=3s")
}

// stopHeldUp stops a worker that gets no answers. What it had begun comes back after its time-out, and another worker
// does it, with what came meanwhile.
func (f *fixture) stopHeldUp(atMost time.Duration, stop func(*program), env ...string) result {
	f.t.Helper()
	hang := f.Inject(gateway.Fault{Hang: true, Match: isAnswer})
	f.same(inHand, passing)
	p := f.program("first", append(env, asHere)...)
	f.until("all answers to hang", func(gateway.Counts) bool { return hang.Fired() >= inHand })
	stop(p)
	took := p.endsHard(atMost)
	hang.Remove()
	// A poll that the gateway held for a process that has died would take jobs with it.
	f.until("no poll left", func(c gateway.Counts) bool { return c.Waiting == 0 })
	if c := f.Counts(); c.Held != inHand || c.Settled > 0 {
		f.t.Errorf("%+v; want all %d locked: they had begun", c, inHand)
	}
	f.Advance(jobTimeout)
	f.same(inHand, passing)
	next := f.worker("next")
	f.settled(2 * inHand)
	next.leave()
	return f.result(inHand).soon(f.t, jobTimeout+recovery).
		with("gone after %s; %d left to their time-out, which passed on the gateway's clock (+1 min)", took.Round(10*time.Millisecond), inHand)
}

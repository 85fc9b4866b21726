package faults_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"retry-worker/internal/testkit/gateway"
)

// recovery bounds a wait in rows by the machine's clock: far below a job's time-out.
const recovery = jobTimeout / 2

// stopRows: the worker goes, asked to or made to.
func stopRows() []row {
	return []row{
		{fault: "SIGTERM with 1,000 jobs in hand", play: playStopInHand, real: true},
		{fault: "SIGTERM with 1,000 jobs waiting, more coming", play: playStopUnderLoad, real: true, options: gateway.Options{Latency: 20 * time.Millisecond}},
		{fault: "SIGTERM, hand-back acknowledgements dropped", play: playStopLostHandBack, real: true, grpcOnly: true},
		{fault: "stop just as jobs are born", play: playBornAtStop},
		{fault: "second signal: ends hard", play: playSecondSignal, real: true},
		{fault: "SIGTERM while the gateway stands still", play: playStopFrozen, real: true},
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

// printStop prints what a stop left behind.
func (f *fixture) printStop(what string, took time.Duration) {
	n, longest := f.handedBack()
	fmt.Fprintf(os.Stdout, "PRINT %s: gone after %s; %d jobs handed back, the next worker had them after %s at most\n",
		what, took.Round(10*time.Millisecond), n, longest.Round(time.Millisecond))
}

// slowAnswers keeps answers, but not hand-backs, from the engine for a while.
func (f *fixture) slowAnswers(d time.Duration) *gateway.Rule {
	return f.Inject(gateway.Fault{Delay: d, Match: func(c gateway.Call) bool {
		return c.Method == gateway.CompleteJob || c.Method == gateway.SetVariables
	}})
}

func (f *fixture) answersUnderWay(n int) {
	f.t.Helper()
	f.until("answers under way", func(gateway.Counts) bool {
		return f.UnderWay(gateway.CompleteJob)+f.UnderWay(gateway.SetVariables) >= n
	})
}

// asHere gives a program the job time-out that workers in this process have.
const asHere = "RETRY_WORKER_JOB_TIMEOUT=1m"

func successor(c *setup) { c.MaxJobsActive, c.Concurrency = 2*manyJobs, 100 }

// playStopInHand: all jobs are activated; those begun are answered, the others handed back.
func playStopInHand(f *fixture) result {
	slow := f.slowAnswers(500 * time.Millisecond)
	f.claims(manyJobs)
	p := f.program("first", asHere, fmt.Sprintf("RETRY_WORKER_MAX_JOBS_ACTIVE=%d", manyJobs))
	f.until("all jobs in hand", func(c gateway.Counts) bool { return c.HandedOut == manyJobs })
	f.answersUnderWay(40)
	next := f.worker("next", successor)
	f.until("another worker's poll", func(c gateway.Counts) bool { return c.Waiting > 3 }) // three more types wait
	p.signal(syscall.SIGTERM)
	slow.Remove()
	took := p.ends(soonGone)
	f.settled(manyJobs)
	f.printStop("SIGTERM with 1,000 jobs in hand", took)
	if n, _ := f.handedBack(); n < manyJobs/2 {
		f.t.Errorf("%d jobs handed back, want most: the row shows nothing", n)
	}
	next.leave()
	return f.result(0).soon(f.t, jobTimeout)
}

// playStopUnderLoad is the stop of every day: jobs in hand, jobs waiting, jobs coming all the time.
func playStopUnderLoad(f *fixture) result {
	const more = 200
	f.claims(manyJobs)
	p := f.program("first", asHere, "RETRY_WORKER_CONCURRENCY=10") // so that some of the 50 have not begun
	f.settled(manyJobs / 4)
	p.signal(syscall.SIGTERM)
	next := f.worker("next", successor)
	ctx, cancel := context.WithCancel(within(f.t))
	defer cancel()
	go func() {
		defer cancel()
		<-p.Done()
	}()
	for i := range more { // each when the one before was taken, or after a while
		f.bornInto(ctx, claim(manyJobs+i, passing))
	}
	took := p.ends(soonGone)
	for _, j := range f.Journal() {
		if j.State == gateway.Activated && j.Activations[len(j.Activations)-1].Worker == "first" {
			f.t.Errorf("job %d is left locked by the worker that stopped", j.Key)
		}
	}
	f.settled(manyJobs + more)
	next.leave()
	f.printStop("SIGTERM with 1,000 jobs waiting", took)
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

// playStopLostHandBack: the worker does not hear that its hand-back was taken and sends it again. That may
// take a job from the worker that has it by then; that one gets it twice, and the engine takes one answer.
func playStopLostHandBack(f *fixture) result {
	const jobs = 200
	slow := f.slowAnswers(500 * time.Millisecond)
	once := oncePerJob()
	f.Inject(gateway.Fault{Method: gateway.FailJob, DropAck: true, Match: once})
	f.same(jobs, passing)
	p := f.program("first", asHere, fmt.Sprintf("RETRY_WORKER_MAX_JOBS_ACTIVE=%d", jobs))
	f.until("all jobs in hand", func(c gateway.Counts) bool { return c.HandedOut == jobs })
	f.answersUnderWay(40)
	next := f.worker("next", successor)
	f.until("another worker's poll", func(c gateway.Counts) bool { return c.Waiting > 3 })
	p.signal(syscall.SIGTERM)
	slow.Remove()
	p.ends(soonGone)
	f.settled(jobs)
	next.leave()
	r, timedOut := f.count()
	if r.locked > 0 || timedOut > 0 || f.Counts().Settled != jobs {
		f.t.Errorf("%+v with %d time-outs, want all settled", r, timedOut)
	}
	twice := 0
	for _, j := range f.Journal() {
		if repeated(&j) {
			twice++
		}
		if repeated(&j) && len(j.Activations) < 3 {
			f.t.Errorf("job %d was answered twice, and given to the next worker once", j.Key)
		}
	}
	r.once += twice
	return r.soon(f.t, recovery).with("%d of them given to the next worker twice", twice)
}

// playBornAtStop stops many workers in the instant in which their jobs are born: the polls under way are
// let end, so that what they bring is handed back and not locked.
func playBornAtStop(f *fixture) result {
	const workers, jobs = 40, 5
	typed := func(n int) string { return fmt.Sprintf("born-%d", n) }
	all := make([]*local, workers)
	for n := range all {
		all[n] = f.worker(fmt.Sprintf("w%d", n), func(c *setup) { c.types = []string{typed(n)} })
	}
	f.until("all polls", func(c gateway.Counts) bool { return c.Waiting == workers })
	var together sync.WaitGroup
	begin := make(chan struct{})
	for n, w := range all {
		together.Go(func() { <-begin; w.stop() })
		together.Go(func() {
			<-begin
			for i := range jobs {
				j := claim(i, passing)
				j.Type = typed(n)
				f.AddJob(j)
			}
		})
	}
	close(begin)
	together.Wait()
	for _, w := range all {
		w.leave()
	}
	if n := f.Counts().Held; n > 0 {
		f.t.Errorf("%d jobs are left locked by the stop, want none", n)
	}
	next := f.worker("next", func(c *setup) {
		c.types = nil
		for n := range workers {
			c.types = append(c.types, typed(n))
		}
	})
	f.settled(workers * jobs)
	next.leave()
	return f.result(0).soon(f.t, soon)
}

// playSecondSignal: who cannot wait ends the worker at once; what it had begun comes back after its
// time-out.
func playSecondSignal(f *fixture) result {
	hang := f.Inject(gateway.Fault{Method: gateway.CompleteJob, Hang: true})
	f.same(inHand, passing)
	p := f.program("first", asHere)
	f.fired(hang, inHand)
	p.signal(syscall.SIGTERM)
	p.logged("stopping", 1)
	p.signal(syscall.SIGTERM)
	took := p.endsHard(soonGone) // the answers may take a minute, a stop 25 s
	hang.Remove()
	f.deserted()
	if c := f.Counts(); c.Held != inHand || c.Settled > 0 {
		f.t.Errorf("%+v; want all %d locked: they had begun", c, inHand)
	}
	f.Advance(jobTimeout)
	next := f.worker("next")
	f.settled(inHand)
	next.leave()
	return f.result(inHand).soon(f.t, jobTimeout+recovery).
		with("gone after %s; 30 left to their time-out, which passed on the gateway's clock (+1 min)", took.Round(10*time.Millisecond))
}

// deserted waits until the gateway has noticed that nobody is there any more: a poll that it holds for a
// process that has died would take jobs with it.
func (f *fixture) deserted() {
	f.t.Helper()
	f.until("no poll left", func(gateway.Counts) bool { return f.UnderWay(gateway.ActivateJobs) == 0 })
}

const shutdown = 3 * time.Second

func shutdownTimeout() string { return "RETRY_WORKER_SHUTDOWN_TIMEOUT=" + shutdown.String() }

// playStopFrozen: a gateway that stands still does not hold a stop beyond SHUTDOWN_TIMEOUT.
func playStopFrozen(f *fixture) result {
	p := f.program("first", asHere, shutdownTimeout())
	f.until("polls of all five types", func(c gateway.Counts) bool { return c.Waiting == 5 })
	f.Freeze()
	return f.stopHeldUp(p, p.endsAnyhow, f.Thaw)
}

// playStopHanging: nor do calls that are never answered, of jobs that have begun.
func playStopHanging(f *fixture) result {
	hang := f.Inject(gateway.Fault{Hang: true, Match: isAnswer})
	f.same(inHand, passing)
	p := f.program("first", asHere, shutdownTimeout())
	f.fired(hang, inHand)
	return f.stopHeldUp(p, p.endsHard, hang.Remove)
}

// stopHeldUp stops a worker that gets no answers, and has another one do the rest.
func (f *fixture) stopHeldUp(p *program, end func(time.Duration) time.Duration, free func()) result {
	f.t.Helper()
	p.signal(syscall.SIGTERM)
	took := end(shutdown + 5*time.Second) // for a busy machine; it plans to be gone before
	free()
	f.deserted()
	held := f.Counts().Held
	f.Advance(jobTimeout)
	f.same(inHand, passing)
	next := f.worker("next")
	f.settled(f.Counts().Jobs)
	next.leave()
	return f.result(held).soon(f.t, jobTimeout+recovery).
		with("gone after %s of 3 s; %d locked by it till their time-out", took.Round(10*time.Millisecond), held)
}

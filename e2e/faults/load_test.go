package faults_test

import (
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/worker"
)

// loadRows: a gateway that is too busy, now and then or for a while.
func loadRows() []row {
	rows := []row{
		{fault: "writer buffer full from 20 commands in flight on", play: playFullBuffer, options: gateway.Options{MaxInFlight: 20, Latency: 2 * time.Millisecond}},
		{fault: "5 % of all calls answered RESOURCE_EXHAUSTED", play: playNowAndThen(codes.ResourceExhausted)},
		{fault: "5 % of all calls answered UNAVAILABLE", play: playNowAndThen(codes.Unavailable)},
		{fault: "1 s of nothing but RESOURCE_EXHAUSTED", play: playBurst(codes.ResourceExhausted)},
		{fault: "1 s of nothing but UNAVAILABLE", play: playBurst(codes.Unavailable)},
		{fault: "everything in turn, two workers", play: playEverything, options: gateway.Options{JobsPerMessage: 4}},
		{fault: "ten minutes of a gateway that is away for 5 s of every minute", play: playAwayOften},
	}
	for _, code := range []codes.Code{codes.ResourceExhausted, codes.Unavailable, codes.Unauthenticated, codes.Internal} {
		for _, lasts := range []time.Duration{100 * time.Millisecond, 5 * time.Second, 7 * time.Second} {
			rows = append(rows, row{fault: "answers " + codeName(code) + " for " + lasts.String(), play: playRefusedFor(code, lasts)})
		}
	}
	return rows
}

const manyJobs = 1000

func busy(c *setup) { c.MaxJobsActive, c.Concurrency = 200, 100 }

// playFullBuffer is the real broker at 200 commands in flight, in small.
func playFullBuffer(f *fixture) result {
	f.claims(manyJobs)
	w := f.worker("w1", busy)
	f.settled(manyJobs)
	w.leave()
	if f.Calls(gateway.CompleteJob, codes.ResourceExhausted) == 0 {
		f.t.Error("nothing was refused: the row shows nothing")
	}
	return f.result(0).soon(f.t, jobTimeout)
}

func playNowAndThen(code codes.Code) func(*fixture) result {
	return func(f *fixture) result {
		rule := f.Inject(gateway.Fault{Code: code, Every: 20})
		f.claims(manyJobs)
		w := f.worker("w1", busy)
		f.settled(manyJobs)
		w.leave()
		if rule.Fired() == 0 {
			f.t.Error("nothing was refused: the row shows nothing")
		}
		return f.result(0).soon(f.t, soon)
	}
}

// playBurst refuses everything while all jobs are in hand; nothing of it may be left a second later.
func playBurst(code codes.Code) func(*fixture) result {
	return func(f *fixture) result {
		const jobs = 200
		f.claims(jobs)
		answers := f.Inject(gateway.Fault{Code: code, Match: isAnswer})
		w := f.worker("w1", busy)
		f.until("all jobs in hand", func(c gateway.Counts) bool { return c.Held == jobs })
		polls := f.Inject(gateway.Fault{Method: gateway.ActivateJobs, Code: code})
		time.Sleep(time.Second)
		answers.Remove()
		polls.Remove()
		f.settled(jobs)
		f.claims(jobs)
		f.settled(2 * jobs)
		w.leave()
		return f.result(0).soon(f.t, time.Second+soon)
	}
}

// playRefusedFor: a refusal costs what it lasts and a pause, never the time-out, as long as it ends before that and
// before the longest poll can have eaten from it.
func playRefusedFor(code codes.Code, lasts time.Duration) func(*fixture) result {
	return func(f *fixture) result {
		rule := f.Inject(gateway.Fault{Code: code, Match: isAnswer})
		w := f.worker("w1", func(c *setup) { c.JobTimeout, c.PollTimeout = 10*time.Second, 2*time.Second })
		time.Sleep(3 * time.Second) // into a poll
		f.AddJobs(claim(0, passing), claim(1, permanent), claim(2, rejected))
		time.Sleep(lasts)
		rule.Remove()
		f.settled(3)
		w.leave()
		if n := rule.Fired(); n > 3*(7+int(lasts/(longestRetry/2))) {
			f.t.Errorf("%d tries for three jobs in %s, want growing pauses", n, lasts)
		}
		return f.result(0).soon(f.t, lasts+longestRetry)
	}
}

// playEverything: refusals, lost acknowledgements, cut streams, lost connections and slow answers together. Jobs that
// the engine gave away and nobody got wait for their time-out; no other does anything wrong.
func playEverything(f *fixture) result {
	const jobs = 600
	for _, fault := range []gateway.Fault{
		{Every: 31, Code: codes.ResourceExhausted},
		{Every: 37, Code: codes.Unavailable},
		{Every: 53, Code: codes.Internal},
		{Method: gateway.CompleteJob, Every: 29, DropAck: true},
		{Method: gateway.ThrowError, Every: 11, DropAck: true, Code: codes.DeadlineExceeded},
		{Method: gateway.CompleteJob, Every: 97, DropAck: true, DropConnection: true},
		{Method: gateway.ActivateJobs, Every: 5, CutStream: true, CutAfter: 6},
		{Every: 47, SlowReply: 300 * time.Millisecond},
	} {
		f.Inject(fault)
	}
	one, two := f.worker("w1"), f.worker("w2")
	f.claims(jobs)
	f.settled(jobs)
	one.leave()
	two.leave()
	for _, w := range []*local{one, two} {
		if c := w.seen(); c.actions[worker.Failed] > jobs/50 { // the rejected ones only
			f.t.Errorf("%d jobs failed: %v", c.actions[worker.Failed], c.actions)
		}
	}
	return f.result(f.lost(one, two)).with("answers to polls lost too: time-outs of 1 min among it")
}

// playAwayOften: a claim a second, for ten minutes.
func playAwayOften(f *fixture) result {
	const away, jobs = 5 * time.Second, 600
	w := f.worker("w1", func(c *setup) { c.JobTimeout, c.PollTimeout = 10*time.Second, 2*time.Second })
	var down *gateway.Rule
	for n := range jobs {
		switch n % 60 {
		case 0:
			down = f.Inject(gateway.Fault{Code: codes.Unavailable})
		case int(away / time.Second):
			down.Remove()
		}
		f.AddJob(claim(n, []string{passing, permanent, rejected}[n%3]))
		time.Sleep(time.Second)
	}
	f.settled(jobs)
	w.leave()
	w.wantActions(map[worker.Action]int{worker.Completed: jobs / 3, worker.Thrown: jobs / 3, worker.Failed: jobs / 3})
	return f.result(0).soon(f.t, away+longestPause)
}

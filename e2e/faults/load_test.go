package faults_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/gatewaytest"
	"retry-worker/internal/worker"
)

// loadRows: a gateway that is too busy, now and then or for a while.
func loadRows() []row {
	now := func(code codes.Code) func(*testing.T) result {
		return func(t *testing.T) result { return playNowAndThen(t, code) }
	}
	burst := func(code codes.Code) func(*testing.T) result {
		return func(t *testing.T) result { return playBurst(t, code) }
	}
	return []row{
		{"writer buffer full from 20 commands in flight on", playFullBuffer},
		{"5 % of all calls answered RESOURCE_EXHAUSTED", now(codes.ResourceExhausted)},
		{"5 % of all calls answered UNAVAILABLE", now(codes.Unavailable)},
		{"1 s of nothing but RESOURCE_EXHAUSTED", burst(codes.ResourceExhausted)},
		{"1 s of nothing but UNAVAILABLE", burst(codes.Unavailable)},
		{"everything at random, two workers", playChaos},
	}
}

const manyJobs = 1000

func busy(c *setup) { c.MaxJobsActive, c.Concurrency = 200, 100 }

// playFullBuffer is the real broker at 200 commands in flight, in small.
func playFullBuffer(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{EngineOptions: gatewaytest.EngineOptions{
		MaxInFlight: 20, CommandLatency: 2 * time.Millisecond,
	}})
	s.claims(manyJobs)
	w := s.worker("w1", busy)
	s.settled(manyJobs)
	w.leave()
	if s.Calls(gatewaytest.CompleteJob, codes.ResourceExhausted) == 0 {
		t.Error("nothing was refused: the row shows nothing")
	}
	return s.result(0).soon(t, jobTimeout)
}

func playNowAndThen(t *testing.T, code codes.Code) result {
	s := newScene(t, gatewaytest.Options{})
	rule := s.Inject(gatewaytest.Fault{Code: code, Probability: 0.05, Seed: 4})
	s.claims(manyJobs)
	w := s.worker("w1", busy)
	s.settled(manyJobs)
	w.leave()
	if rule.Fired() == 0 {
		t.Error("nothing was refused: the row shows nothing")
	}
	return s.result(0).soon(t, jobTimeout)
}

// playBurst refuses everything while all jobs are in hand; nothing of it may be left a second later.
func playBurst(t *testing.T, code codes.Code) result {
	const jobs = 200
	s := newScene(t, gatewaytest.Options{})
	s.claims(jobs)
	held := s.Inject(gatewaytest.Fault{Code: code, Match: func(c gatewaytest.Call) bool { return c.Method != gatewaytest.ActivateJobs }})
	w := s.worker("w1", busy)
	s.until("all jobs in hand", func(v gatewaytest.View) bool { return v.Held == jobs })
	polls := s.Inject(gatewaytest.Fault{Method: gatewaytest.ActivateJobs, Code: code})
	end := time.AfterFunc(time.Second, func() { held.Remove(); polls.Remove() })
	defer end.Stop()
	s.settled(jobs)
	s.claims(jobs)
	s.settled(2 * jobs)
	w.leave()
	return s.result(0).soon(t, time.Second+recovery)
}

// playChaos: refusals, lost acknowledgements, cut streams, lost connections and slow answers together.
// Jobs that the engine gave away and nobody got wait for their time-out; no other does anything wrong.
func playChaos(t *testing.T) result {
	const jobs = 600
	s := newScene(t, gatewaytest.Options{JobsPerMessage: 4})
	for seed, f := range []gatewaytest.Fault{
		{Probability: 0.03, Code: codes.ResourceExhausted},
		{Probability: 0.03, Code: codes.Unavailable},
		{Probability: 0.02, Code: codes.Internal},
		{Method: gatewaytest.CompleteJob, Probability: 0.03, DropAck: true},
		{Method: gatewaytest.ThrowError, Probability: 0.03, DropAck: true, Code: codes.DeadlineExceeded},
		{Method: gatewaytest.CompleteJob, Probability: 0.01, DropAck: true, DropConnection: true},
		{Method: gatewaytest.ActivateJobs, Probability: 0.2, CutStream: true, CutAfter: 6},
		{Probability: 0.02, SlowReply: 300 * time.Millisecond},
	} {
		f.Seed = uint64(seed)
		s.Inject(f)
	}
	one, two := s.worker("w1"), s.worker("w2")
	s.claims(jobs)
	s.settledAfterLoss(jobs, one, two)
	one.leave()
	two.leave()
	for _, w := range []*inside{one, two} {
		if f := w.figures(); f.actions[worker.Failed] > jobs/20 { // the rejected ones only
			t.Errorf("%d jobs failed: %v", f.actions[worker.Failed], f.actions)
		}
	}
	r := s.result(s.lost(one, two))
	r.remark = "answers to polls lost too; time-outs passed on the engine's clock (+1 min each)"
	return r
}

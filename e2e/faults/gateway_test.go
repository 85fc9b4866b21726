package faults_test

import (
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/worker"
)

const inHand = 30

// gatewayRows: polls whose jobs are lost, a gateway that goes and comes back, and everything together.
func gatewayRows() []row {
	return []row{
		{fault: "a poll's answer is lost", play: playLostActivation},
		{fault: "gateway down, then back on its port", play: playGatewayDown},
		{fault: "everything in turn, two workers", play: playEverything, options: gateway.Options{JobsPerMessage: 4}},
	}
}

// playLostActivation: the engine gave jobs away and the worker never heard of them. Nobody can help before their
// time-out; what comes meanwhile is served.
func playLostActivation(f *fixture) result {
	const lost, later = 20, 20
	f.claims(lost)
	f.Inject(gateway.Fault{Method: gateway.ActivateJobs, DropAck: true, Times: 1})
	w := f.worker("w1")
	f.until("the jobs are lost", func(c gateway.Counts) bool { return c.HandedOut == lost })
	f.claims(later)
	f.settled(later)
	if n := f.Counts().TimedOut; n > 0 {
		f.t.Errorf("the jobs that came later had to wait for the lost ones")
	}
	f.settled(lost + later)
	w.leave()
	return f.result(f.lost(w)).soon(f.t, jobTimeout+soon).with("20 locked by the engine alone, till their time-out of 1 min")
}

// playGatewayDown: what is in hand is answered when the gateway is back, and what came meanwhile too.
func playGatewayDown(f *fixture) result {
	f.same(inHand, passing)
	hold := f.Inject(gateway.Fault{Method: gateway.CompleteJob, Hang: true})
	w := f.worker("w1")
	f.until("a poll beside the jobs in hand", func(c gateway.Counts) bool { return hold.Fired() >= inHand && c.Waiting == 1 })
	hold.Remove()
	f.Down()
	w.untilTold("the loss", eventCounts.down)
	f.same(inHand, permanent)
	time.Sleep(10 * time.Second)
	f.Up()
	f.settled(2 * inHand)
	w.leave()
	w.wantActions(map[worker.Action]int{worker.Completed: inHand, worker.Thrown: inHand})
	if w.seen().down() {
		f.t.Error("the engine's return was not noticed")
	}
	return f.result(0).soon(f.t, 10*time.Second+soon)
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

package faults_test

import (
	"time"

	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/worker"
)

// networkRows: connections and gateways that go, come back, or stand still.
func networkRows() []row {
	return []row{
		{fault: "connection dropped with jobs in hand", play: playDroppedConnection},
		{fault: "connection dropped ten times under load", play: playDroppedOften, options: gateway.Options{Latency: 5 * time.Millisecond}},
		{fault: "gateway down, then back on its port", play: playGatewayDown},
		{fault: "gateway replaced: goes as it should, then back", play: playGatewayReplaced, options: gateway.Options{Latency: 100 * time.Millisecond}},
		{fault: "gateway stands still for a second", play: playFrozenGateway},
	}
}

const inHand = 30

// holding starts a worker that has jobs in hand, none of which it can answer before release. It has room for more, so
// it polls.
func (f *fixture) holding() (w *local, release func()) {
	f.t.Helper()
	f.same(inHand, passing)
	hold := f.Inject(gateway.Fault{Method: gateway.CompleteJob, Hang: true})
	w = f.worker("w1")
	f.fired(hold, inHand)
	f.until("a poll beside the jobs in hand", func(c gateway.Counts) bool { return c.Waiting == 1 })
	return w, hold.Remove
}

// playDroppedConnection: calls under way fail at once and are made again over a new connection.
func playDroppedConnection(f *fixture) result {
	w, release := f.holding()
	release()
	f.DropConnections()
	f.settled(inHand)
	w.leave()
	w.wantActions(map[worker.Action]int{worker.Completed: inHand})
	return f.result(0).soon(f.t, soon)
}

func playDroppedOften(f *fixture) result {
	const jobs, times = 1000, 10
	w := f.worker("w1")
	f.claims(jobs)
	for i := range times {
		f.settled(i * jobs / times)
		f.DropConnections()
	}
	f.settled(jobs)
	w.leave()
	return f.result(f.lost(w)).with("answers to polls lost too: time-outs of 1 min among it")
}

// playGatewayDown: what is in hand is answered when the gateway is back, and what came meanwhile too.
func playGatewayDown(f *fixture) result {
	w, release := f.holding()
	release()
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

// playGatewayReplaced: a gateway that says good-bye, as in a rolling update. It answers what runs.
func playGatewayReplaced(f *fixture) result {
	w := f.worker("w1")
	f.claims(inHand)
	f.until("answers under way", func(gateway.Counts) bool { return f.UnderWay(gateway.CompleteJob) > 0 })
	f.Leave(2 * time.Second)
	f.claims(inHand)
	f.Up()
	f.settled(2 * inHand)
	w.leave()
	return f.result(0).soon(f.t, soon)
}

// playFrozenGateway: nothing is refused, nothing is answered; what was sent is served late.
func playFrozenGateway(f *fixture) result {
	w := f.worker("w1")
	f.until("a poll", func(c gateway.Counts) bool { return c.Waiting == 1 })
	f.Freeze()
	f.claims(inHand)
	time.Sleep(time.Second)
	f.Thaw()
	f.settled(inHand)
	w.leave()
	return f.result(0).soon(f.t, time.Second+soon)
}

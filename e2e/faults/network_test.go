package faults_test

import (
	"testing"
	"time"

	"retry-worker/internal/gatewaytest"
	"retry-worker/internal/worker"
)

// reconnect bounds the way back to a gateway: the longest pause between two connections, and between
// two polls.
const reconnect = recovery

// networkRows: connections and gateways that go, come back, or stand still.
func networkRows() []row {
	return []row{
		{"connection dropped with jobs in hand", playDroppedConnection},
		{"connection dropped ten times under load", playDroppedOften},
		{"gateway down, then back on its port", playGatewayDown},
		{"gateway replaced: goes as it should, then back", playGatewayReplaced},
		{"gateway stands still for a second", playFrozenGateway},
	}
}

// holding starts a worker that has n jobs in hand, none of which it can answer before release. It has
// room for more, so it polls.
func (s *scene) holding(n int) (w *inside, release func()) {
	s.t.Helper()
	s.same(n, passing)
	hold := s.Inject(gatewaytest.Fault{Method: gatewaytest.CompleteJob, Hang: true})
	w = s.worker("w1")
	s.fired(hold, n)
	s.until("a poll beside the jobs in hand", func(v gatewaytest.View) bool { return v.Waiting() == 1 })
	return w, hold.Remove
}

const inHand = 30

// playDroppedConnection: calls under way fail at once and are made again over a new connection.
func playDroppedConnection(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{})
	w, release := s.holding(inHand)
	release()
	s.DropConnections()
	s.settled(inHand)
	w.leave()
	w.wantActions(map[worker.Action]int{worker.Completed: inHand})
	return s.result(0).soon(t, recovery)
}

func playDroppedOften(t *testing.T) result {
	const jobs, times = 1000, 10
	s := newScene(t, gatewaytest.Options{})
	s.SetCommandLatency(5 * time.Millisecond)
	w := s.worker("w1")
	s.claims(jobs)
	for i := range times {
		s.settledAfterLoss(i*jobs/times, w)
		s.DropConnections()
	}
	s.settledAfterLoss(jobs, w)
	w.leave()
	r := s.result(s.lost(w))
	r.remark = "answers to polls lost too; time-outs passed on the engine's clock (+1 min each)"
	return r
}

// playGatewayDown: what is in hand is answered when the gateway is back, and what came meanwhile too.
func playGatewayDown(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{})
	w, release := s.holding(inHand)
	release()
	s.Down()
	w.until("the loss is noticed", func(f figures) bool { return !f.ups[len(f.ups)-1] })
	s.same(inHand, permanent)
	s.Up()
	s.settled(2 * inHand)
	w.leave()
	w.wantActions(map[worker.Action]int{worker.Completed: inHand, worker.Thrown: inHand})
	if got := w.figures().ups; !got[len(got)-1] {
		t.Error("the engine's return was not noticed")
	}
	return s.result(0).soon(t, reconnect)
}

// playGatewayReplaced: a gateway that says good-bye, as in a rolling update. It answers what runs.
func playGatewayReplaced(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{})
	s.SetCommandLatency(100 * time.Millisecond)
	w := s.worker("w1")
	s.claims(inHand)
	s.until("answers under way", func(v gatewaytest.View) bool {
		now, _ := v.UnderWay(gatewaytest.CompleteJob)
		return now > 0
	})
	s.DownGracefully(2 * time.Second)
	s.claims(inHand)
	s.Up()
	s.settled(2 * inHand)
	w.leave()
	return s.result(0).soon(t, reconnect)
}

// playFrozenGateway: nothing is refused, nothing is answered; what was sent is served late.
func playFrozenGateway(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{})
	w := s.worker("w1")
	s.until("a poll", func(v gatewaytest.View) bool { return v.Waiting() == 1 })
	s.Freeze()
	end := time.AfterFunc(time.Second, s.Thaw)
	defer end.Stop()
	s.claims(inHand)
	s.settled(inHand)
	w.leave()
	return s.result(0).soon(t, time.Second+recovery)
}

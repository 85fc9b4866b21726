package faults_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/gatewaytest"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"

	"go.uber.org/zap"
)

func panicRows() []row {
	return []row{
		{"handler panics once on every tenth job", playPanicsOnce},
		{"handler panics on a job each time", playPanicsAlways},
	}
}

// secret stands for what a job may hold and no log may show.
const secret = "CPF 000.000.001-91"

// panicking is the real handler, but for jobs that meet blows up.
func panicking(t *testing.T, blows func(j *worker.Job) bool) func(*setup) {
	handler := worker.NewAnalyzer(decisiontest.Policies, decision.RNBIL005, testkit.StartJournal(t, testkit.NewMemory(), time.Now), time.Now, worker.NoHooks(), zap.NewNop()).Begin().Handler
	return func(c *setup) {
		c.handler = func(ctx context.Context, j *worker.Job) worker.Reply {
			if blows(j) {
				panic("cannot handle " + secret)
			}
			return handler(ctx, j)
		}
	}
}

// playPanicsOnce: such a job loses one retry, waits for a back-off and is answered; the others do not
// notice.
func playPanicsOnce(t *testing.T) result {
	const jobs, panics = 100, 10
	s := newScene(t, gatewaytest.Options{})
	var met sync.Map
	keys := s.same(jobs, passing)
	w := s.worker("w1", panicking(t, func(j *worker.Job) bool {
		_, again := met.LoadOrStore(j.Key, true)
		return !again && (j.Key-keys[0])/3%10 == 0 // three keys a job
	}))
	w.until("all jobs reported", func(f figures) bool { return f.answered() == jobs })
	w.wantActions(map[worker.Action]int{worker.Completed: jobs - panics, worker.Failed: panics})
	for _, j := range s.Journal() {
		if j.State == gatewaytest.BackingOff && j.Retries != 2 {
			t.Errorf("a job that panicked has %d retries of 3, want 2", j.Retries)
		}
	}
	s.Advance(penaltyBackoff)
	s.settled(jobs)
	w.leave()
	s.noSecret(w)
	if n := w.figures().panicked; n != panics {
		t.Errorf("%d panics counted, want %d", n, panics)
	}
	r := s.result(0).soon(t, penaltyBackoff+recovery)
	r.remark = "their back-off passed on the engine's clock (+10 s)"
	return r
}

// playPanicsAlways: when its retries are used up the job is an incident, not a circle.
func playPanicsAlways(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{})
	broken := s.AddJob(claim(1000, passing))
	w := s.worker("w1", panicking(t, func(j *worker.Job) bool { return j.Key == broken }))
	s.same(inHand, passing)
	for n := 1; n <= 3; n++ {
		w.until("a panic", func(f figures) bool { return f.panicked == n && f.answered() == inHand+n })
		s.Advance(penaltyBackoff)
	}
	s.settled(inHand + 1)
	w.leave()
	s.noSecret(w)
	if j, _ := s.Job(broken); j.State != gatewaytest.Incident {
		t.Errorf("after three panics the job is %v, want an incident", j.State)
	}
	r := s.result(0).soon(t, 2*penaltyBackoff+recovery)
	r.remark = "two back-offs passed on the engine's clock (+20 s)"
	return r
}

// noSecret fails where what the panic said reached the log or the engine.
func (s *scene) noSecret(w *inside) {
	s.t.Helper()
	for _, line := range w.logs.All() {
		for _, v := range line.ContextMap() {
			if text, ok := v.(string); ok && strings.Contains(text, secret) {
				s.t.Errorf("the log shows the job's data: %s", line.Message)
			}
		}
	}
	for _, j := range s.Journal() {
		for _, a := range j.Answers {
			if strings.Contains(a.Message, secret) {
				s.t.Errorf("the incident shows the job's data: %s", a.Message)
			}
		}
	}
}

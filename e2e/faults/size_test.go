package faults_test

import (
	"fmt"
	"strings"
	"testing"

	"retry-worker/internal/gatewaytest"
	"retry-worker/internal/worker"
)

// sizeRows: jobs larger than a job can be.
func sizeRows() []row {
	return []row{
		{"job above 1 MB: rejected, by an incident", playLargeJob},
		{"activation above 16 MB: asked for fewer", playLargeActivation},
		{"one job above 16 MB: nobody can read it", playUnreadableJob},
	}
}

func sized(n, bytes int) gatewaytest.Job {
	j := claim(n, strings.Repeat("TIMEOUT ", bytes/8))
	return j
}

// playLargeJob: it is rejected by name; the jobs beside it are answered.
func playLargeJob(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{})
	large := s.AddJob(sized(1000, 1<<20))
	s.same(inHand, passing)
	w := s.worker("w1")
	s.settled(inHand + 1)
	w.leave()
	w.wantActions(map[worker.Action]int{worker.Completed: inHand, worker.Failed: 1})
	j, _ := s.Job(large)
	if last := j.Answers[len(j.Answers)-1]; j.State != gatewaytest.Incident || !strings.Contains(last.Message, "bytes") || len(last.Message) > 1000 {
		t.Errorf("the large job is %v with %.200q, want an incident that names the size", j.State, last.Message)
	}
	if n := w.figures().oversized; n != 1 {
		t.Errorf("%d oversized jobs counted, want 1", n)
	}
	return s.result(0).soon(t, recovery)
}

// playLargeActivation: each job may be read, all of them together do not fit. They are locked by the
// engine until their time-out, then come in smaller helpings; other jobs do not wait for them.
func playLargeActivation(t *testing.T) result {
	const large, others = 40, 20
	s := newScene(t, gatewaytest.Options{EngineOptions: gatewaytest.EngineOptions{MaxBatch: 64 << 20}})
	jobs := make([]gatewaytest.Job, large)
	for i := range jobs {
		jobs[i] = sized(i, 500<<10)
	}
	s.AddJobs(jobs...)
	w := s.worker("w1")
	w.until("the activation is noticed", func(f figures) bool { return f.oversized == 1 })
	s.same(others, passing)
	s.settled(others)
	if s.Counts().TimedOut > 0 {
		t.Error("the jobs that can be read had to wait for the others")
	}
	s.settledAfterLoss(large+others, w)
	w.leave()
	if n := w.logs.FilterMessageSnippet("too large").Len(); n != w.figures().oversized {
		t.Errorf("%d log lines for %d activations that were too large", n, w.figures().oversized)
	}
	if ups := fmt.Sprint(w.figures().ups); ups != "[true]" {
		t.Errorf("the engine was said to be %s, want up all the time", ups)
	}
	r := s.result(large).soon(t, jobTimeout+recovery)
	r.remark = "40 locked by the engine alone; the time-out passed on its clock (+1 min)"
	return r
}

// playUnreadableJob: nothing can be said about such a job, not even its key; it is counted each time, and
// keeps nobody else from being served.
func playUnreadableJob(t *testing.T) result {
	const others, rounds = 40, 3
	s := newScene(t, gatewaytest.Options{})
	unreadable := s.AddJob(sized(1000, 17<<20))
	w := s.worker("w1")
	for i := range rounds {
		w.until("it is noticed", func(f figures) bool { return f.oversized == i+1 })
		s.same(others, passing)
		w.until("the others are answered", func(f figures) bool { return f.actions[worker.Completed] == (i+1)*others })
		if i < rounds-1 {
			s.Advance(jobTimeout)
		}
	}
	w.leave()
	if err := s.Cancel(within(t), rivalName, instanceOf(s, unreadable)); err != nil { // all that an operator can do
		t.Error(err)
	}
	report := s.Report()
	if report.AnsweredOnce != rounds*others || report.AnsweredMore > 0 || report.Locked > 0 {
		t.Errorf("%v; want all but the unreadable one answered once", report)
	}
	r := s.counted(report)
	r.wait = 0
	for _, j := range report.Jobs {
		if j.Key != unreadable {
			r.wait = max(r.wait, j.WaitAnswered)
		}
	}
	r.remark = "one never read: its process instance has to be cancelled"
	return r.soon(t, recovery)
}

func instanceOf(s *scene, key int64) int64 {
	j, _ := s.Job(key)
	return j.ProcessInstanceKey
}

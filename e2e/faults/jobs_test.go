package faults_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/worker"
)

// jobRows: jobs larger than a job can be, and jobs that the handler panics on.
func jobRows() []row {
	return []row{
		{fault: "job above 1 MB: rejected, by an incident", play: playLargeJob},
		{fault: "activation above 16 MB: asked for fewer", play: playLargeActivation, options: gateway.Options{MaxBatch: 64 << 20}},
		{fault: "one job above 16 MB: nobody can read it", play: playUnreadableJob},
		{fault: "handler panics once on every tenth job", play: playPanicsOnce},
		{fault: "handler panics on a job each time", play: playPanicsAlways},
	}
}

func sized(n, bytes int) gateway.Job { return claim(n, strings.Repeat("TIMEOUT ", bytes/8)) }

// playLargeJob: it is rejected by name; the jobs beside it are answered.
func playLargeJob(f *fixture) result {
	large := f.AddJob(sized(1000, 1<<20))
	f.same(inHand, passing)
	w := f.worker("w1")
	f.settled(inHand + 1)
	w.leave()
	w.wantActions(map[worker.Action]int{worker.Completed: inHand, worker.Failed: 1})
	j, _ := f.Job(large)
	if last := j.Answers[len(j.Answers)-1]; j.State != gateway.Incident || !strings.Contains(last.Message, "bytes") || len(last.Message) > 1000 {
		f.t.Errorf("the large job is %v with %.200q, want an incident that names the size", j.State, last.Message)
	}
	if n := w.seen().oversized; n != 1 {
		f.t.Errorf("%d oversized jobs counted, want 1", n)
	}
	return f.result(0).soon(f.t, soon)
}

// playLargeActivation: each job may be read, all of them together do not fit. They are locked by the engine until
// their time-out, then come in smaller helpings; other jobs do not wait for them.
func playLargeActivation(f *fixture) result {
	const large, others = 40, 20
	jobs := make([]gateway.Job, large)
	for i := range jobs {
		jobs[i] = sized(i, 500<<10)
	}
	f.AddJobs(jobs...)
	w := f.worker("w1")
	w.untilTold("the activation is noticed", func(c eventCounts) bool { return c.oversized == 1 })
	f.same(others, passing)
	f.settled(others)
	if f.Counts().TimedOut > 0 {
		f.t.Error("the jobs that can be read had to wait for the others")
	}
	f.settled(large + others)
	w.leave()
	if n := w.logs.FilterMessageSnippet("too large").Len(); n != w.seen().oversized {
		f.t.Errorf("%d log lines for %d activations that were too large", n, w.seen().oversized)
	}
	if ups := fmt.Sprint(w.seen().ups); ups != "[true]" {
		f.t.Errorf("the engine was said to be %s, want up all the time", ups)
	}
	return f.result(large).soon(f.t, jobTimeout+soon).with("40 locked by the engine alone, till their time-out of 1 min")
}

// playUnreadableJob: nothing can be said about such a job, not even its key; it is counted each time, and keeps
// nobody else from being served.
func playUnreadableJob(f *fixture) result {
	const others, rounds = 40, 3
	unreadable := f.AddJob(sized(1000, 17<<20))
	w := f.worker("w1")
	for i := range rounds {
		w.untilTold("it is noticed", func(c eventCounts) bool { return c.oversized == i+1 })
		f.same(others, passing)
		w.untilTold("the others are answered", func(c eventCounts) bool { return c.actions[worker.Completed] == (i+1)*others })
	}
	w.leave()
	j, _ := f.Job(unreadable)
	f.Cancel(j.ProcessInstanceKey) // all that an operator can do
	r, _ := f.count()
	if r.once != rounds*others || r.jobs != r.once+1 || r.locked > 0 {
		f.t.Errorf("%+v; want all but the unreadable one answered once", r)
	}
	r.wait = 0
	for _, j := range f.Journal() {
		if j.Key != unreadable {
			r.wait = max(r.wait, j.Answers[0].At.Sub(j.Added))
		}
	}
	return r.soon(f.t, soon).with("one never read: its process instance has to be cancelled")
}

// secret stands for what a job may hold and no log may show.
const secret = "CPF 000.000.001-91"

// panicking is the real handler, but for jobs that it panics on.
func (f *fixture) panicking(on func(j *worker.Job) bool) func(*setup) {
	real := handler(f.t, f.memory, worker.NoHooks())
	return func(c *setup) {
		c.handler = func(ctx context.Context, j *worker.Job) worker.Reply {
			if on(j) {
				panic("cannot handle " + secret)
			}
			return real(ctx, j)
		}
	}
}

// playPanicsOnce: such a job loses one retry, waits for a back-off and is answered; the others do not notice.
func playPanicsOnce(f *fixture) result {
	const jobs, panics = 100, 10
	var met sync.Map
	keys := f.same(jobs, passing)
	w := f.worker("w1", f.panicking(func(j *worker.Job) bool {
		_, again := met.LoadOrStore(j.Key, true)
		return !again && (j.Key-keys[0])/3%10 == 0 // three keys a job
	}))
	w.allReported(jobs)
	w.wantActions(map[worker.Action]int{worker.Completed: jobs - panics, worker.Failed: panics})
	for _, j := range f.Journal() {
		if j.State == gateway.BackingOff && j.Retries != 2 {
			f.t.Errorf("a job that panicked has %d retries of 3, want 2", j.Retries)
		}
	}
	f.settled(jobs)
	w.leave()
	w.hides(secret)
	if n := w.seen().panicked; n != panics {
		f.t.Errorf("%d panics counted, want %d", n, panics)
	}
	return f.result(0).soon(f.t, penaltyBackoff+soon).with("their back-off of 10 s among it")
}

// playPanicsAlways: when its retries are used up the job is an incident, not a circle.
func playPanicsAlways(f *fixture) result {
	broken := f.AddJob(claim(1000, passing))
	w := f.worker("w1", f.panicking(func(j *worker.Job) bool { return j.Key == broken }))
	f.same(inHand, passing)
	f.settled(inHand + 1)
	w.leave()
	w.hides(secret)
	if n := w.seen().panicked; n != 3 {
		f.t.Errorf("%d panics, want one for each retry", n)
	}
	if j, _ := f.Job(broken); j.State != gateway.Incident {
		f.t.Errorf("after three panics the job is %v, want an incident", j.State)
	}
	return f.result(0).soon(f.t, 2*penaltyBackoff+2*time.Second+soon).with("two back-offs of 10 s among it")
}

// hides fails where a text reached the log or the engine.
func (w *local) hides(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		for _, line := range w.logs.All() {
			if strings.Contains(fmt.Sprint(line.Message, line.ContextMap()), text) {
				w.t.Errorf("the log shows %q: %s", text, line.Message)
			}
		}
		for _, j := range w.Journal() {
			for _, a := range j.Answers {
				if strings.Contains(a.Message, text) {
					w.t.Errorf("the incident shows %q: %s", text, a.Message)
				}
			}
		}
	}
}

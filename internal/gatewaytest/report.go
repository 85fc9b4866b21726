package gatewaytest

import (
	"fmt"
	"time"
)

// JobReport is what became of one job.
type JobReport struct {
	Key         int64
	Type        string
	State       State
	Activations int
	Settling    int // accepted answers that settled it; above 1 only after a resolved incident
	// Repeated counts answers a worker sent although it had been told that an
	// earlier one of its own was accepted, and nobody gave it the job again.
	Repeated int
	TimedOut int // activations nobody answered until they ran out

	Locked   bool          // a worker holds it, by the engine's view
	LockedBy string        // that worker
	LockLeft time.Duration // until its time-out
	// EngineLock tells that the engine alone locks it: the worker never got
	// the answer that gave it the job.
	EngineLock bool

	WaitActivated time.Duration // longest from becoming activatable till activated, or till now
	WaitAnswered  time.Duration // from being added till settled, or till now
}

// AnsweredOnce tells that exactly one answer settled the job, and that no worker
// repeated itself.
func (r JobReport) AnsweredOnce() bool { return r.Settling == 1 && r.Repeated == 0 }

// Report sums up what became of all jobs that were added.
type Report struct {
	Jobs         []JobReport // in the order of keys
	AnsweredOnce int
	AnsweredMore int // settled or answered more often than once
	Unanswered   int // not settled by an answer
	Locked       int // held by a worker
	EngineLocked int // of these, by the engine alone
	TimedOut     int // activations that ran out
	MaxHeld      int // jobs held at once, at most

	LongestLock   time.Duration // longest time until a held job's time-out
	WaitActivated time.Duration // longest of the jobs
	WaitAnswered  time.Duration // longest of the jobs
}

// Report says what became of every job that was added, as of now; taken after
// the worker left, Locked is what it left behind.
//
// Who sent an answer is told by the name its connection last polled by, or, if
// it never did, by the one worker that ever had the job; give workers different
// names. An acknowledgement sent within a second before the gateway cut the
// connection may not have arrived, and does not count.
func (e *Engine) Report() Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	e.expire(now)
	report := Report{MaxHeld: e.held.most}
	for _, record := range e.view().Journal() {
		report.add(record.report(now))
	}
	return report
}

func (r *Report) add(j JobReport) {
	r.Jobs = append(r.Jobs, j)
	switch {
	case j.AnsweredOnce():
		r.AnsweredOnce++
	case j.Settling == 0 && j.Repeated == 0:
		r.Unanswered++
	default:
		r.AnsweredMore++
	}
	if j.Locked {
		r.Locked++
	}
	if j.EngineLock {
		r.EngineLocked++
	}
	r.TimedOut += j.TimedOut
	r.LongestLock = max(r.LongestLock, j.LockLeft)
	r.WaitActivated = max(r.WaitActivated, j.WaitActivated)
	r.WaitAnswered = max(r.WaitAnswered, j.WaitAnswered)
}

// String is the report in one line.
func (r Report) String() string {
	return fmt.Sprintf("%d jobs: %d answered once, %d more often, %d not; %d locked (%d by the engine alone, longest for %s), "+
		"%d time-outs, %d held at most; longest wait %s till activated, %s till answered",
		len(r.Jobs), r.AnsweredOnce, r.AnsweredMore, r.Unanswered, r.Locked, r.EngineLocked, round(r.LongestLock),
		r.TimedOut, r.MaxHeld, round(r.WaitActivated), round(r.WaitAnswered))
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func (r *JobRecord) report(now time.Time) JobReport {
	j := JobReport{Key: r.Key, Type: r.Type, State: r.State, Activations: len(r.Activations), Repeated: r.repeated()}
	j.WaitActivated, j.WaitAnswered = r.LongestWait, now.Sub(r.Added)
	for _, a := range r.Answers {
		if a.Settled {
			j.Settling++
			j.WaitAnswered = a.At.Sub(r.Added)
		}
	}
	for _, a := range r.Activations {
		if a.RanOut {
			j.TimedOut++
		}
	}
	switch r.State {
	case Activatable:
		j.WaitActivated = max(j.WaitActivated, now.Sub(r.Since))
	case Activated:
		last := r.Activations[len(r.Activations)-1]
		j.Locked, j.LockedBy, j.EngineLock = true, last.Worker, !last.Delivered
		j.LockLeft = last.Deadline.Sub(now)
	}
	return j
}

// repeated counts answers that came from a worker which had an answer of its
// own acknowledged since it was last given the job. A second answer after a
// lost acknowledgement, or after the job went to somebody else, is no repeat.
// Workers are told apart by their names, so that a new connection is no new
// worker.
func (r *JobRecord) repeated() int {
	n := 0
	for i, a := range r.Answers {
		if a.answersJob() && r.acknowledged(a, r.Answers[:i]) {
			n++
		}
	}
	return n
}

func (r *JobRecord) acknowledged(a Answer, before []Answer) bool {
	given := r.lastGiven(a.Worker, a.At)
	for _, b := range before {
		if b.answersJob() && b.Acked && a.Worker != "" && b.Worker == a.Worker && !b.At.Before(given) {
			return true
		}
	}
	return false
}

// lastGiven is when a worker was last given the job before at; zero if never.
func (r *JobRecord) lastGiven(worker string, at time.Time) time.Time {
	var last time.Time
	for _, a := range r.Activations {
		if a.Worker == worker && !a.At.After(at) {
			last = a.At
		}
	}
	return last
}

package faults_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit/gateway"
)

// row is one fault, played; it returns what became of the jobs.
type row struct {
	fault   string
	play    func(*fixture) result
	options gateway.Options
}

// result is a row's part of the table.
type result struct {
	jobs, once, locked int
	wait               time.Duration
	remark             string
}

// TestMatrix plays every fault, over gRPC and over REST, and prints the table.
func TestMatrix(t *testing.T) {
	rows := slices.Concat(callRows(), answerRows(), gatewayRows())
	for _, r := range slices.Clone(rows) {
		r.fault, r.options.REST = "REST: "+r.fault, true
		rows = append(rows, r)
	}
	results := make([]result, len(rows))
	t.Run("fault", func(t *testing.T) {
		for i, r := range rows {
			t.Run(r.fault, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r.options.InMemory = true
					results[i] = r.play(newFixture(t, r.options))
				})
			})
		}
	})
	report(t, rows, results)
}

// report adds a line for each row to what is printed at the end.
func report(t *testing.T, rows []row, results []result) {
	for i, r := range rows {
		if got := results[i]; got.jobs > 0 { // others were not selected, or failed half-way
			harness.Report(t, "fault %-44s %d jobs, %d answered once, %d locked, longest wait %s%s",
				r.fault, got.jobs, got.once, got.locked, got.wait.Round(10*time.Millisecond), got.remark)
		}
	}
}

// count sums up what became of the jobs, and how many waited for their time-out. A job counts as answered once where
// one answer settled it, and no worker repeated one that it knew to be taken.
func (f *fixture) count() (r result, timedOut int) {
	for _, j := range f.Journal() {
		r.jobs++
		settling, wait := 0, f.Now().Sub(j.Added)
		for _, a := range j.Answers {
			if a.Settled {
				settling++
				wait = a.At.Sub(j.Added)
			}
		}
		if settling == 1 && !repeated(&j) {
			r.once++
		}
		if j.State == gateway.Activated {
			r.locked++
		}
		for _, given := range j.Activations {
			if given.TimedOut {
				timedOut++
			}
		}
		r.wait = max(r.wait, wait)
	}
	return r, timedOut
}

// repeated reports whether a worker answered a job again although it had been told, since it was last given the job,
// that an answer of its own was taken.
func repeated(j *gateway.Record) bool {
	for i, a := range j.Answers {
		var given time.Time
		times := 0 // that it was given at that instant: the clock may stand
		for _, activation := range j.Activations {
			switch {
			case activation.Worker != a.Worker || activation.At.After(a.At):
			case activation.At.After(given):
				given, times = activation.At, 1
			default:
				times++
			}
		}
		for _, b := range j.Answers[:i] {
			if answersJob(a) && answersJob(b) && b.Acked && b.Worker == a.Worker && b.Worker != "" && !b.At.Before(given) {
				if times--; b.At.After(given) || times <= 0 {
					return true
				}
			}
		}
	}
	return false
}

func answersJob(a gateway.Answer) bool {
	return a.Method == gateway.CompleteJob || a.Method == gateway.FailJob || a.Method == gateway.ThrowError
}

// result holds the row against what is true of every fault: each job answered once, nothing left behind by the
// workers, which must all have gone; and no time-outs but those the fault explains.
func (f *fixture) result(timeouts int) result {
	f.t.Helper()
	r, timedOut := f.count()
	if r.once != r.jobs {
		f.t.Errorf("%d of %d jobs were answered once, want all", r.once, r.jobs)
	}
	if r.locked > 0 {
		f.t.Errorf("%d jobs are left locked, want none", r.locked)
	}
	if timedOut > timeouts {
		f.t.Errorf("%d jobs waited for their time-out, want at most %d", timedOut, timeouts)
	}
	return r
}

// soon fails where the longest wait is beyond bound.
func (r result) soon(t *testing.T, bound time.Duration) result {
	t.Helper()
	if r.wait > bound {
		t.Errorf("a job waited %s, want at most %s", r.wait, bound)
	}
	return r
}

// with adds a remark.
func (r result) with(format string, args ...any) result {
	r.remark = ": " + fmt.Sprintf(format, args...)
	return r
}

package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness/postgres"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// loadSize is how many instances flow at once.
const loadSize = 120

// load are instances of SUB_06 of four kinds, as many of each: one fails once and waits for its timer, one
// fails for good and is discarded, one is sent again by the review, one has used up its retries and is sent
// again by the review.
type load struct {
	keys      []int64
	scheduled []int64 // of the first kind
}

func (s *scenario) startLoad() load { return s.startLoadOf(loadSize) }

func (s *scenario) startLoadOf(size int) (l load) {
	s.t.Helper()
	discarded, corrected, exhausted := failing("INSURANCE_EXPIRED"), failing("INVALID_PATIENT_DATA"), failing("HTTP 503")
	discarded.Review.Discard = true
	exhausted.Retried = 5
	kinds := []struct {
		claim
		extra map[string]any
	}{{failing("TIMEOUT"), nil}, {discarded, nil}, {corrected, nil}, {exhausted, map[string]any{"retryCount": exhausted.Retried}}}
	l.keys = s.createAll("SUB_06", size, func(n int) map[string]any {
		kind := kinds[n%len(kinds)]
		return submission(s.claimID(n), kind.claim, kind.extra)
	})
	for n := 0; n < size; n += len(kinds) {
		l.scheduled = append(l.scheduled, l.keys[n])
	}
	return l
}

// loadCounts are the broker's counters when the load has ended.
func loadCounts() counts { return loadCountsOf(loadSize) }

func loadCountsOf(size int) counts {
	each := size / 4
	return counts{
		"submit-claim error thrown": size, "submit-claim completed": 3 * each,
		"analyze-retry completed": each, "analyze-retry error thrown": 3 * each,
		"retry-review completed": 3 * each, "record-retry-outcome completed": 3 * each,
		"timers triggered": 3 * each, "processes completed": size,
	}
}

// finish waits until nothing is left but the timers of the first kind, lets them fire, and waits for the end of all.
func (s *scenario) finish(l load) {
	s.t.Helper()
	s.awaitAll(l.keys, "the load to end or to wait for its timers", func(i *instance) bool {
		return i.over() || slices.Contains(l.scheduled, i.key) && len(i.timers) > 0
	})
	s.climb(l.scheduled, 0)
	s.awaitEnded(l.keys...)
}

// awaitAnswers waits until so many analyses of the scenario have been answered.
func (s *scenario) awaitAnswers(n int) {
	s.t.Helper()
	s.await(fmt.Sprintf("%d analyses to be answered", n), func() bool {
		answered := 0
		for _, j := range s.history.jobs {
			if j.kind == worker.AnalyzeRetry && len(j.answers) > 0 && j.answers[0].position > s.first {
				answered++
			}
		}
		return answered >= n
	})
}

// outcome is what the broker's record says of the jobs of a scenario.
type outcome struct {
	jobs     int
	byWorker map[string]int // answers of our worker's job types, by who gave them
	timedOut []*job
	regiven  []*job // given out again without having been given back
	refused  int    // answers that the broker refused because it had one: sent again after a silence
	handed   int    // handed back by a worker that stopped
}

// look holds each job of the instances against the rule that it is answered once, and gathers the rest.
func (s *scenario) look(keys []int64) outcome {
	s.t.Helper()
	s.history.Lock()
	defer s.history.Unlock()
	o := outcome{byWorker: make(map[string]int)}
	for _, key := range keys {
		for _, j := range s.history.instances[key].jobs {
			o.jobs++
			if len(j.answers) != 1 {
				s.t.Errorf("the job %d (%s) was answered %d times", j.key, j.kind, len(j.answers))
				continue
			}
			if j.ours() {
				o.byWorker[j.answers[0].worker]++
			}
			if len(j.timeouts) > 0 {
				o.timedOut = append(o.timedOut, j)
			}
			if len(j.activations) != 1+len(j.timeouts)+len(j.failures) {
				o.regiven = append(o.regiven, j)
			}
			for _, f := range j.failures {
				if strings.HasPrefix(f.message, handedBackMark) {
					o.handed++
				}
			}
		}
	}
	for _, r := range s.history.rejections {
		if r.Position > s.first {
			o.refused++
		}
	}
	return o
}

// expectGivenOutOnce holds that each job was in one worker's hands only, which answered it or gave it back:
// none waited for its time-out.
func (s *scenario) expectGivenOutOnce(o outcome) {
	s.t.Helper()
	for _, j := range o.timedOut {
		s.t.Errorf("the job %d (%s), created at %s, waited for its time-out at %s", j.key, j.kind, clock(j.created), clock(j.timeouts[0]))
	}
	for _, j := range o.regiven {
		s.t.Errorf("the job %d (%s) was given out %d times and given back %d times", j.key, j.kind, len(j.activations), len(j.failures))
	}
}

func (s *scenario) expectBothTookPart(o outcome, workers ...*process) {
	s.t.Helper()
	total := 0
	for _, w := range workers {
		if o.byWorker[w.name] == 0 {
			s.t.Errorf("the worker %s answered nothing; the answers were %v", w.name, o.byWorker)
		}
		total += o.byWorker[w.name]
	}
	if want := loadSize + 3*loadSize/4; total != want {
		s.t.Errorf("the workers answered %v, expected %d jobs together", o.byWorker, want)
	}
}

// A job that the crash itself locked is told by the moment the broker was asked for it, which it recorded
// before it died: whoever asked lost the connection and was never told of the job, or was told and answers
// when the broker is back. One that has just come back may answer a poll when its sender waits no longer. A job that was
// asked for after that must not wait for its time-out.
func TestBrokerKilledUnderLoad(t *testing.T) {
	s := beginFaults(t, "kills")
	l := s.startLoad()
	w := s.serve("worker", "RETRY_WORKER_CONCURRENCY=8", "RETRY_WORKER_JOB_TIMEOUT=45s")
	p := s.startPortal(w)
	s.awaitAnswers(60)
	s.Kill()
	killed := s.clock.Now()
	testkit.Must(s.t, s.restart(t.Context()))
	down := s.clock.Now().Sub(killed)
	settled := s.clock.Now().Add(time.Minute)
	s.finish(l)

	o := s.look(l.keys)
	for _, j := range o.timedOut {
		if last := j.lastAsked(); j.ours() && (last.IsZero() || last.After(settled)) {
			t.Errorf("the job %d (%s), asked for at %v, long after the crash at %v, waited for its time-out", j.key, j.kind, last, killed)
		}
	}
	s.done("broker killed under load", "%d instances, %d jobs, each answered once, broker away %.1f s, %d waited for the time-out, all locked about the crash, %d given out and forgotten; worker: %v",
		len(l.keys), o.jobs, down.Seconds(), len(o.timedOut), p.forgotten(s), w.actions(t))
}

func TestStoppedWorkerLeavesNothingToATimeOut(t *testing.T) {
	s := beginAlone(t, "load")
	l := s.startLoad()
	// Two at a time: when the first one stops, it holds jobs that it has not begun.
	settings := []string{"RETRY_WORKER_CONCURRENCY=2", "RETRY_WORKER_JOB_TIMEOUT=1m", "RETRY_WORKER_DATABASE_URL=" + postgres.Database(t)}
	first, second := s.serve("first", settings...), s.serve("second", settings...)
	s.startPortal(second)
	s.awaitAnswers(40)
	begun := time.Now()
	testkit.Must(s.t, first.Stop(t.Context(), wait.Limit))
	took := time.Since(begun)
	if err := first.Err(); err != nil {
		t.Errorf("the worker ended with %v after SIGTERM, expected exit status 0", err)
	}
	s.finish(l)
	s.expectCounts(loadCounts())
	o := s.look(l.keys)
	s.expectGivenOutOnce(o)
	s.expectBothTookPart(o, first, second)
	s.done("a worker stopped under load", "%d instances, %d jobs, %d handed back, stop in %.1f s, no time-out", len(l.keys), o.jobs, o.handed, took.Seconds())
}

// ours reports whether the job is one of the worker's that is answered at once.
func (j *job) ours() bool {
	return j.kind == worker.AnalyzeRetry || j.kind == worker.RecordRetryOutcome
}

// lastAsked is when the broker was asked for the job that its last time-out took back.
func (j *job) lastAsked() (asked time.Time) {
	for _, a := range j.activations {
		if a.given.Before(j.timeouts[len(j.timeouts)-1]) {
			asked = a.asked
		}
	}
	return asked
}

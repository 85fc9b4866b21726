package faults_test

import (
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/gatewaytest"
	"retry-worker/internal/worker"
)

// perKind is how many jobs each way of ending has in a row of answerRows.
const perKind = 15

// answerRows: every status code of CompleteJob, SetVariables, ThrowError and FailJob, once per job.
func answerRows() []row {
	var rows []row
	for _, code := range the16() {
		play := playBusy
		switch code {
		case codes.NotFound:
			play = playAnsweredElsewhere
		case codes.FailedPrecondition:
			play = playFailedElsewhere
		case codes.InvalidArgument, codes.Unimplemented, codes.OutOfRange, codes.AlreadyExists:
			play = playRefused
		}
		rows = append(rows, row{"answers are answered " + codeName(code), func(t *testing.T) result {
			return play(t, code)
		}})
	}
	return rows
}

// kinds puts in perKind jobs of each way to end.
func (s *scene) kinds() (completing, throwing, failing []int64) {
	return s.same(perKind, passing), s.same(perKind, permanent), s.same(perKind, rejected)
}

// allWays is what becomes of them where nothing is in the way.
func allWays() map[worker.Action]int {
	return map[worker.Action]int{worker.Completed: perKind, worker.Thrown: perKind, worker.Failed: perKind}
}

// firstCall is true of the first call about each job, by whichever method; a rival's do not count.
func (s *scene) firstCall() func(gatewaytest.Call) bool {
	var met sync.Map
	return func(c gatewaytest.Call) bool {
		key := s.jobOf(c)
		if key == 0 || c.Caller == rivalName {
			return false
		}
		_, again := met.LoadOrStore(key, true)
		return !again
	}
}

// oncePerJob is firstCall, but that of the jobs that throw, every other one has it at ThrowError only.
func (s *scene) oncePerJob() func(gatewaytest.Call) bool {
	first := s.firstCall()
	return func(c gatewaytest.Call) bool {
		return (c.Method != gatewaytest.SetVariables || s.jobOf(c)%2 == 1) && first(c)
	}
}

// jobOf is the key of the job a call is about; 0 where it is about none.
func (s *scene) jobOf(c gatewaytest.Call) int64 {
	if c.JobKey != 0 || c.Element == 0 {
		return c.JobKey
	}
	for _, j := range s.Journal() {
		if j.ElementInstanceKey == c.Element {
			return j.Key
		}
	}
	return 0
}

// playBusy: the command did not take effect, or may not have: it is sent again soon, and no job waits for
// its time-out.
func playBusy(t *testing.T, code codes.Code) result {
	s := newScene(t, gatewaytest.Options{})
	rule := s.Inject(gatewaytest.Fault{Code: code, Match: s.oncePerJob()})
	w := s.worker("w1")
	s.kinds()
	s.settled(3 * perKind)
	w.leave()
	w.wantActions(allWays())
	s.wantVariables()
	if rule.Fired() != 3*perKind {
		t.Errorf("the fault happened %d times, want once for each job", rule.Fired())
	}
	return s.result(0).soon(t, recovery)
}

// wantVariables fails unless every process sees what was decided for it, whichever way the answer took.
func (s *scene) wantVariables() {
	s.t.Helper()
	for _, j := range s.Journal() {
		want := map[gatewaytest.State]string{gatewaytest.Completed: "true", gatewaytest.ErrorThrown: "false"}[j.State]
		if got := string(s.ProcessVariables(j.ProcessInstanceKey)["shouldRetry"]); got != want {
			s.t.Errorf("job %d is %v and its process sees shouldRetry %q, want %q", j.Key, j.State, got, want)
		}
	}
}

// playAnsweredElsewhere: another worker was first. What the engine says then is the last word.
func playAnsweredElsewhere(t *testing.T, _ codes.Code) result {
	s := newScene(t, gatewaytest.Options{})
	other, first := s.rival(), s.oncePerJob()
	s.Inject(gatewaytest.Fault{Code: codes.NotFound, Match: func(c gatewaytest.Call) bool {
		if first(c) {
			other.completes(s.jobOf(c))
		}
		return false // the engine says it by itself
	}})
	w := s.worker("w1")
	s.kinds()
	w.until("all jobs reported", func(f figures) bool { return f.answered() == 3*perKind })
	w.leave()
	w.wantActions(map[worker.Action]int{worker.Superseded: 3 * perKind})
	s.wantAnswersPerJob(1) // beside the rival's
	return s.result(0).soon(t, recovery)
}

// wantAnswersPerJob fails where our workers sent more than most answers to a job.
func (s *scene) wantAnswersPerJob(most int) {
	s.t.Helper()
	for _, j := range s.Journal() {
		n := 0
		for _, a := range j.Answers {
			if a.Method != gatewaytest.SetVariables && a.Caller != rivalName {
				n++
			}
		}
		if n > most {
			s.t.Errorf("%d answers to job %d, want at most %d: %+v", n, j.Key, most, j.Answers)
		}
	}
}

// playFailedElsewhere: another worker's FailJob was first, with a back-off; the job comes back after it.
func playFailedElsewhere(t *testing.T, _ codes.Code) result {
	s := newScene(t, gatewaytest.Options{})
	other := s.rival()
	var met sync.Map
	s.Inject(gatewaytest.Fault{Code: codes.FailedPrecondition, Match: func(c gatewaytest.Call) bool {
		if _, again := met.LoadOrStore(c.JobKey, true); !again && c.JobKey != 0 && c.Caller != rivalName {
			other.fails(c.JobKey)
		}
		return false
	}})
	w := s.worker("w1")
	s.kinds()
	w.until("all jobs reported", func(f figures) bool { return f.answered() == 3*perKind })
	w.wantActions(map[worker.Action]int{worker.Superseded: 3 * perKind})
	s.Advance(penaltyBackoff)
	s.settled(3 * perKind)
	w.leave()
	want := allWays()
	want[worker.Superseded] = 3 * perKind
	w.wantActions(want)
	r := s.result(0).soon(t, penaltyBackoff+recovery)
	r.remark = "a rival's back-off passed on the engine's clock (+10 s)"
	return r
}

// playRefused: the engine will never take that answer, so the job loses a retry and comes back after a
// back-off; a FailJob that is refused leaves it to its time-out.
func playRefused(t *testing.T, code codes.Code) result {
	s := newScene(t, gatewaytest.Options{})
	s.Inject(gatewaytest.Fault{Code: code, Match: s.oncePerJob()})
	w := s.worker("w1")
	completing, throwing, _ := s.kinds()
	w.until("all jobs reported", func(f figures) bool { return f.answered() == 3*perKind })
	w.wantActions(map[worker.Action]int{worker.Failed: 2 * perKind, worker.Released: perKind})
	for _, key := range append(completing, throwing...) {
		if j, _ := s.Job(key); j.State != gatewaytest.BackingOff || j.Retries != 2 {
			t.Errorf("job %d is %v with %d retries, want a back-off and 2 of 3", key, j.State, j.Retries)
		}
	}
	s.Advance(jobTimeout) // for the FailJobs that were refused
	s.settled(3 * perKind)
	w.leave()
	want := allWays()
	want[worker.Failed] += 2 * perKind
	want[worker.Released] = perKind
	w.wantActions(want)
	r := s.result(perKind).soon(t, jobTimeout+recovery)
	r.remark = "back-off of 10 s, or time-out, passed on the engine's clock (+1 min)"
	return r
}

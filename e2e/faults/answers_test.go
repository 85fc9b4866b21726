package faults_test

import (
	"context"
	"strings"
	"sync"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"

	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/worker"
)

// perKind is how many jobs each way of ending has.
const perKind = 15

// answerRows: every status code of CompleteJob, SetVariables, ThrowError and FailJob, once per job.
func answerRows() (rows []row) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		play := playBusy
		switch code {
		case codes.NotFound:
			play = playAnsweredElsewhere
		case codes.FailedPrecondition:
			play = playFailedElsewhere
		case codes.InvalidArgument, codes.Unimplemented, codes.OutOfRange, codes.AlreadyExists:
			play = playRefused
		}
		rows = append(rows, row{fault: "answers are answered " + codeName(code), play: func(f *fixture) result { return play(f, code) }})
	}
	return rows
}

// kinds puts in perKind jobs of each way to end.
func (f *fixture) kinds() (completing, throwing, failing []int64) {
	return f.same(perKind, passing), f.same(perKind, permanent), f.same(perKind, rejected)
}

// allWays is what becomes of them where nothing is in the way.
func allWays() map[worker.Action]int {
	return map[worker.Action]int{worker.Completed: perKind, worker.Thrown: perKind, worker.Failed: perKind}
}

// firstCall returns what is true of the workers' first call about each job, by whichever method.
func firstCall() func(gateway.Call) bool {
	var met sync.Map
	return func(c gateway.Call) bool {
		if c.JobKey == 0 || c.Worker == "" {
			return false
		}
		_, again := met.LoadOrStore(c.JobKey, true)
		return !again
	}
}

// oncePerJob is firstCall, but that of the jobs that throw, every other one has it at ThrowError only.
func oncePerJob() func(gateway.Call) bool {
	first := firstCall()
	return func(c gateway.Call) bool {
		return (c.Method != gateway.SetVariables || c.JobKey%2 == 1) && first(c)
	}
}

// playBusy: the command did not take effect, or may not have: it is sent again soon, and no job waits for its
// time-out.
func playBusy(f *fixture, code codes.Code) result {
	rule := f.Inject(gateway.Fault{Code: code, Match: oncePerJob()})
	w := f.worker("w1")
	f.kinds()
	f.settled(3 * perKind)
	w.leave()
	w.wantActions(allWays())
	f.wantOutputs()
	if rule.Fired() != 3*perKind {
		f.t.Errorf("the fault happened %d times, want once for each job", rule.Fired())
	}
	return f.result(0).soon(f.t, soon)
}

// wantOutputs fails unless every process sees what was decided for it, whichever way the answer took.
func (f *fixture) wantOutputs() {
	f.t.Helper()
	for _, j := range f.Journal() {
		want := map[gateway.State]string{gateway.Completed: `"shouldRetry":true`, gateway.ErrorThrown: `"shouldRetry":false`}[j.State]
		if !strings.Contains(j.Output, want) {
			f.t.Errorf("job %d is %s and its process sees %s, want %s", j.Key, j.State, j.Output, want)
		}
	}
}

// playAnsweredElsewhere: another worker was first. What the engine says then is the last word.
func playAnsweredElsewhere(f *fixture, _ codes.Code) result {
	first := oncePerJob()
	f.Inject(gateway.Fault{Code: codes.NotFound, Match: func(c gateway.Call) bool {
		if first(c) {
			if _, err := f.CompleteJob(context.Background(), &pb.CompleteJobRequest{JobKey: c.JobKey}); err != nil {
				f.t.Errorf("the other worker's answer: %v", err)
			}
		}
		return false // the gateway says it by itself
	}})
	w := f.worker("w1")
	f.kinds()
	w.allReported(3 * perKind)
	w.leave()
	w.wantActions(map[worker.Action]int{worker.Superseded: 3 * perKind})
	for _, j := range f.Journal() {
		n := 0
		for _, a := range j.Answers {
			n += map[bool]int{true: 1}[answersJob(a) && a.Worker == "w1"]
		}
		if n > 1 {
			f.t.Errorf("%d answers to job %d beside the other worker's, want one: %+v", n, j.Key, j.Answers)
		}
	}
	return f.result(0).soon(f.t, soon)
}

// playFailedElsewhere: another worker's FailJob was first, with a back-off; the job comes back after it.
func playFailedElsewhere(f *fixture, _ codes.Code) result {
	first := firstCall()
	f.Inject(gateway.Fault{Code: codes.FailedPrecondition, Match: func(c gateway.Call) bool {
		if c.Method == gateway.SetVariables || !first(c) {
			return false
		}
		_, err := f.FailJob(context.Background(), &pb.FailJobRequest{
			JobKey: c.JobKey, Retries: 3, RetryBackOff: penaltyBackoff.Milliseconds(),
		})
		if err != nil {
			f.t.Errorf("the other worker's answer: %v", err)
		}
		return false
	}})
	w := f.worker("w1")
	f.kinds()
	w.allReported(3 * perKind)
	want := map[worker.Action]int{worker.Superseded: 3 * perKind}
	w.wantActions(want)
	f.settled(3 * perKind)
	w.leave()
	want = allWays()
	want[worker.Superseded] = 3 * perKind
	w.wantActions(want)
	return f.result(0).soon(f.t, penaltyBackoff+soon).with("another worker's back-off of 10 s among it")
}

// playRefused: the engine will never take that answer, so the job loses a retry and comes back after a back-off; a
// FailJob that is refused leaves it to its time-out.
func playRefused(f *fixture, code codes.Code) result {
	f.Inject(gateway.Fault{Code: code, Match: oncePerJob()})
	w := f.worker("w1")
	completing, throwing, _ := f.kinds()
	w.allReported(3 * perKind)
	w.wantActions(map[worker.Action]int{worker.Failed: 2 * perKind, worker.Released: perKind})
	for _, key := range append(completing, throwing...) {
		if j, _ := f.Job(key); j.State != gateway.BackingOff || j.Retries != 2 {
			f.t.Errorf("job %d is %v with %d retries, want a back-off and 2 of 3", key, j.State, j.Retries)
		}
	}
	f.settled(3 * perKind)
	w.leave()
	want := allWays()
	want[worker.Failed] += 2 * perKind
	want[worker.Released] = perKind
	w.wantActions(want)
	return f.result(perKind).soon(f.t, jobTimeout+soon).with("a back-off of 10 s, or a time-out of 1 min, among it")
}

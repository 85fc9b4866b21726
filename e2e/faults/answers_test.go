package faults_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"

	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/worker"
)

const (
	// perKind is how many jobs each way of ending has.
	perKind = 15
	// shortTimeout of jobs, in rows where the worker's own deadline has to pass, or half of it.
	shortTimeout = 8 * time.Second
)

func short(c *setup) { c.JobTimeout = shortTimeout }

// answerRows: an answer of each job meets each kind of error, or nobody hears that it was taken.
func answerRows() []row {
	return []row{
		{fault: "another worker was first", play: playAnsweredElsewhere},
		{fault: "the engine will never take an answer", play: playRefused},
		{fault: "acknowledgement dropped: UNAVAILABLE", play: playLostAcknowledgement(gateway.Fault{DropAck: true})},
		{fault: "acknowledgement dropped: UNKNOWN", play: playLostAcknowledgement(gateway.Fault{DropAck: true, Code: codes.Unknown})},
		{fault: "acknowledgement later than the deadline", play: playLostAcknowledgement(gateway.Fault{SlowReply: 2 * shortTimeout})},
		{fault: "acknowledgement dropped: silence", play: playLostAcknowledgement(gateway.Fault{DropAck: true, Hang: true})},
		{fault: "acknowledgement dropped with the connection", play: playLostAcknowledgement(gateway.Fault{DropAck: true, DropConnection: true})},
		{fault: "SetVariables took effect, ThrowError never", play: playLostError},
	}
}

// kinds puts in perKind jobs of each way to end, at one instant.
func (f *fixture) kinds() (completing, throwing, failing []int64) {
	keys := f.AddJobs(slices.Concat(alike(perKind, passing), alike(perKind, permanent), alike(perKind, rejected))...)
	return keys[:perKind], keys[perKind : 2*perKind], keys[2*perKind:]
}

// oncePerJob returns what is true of the workers' first call about each job, but that of the jobs that throw, every
// other one has it at ThrowError only.
func oncePerJob() func(gateway.Call) bool {
	var met sync.Map
	return func(c gateway.Call) bool {
		if c.JobKey == 0 || c.Worker == "" || c.Method == gateway.SetVariables && c.JobKey%2 == 0 {
			return false
		}
		_, again := met.LoadOrStore(c.JobKey, true)
		return !again
	}
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
func playAnsweredElsewhere(f *fixture) result {
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

// playRefused: the engine will never take that answer, so the job loses a retry and comes back after a back-off; a
// FailJob that is refused leaves it to its time-out.
func playRefused(f *fixture) result {
	f.Inject(gateway.Fault{Code: codes.InvalidArgument, Match: oncePerJob()})
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
	want := map[worker.Action]int{worker.Completed: perKind, worker.Thrown: perKind, worker.Failed: perKind} // where nothing is in the way
	want[worker.Failed] += 2 * perKind
	want[worker.Released] = perKind
	w.wantActions(want)
	return f.result(perKind).soon(f.t, jobTimeout+soon).with("a back-off of 10 s, or a time-out of 1 min, among it")
}

// playLostAcknowledgement: the answer took effect, and the worker does not hear of it. It asks again, and says what
// it knows: unconfirmed.
func playLostAcknowledgement(fault gateway.Fault) func(*fixture) result {
	return func(f *fixture) result {
		once := oncePerJob()
		fault.Match = func(c gateway.Call) bool { return c.Method != gateway.SetVariables && once(c) }
		f.Inject(fault)
		w := f.worker("w1", short)
		f.kinds()
		w.allReported(3 * perKind)
		w.leave()
		w.wantActions(map[worker.Action]int{worker.Unconfirmed: 3 * perKind})
		return f.result(0).soon(f.t, shortTimeout)
	}
}

// playLostError: the retryCount that the answer wrote into the process does not make the job another one when it comes
// again.
func playLostError(f *fixture) result {
	rule := f.Inject(gateway.Fault{Method: gateway.ThrowError, Hang: true})
	w := f.worker("w1", short)
	keys := f.same(perKind, permanent)
	f.until("the fault to happen to each", func(gateway.Counts) bool { return rule.Fired() >= perKind })
	w.leave()
	rule.Remove()
	next := f.worker("next")
	f.settled(perKind)
	next.leave()
	for _, key := range keys {
		if j, _ := f.Job(key); !strings.Contains(j.Variables, `"retryCount":0`) {
			f.t.Errorf("the job came again with %s, want its retryCount", j.Variables)
		}
	}
	for _, s := range f.memory.Subjects() {
		story, _, err := f.memory.Story(f.t.Context(), s)
		if err != nil || len(story.Attempts) != 1 || len(story.DeadLetters) != 1 {
			f.t.Errorf("%s: %d attempts and %d dead letters (%v), want one", s.ID, len(story.Attempts), len(story.DeadLetters), err)
		}
	}
	return f.result(perKind).soon(f.t, shortTimeout+soon)
}

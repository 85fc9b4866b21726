package faults_test

import (
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/worker"
)

// shortTimeout of jobs, in rows where the worker's own deadline has to pass, or half of it.
const shortTimeout = 8 * time.Second

func short(c *setup) { c.JobTimeout = shortTimeout }

// lostRows: calls that hang, answers that get lost, come late or come in part.
func lostRows() []row {
	rows := []row{
		{fault: "an answer hangs", play: playHangingAnswers},
		{fault: "acknowledgement dropped: UNAVAILABLE", play: playLostAcknowledgement(gateway.Fault{DropAck: true})},
		{fault: "acknowledgement dropped: UNKNOWN", play: playLostAcknowledgement(gateway.Fault{DropAck: true, Code: codes.Unknown})},
		{fault: "acknowledgement dropped: silence", play: playLostAcknowledgement(gateway.Fault{DropAck: true, Hang: true})},
		{fault: "acknowledgement dropped with the connection", play: playLostAcknowledgement(gateway.Fault{DropAck: true, DropConnection: true})},
		{fault: "acknowledgement later than the deadline", play: playLostAcknowledgement(gateway.Fault{SlowReply: 2 * shortTimeout})},
		{fault: "SetVariables took effect, acknowledgement dropped", play: playLostPreparation},
		{fault: "SetVariables took effect, ThrowError never", play: playLostError},
		{fault: "every call hangs for a minute", play: playPaused},
		{fault: "a poll hangs", play: playHangingPoll},
		{fault: "a poll's answer is lost", play: playLostActivation},
		{fault: "a poll's answer comes late, answers are refused then", play: playLateActivation(60)},
		{fault: "a poll's answer comes later than the time-out", play: playLateActivation(105)},
		{fault: "a poll's stream is cut: jobs and error together", grpcOnly: true, play: playCutStream, options: gateway.Options{JobsPerMessage: 5}},
	}
	for _, code := range []codes.Code{codes.ResourceExhausted, codes.Unauthenticated, codes.PermissionDenied} {
		rows = append(rows, row{fault: "answers " + codeName(code) + " until the deadline", play: playRefusedUntilTheDeadline(code, 0)})
	}
	for _, code := range []codes.Code{codes.Unavailable, codes.Internal} { // SetVariables is no answer: those jobs were surely not answered
		rows = append(rows, row{fault: "answers " + codeName(code) + " until the deadline", play: playRefusedUntilTheDeadline(code, 2*perKind)})
	}
	return rows
}

// playHangingAnswers: the first call for each job is never answered and has no effect. Half of the time is left for
// another.
func playHangingAnswers(f *fixture) result {
	f.Inject(gateway.Fault{Hang: true, Match: oncePerJob()})
	w := f.worker("w1", short)
	f.kinds()
	f.settled(3 * perKind)
	w.leave()
	w.wantActions(allWays())
	return f.result(0).soon(f.t, shortTimeout)
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

// playLostPreparation: what stands before the BPMN error is done again, and then the error is thrown.
func playLostPreparation(f *fixture) result {
	f.Inject(gateway.Fault{Method: gateway.SetVariables, DropAck: true, Times: perKind})
	w := f.worker("w1", short)
	f.same(perKind, permanent)
	f.settled(perKind)
	w.leave()
	w.wantActions(map[worker.Action]int{worker.Thrown: perKind})
	f.wantOutputs()
	return f.result(0).soon(f.t, shortTimeout)
}

// playLostError: the retryCount that the answer wrote into the process does not make the job another one when it comes
// again.
func playLostError(f *fixture) result {
	rule := f.Inject(gateway.Fault{Method: gateway.ThrowError, Hang: true})
	w := f.worker("w1", short)
	keys := f.same(perKind, permanent)
	f.fired(rule, perKind)
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

// playRefusedUntilTheDeadline: the engine takes no answer as long as the jobs are ours. What is known of them then
// depends on what was said; not one more is sent, and all are answered when they come again.
func playRefusedUntilTheDeadline(code codes.Code, unconfirmed int) func(*fixture) result {
	return func(f *fixture) result {
		begun := f.Inject(gateway.Fault{Code: code, Match: firstCall()})
		rule := f.Inject(gateway.Fault{Code: code, Match: isAnswer})
		w := f.worker("w1", func(c *setup) { c.JobTimeout = 2 * time.Second })
		f.kinds()
		f.fired(begun, 3*perKind)
		w.leave() // what it has begun it ends all the same
		rule.Remove()
		if got := w.seen().actions; got[worker.Released] != 3*perKind-unconfirmed || got[worker.Unconfirmed] != unconfirmed {
			f.t.Errorf("the jobs became %v, want %d unconfirmed and the others released", got, unconfirmed)
		}
		// Pauses from 20 ms, doubled up to 500 ms, each drawn from its upper half: at most 13 tries in two seconds.
		if n := rule.Fired(); n > 13*3*perKind {
			f.t.Errorf("%d tries for %d jobs, want growing pauses", n, 3*perKind)
		}
		next := f.worker("next")
		f.settled(3 * perKind)
		next.leave()
		w.saidNothingTooLate()
		return f.result(3*perKind).soon(f.t, 2*time.Second+soon).with("a time-out of 2 s among it: nothing was taken until then")
	}
}

// playPaused: no call is answered, with jobs in hand and others coming. When it goes on, the jobs that were in hand
// have run out, and all are answered.
func playPaused(f *fixture) result {
	const more = 60
	answers := f.Inject(gateway.Fault{Hang: true, Match: isAnswer})
	w := f.worker("w1", short)
	f.same(inHand, passing)
	f.fired(answers, inHand)
	all := f.Inject(gateway.Fault{Hang: true})
	for n := range more {
		f.AddJob(claim(inHand+n, passing))
		time.Sleep(time.Second)
	}
	answers.Remove()
	all.Remove()
	began := f.Now()
	f.settled(inHand + more)
	if took := f.Now().Sub(began); took > shortTimeout+soon {
		f.t.Errorf("all is answered %s after the pause, want with the polls that hang", took)
	}
	w.leave()
	return f.result(inHand + more).with("time-outs of 8 s among it")
}

// playHangingPoll: a poll that is never answered is given up, and the next brings the jobs.
func playHangingPoll(f *fixture) result {
	const jobs = 40
	rule := f.Inject(gateway.Fault{Method: gateway.ActivateJobs, Hang: true, Times: 1})
	w := f.worker("w1", short)
	f.fired(rule, 1)
	f.claims(jobs)
	f.settled(jobs)
	w.leave()
	return f.result(0).soon(f.t, shortTimeout+soon)
}

// playLostActivation: the engine gave jobs away and the worker never heard of them. Nobody can help before their
// time-out; what comes meanwhile is served.
func playLostActivation(f *fixture) result {
	const lost, later = 20, 20
	f.claims(lost)
	f.Inject(gateway.Fault{Method: gateway.ActivateJobs, DropAck: true, Times: 1})
	w := f.worker("w1")
	f.until("the jobs are lost", func(c gateway.Counts) bool { return c.Undelivered == lost })
	f.claims(later)
	f.settled(later)
	if n := f.Counts().TimedOut; n > 0 {
		f.t.Errorf("the jobs that came later had to wait for the lost ones")
	}
	f.settled(lost + later)
	w.leave()
	return f.result(f.lost(w)).soon(f.t, jobTimeout+soon).with("20 locked by the engine alone, till their time-out of 1 min")
}

// playLateActivation: the poll's answer arrives late, in one row when the jobs have run out already, in the other
// shortly before that, and with a gateway that takes no answers for a while. Nothing is said about them when they are
// no longer ours; whoever gets them next answers.
func playLateActivation(share time.Duration) func(*fixture) result {
	return func(f *fixture) result {
		const jobs, timeout = 20, 2 * time.Second
		w := f.worker("w1", func(c *setup) { c.JobTimeout = timeout })
		f.until("a poll that found nothing", func(gateway.Counts) bool { return f.Calls(gateway.ActivateJobs) > 0 })
		rule := f.Inject(gateway.Fault{Method: gateway.ActivateJobs, SlowReply: timeout * share / 100, Times: 1})
		answers := f.Inject(gateway.Fault{Code: codes.ResourceExhausted, Match: isAnswer})
		f.fired(rule, 1)
		f.claims(jobs)
		w.stop() // the poll that runs is its last
		f.until("the jobs have run out", func(c gateway.Counts) bool { return c.TimedOut == jobs })
		w.leave()
		answers.Remove()
		next := f.worker("next")
		f.settled(jobs)
		next.leave()
		w.saidNothingTooLate()
		return f.result(jobs).soon(f.t, timeout+soon).with("a time-out of 2 s among it")
	}
}

// playCutStream: what came before the error is answered at once, the rest when the engine lets it go.
func playCutStream(f *fixture) result {
	const jobs, arrive = 40, 25
	f.claims(jobs)
	f.Inject(gateway.Fault{Method: gateway.ActivateJobs, CutStream: true, CutAfter: arrive, Times: 1})
	w := f.worker("w1")
	f.settled(arrive)
	if f.Counts().TimedOut > 0 {
		f.t.Error("the jobs that came with the error waited for their time-out")
	}
	f.settled(jobs)
	w.leave()
	return f.result(jobs-arrive).soon(f.t, jobTimeout+soon).with("15 locked by the engine alone, till their time-out of 1 min")
}

package faults_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/gatewaytest"
	"retry-worker/internal/worker"
)

// shortTimeout of jobs, in rows where the worker's own deadline has to pass, or half of it.
const shortTimeout = 8 * time.Second

func short(c *setup) { c.JobTimeout = shortTimeout }

// lostRows: calls that hang, answers that get lost, come late or come in part.
func lostRows() []row {
	drop := func(f gatewaytest.Fault) func(*testing.T) result {
		return func(t *testing.T) result { return playLostAcknowledgement(t, f) }
	}
	until := playRefusedUntilTheDeadline
	return []row{
		{"an answer hangs", playHangingAnswers},
		{"acknowledgement dropped: UNAVAILABLE", drop(gatewaytest.Fault{DropAck: true})},
		{"acknowledgement dropped: UNKNOWN", drop(gatewaytest.Fault{DropAck: true, Code: codes.Unknown})},
		{"acknowledgement dropped: silence", drop(gatewaytest.Fault{DropAck: true, Hang: true})},
		{"acknowledgement dropped with the connection", drop(gatewaytest.Fault{DropAck: true, DropConnection: true})},
		{"acknowledgement later than the deadline", drop(gatewaytest.Fault{SlowReply: 2 * shortTimeout})},
		{"SetVariables took effect, acknowledgement dropped", playLostPreparation},
		{"answers RESOURCE_EXHAUSTED until the deadline", until(codes.ResourceExhausted, 0)},
		// SetVariables is no answer: those jobs were surely not answered.
		{"answers UNAVAILABLE until the deadline", until(codes.Unavailable, 2*perKind)},
		{"a poll hangs", playHangingPoll},
		{"a poll's answer is lost", playLostActivation},
		{"a poll's answer comes late, answers are refused then", playLateActivation(60)},
		{"a poll's answer comes later than the time-out", playLateActivation(105)},
		{"a poll's stream is cut: jobs and error together", playCutStream},
	}
}

// playHangingAnswers: the first call for each job is never answered and has no effect. Half of the time
// is left for another.
func playHangingAnswers(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{})
	s.Inject(gatewaytest.Fault{Hang: true, Match: s.oncePerJob()})
	w := s.worker("w1", short)
	s.kinds()
	s.settled(3 * perKind)
	w.leave()
	w.wantActions(allWays())
	return s.result(0).soon(t, shortTimeout)
}

// playLostAcknowledgement: the answer took effect, and the worker does not hear of it. It asks again, and
// says what it knows: unconfirmed.
func playLostAcknowledgement(t *testing.T, f gatewaytest.Fault) result {
	s := newScene(t, gatewaytest.Options{})
	once := s.oncePerJob()
	f.Match = func(c gatewaytest.Call) bool { return c.Method != gatewaytest.SetVariables && once(c) }
	s.Inject(f)
	w := s.worker("w1", short)
	s.kinds()
	w.until("all jobs reported", func(f figures) bool { return f.answered() == 3*perKind })
	w.leave()
	w.wantActions(map[worker.Action]int{worker.Unconfirmed: 3 * perKind})
	return s.result(0).soon(t, shortTimeout)
}

// playLostPreparation: what stands before the BPMN error is done again, and then the error is thrown.
func playLostPreparation(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{})
	s.Inject(gatewaytest.Fault{Method: gatewaytest.SetVariables, DropAck: true, Times: perKind})
	w := s.worker("w1", short)
	s.same(perKind, permanent)
	s.settled(perKind)
	w.leave()
	w.wantActions(map[worker.Action]int{worker.Thrown: perKind})
	s.wantVariables()
	return s.result(0).soon(t, shortTimeout)
}

// playRefusedUntilTheDeadline: the engine takes no answer as long as the jobs are ours. Not one more is
// sent then, and all are answered when they come again. (The worker stops meanwhile; what it has begun it
// ends all the same.)
func playRefusedUntilTheDeadline(code codes.Code, unconfirmed int) func(*testing.T) result {
	return func(t *testing.T) result {
		s := newScene(t, gatewaytest.Options{})
		first := s.firstCall()
		begun := s.Inject(gatewaytest.Fault{Code: code, Match: first})
		rule := s.Inject(gatewaytest.Fault{Code: code, Match: func(c gatewaytest.Call) bool { return c.Method != gatewaytest.ActivateJobs }})
		w := s.worker("w1", func(c *setup) { c.JobTimeout = 2 * time.Second })
		s.kinds()
		s.fired(begun, 3*perKind)
		w.leave()
		rule.Remove()
		// A last try that the deadline cut off is unconfirmed whatever was said before.
		if f := w.figures().actions; f[worker.Released]+f[worker.Unconfirmed] != 3*perKind || f[worker.Unconfirmed] < unconfirmed {
			t.Errorf("the jobs became %v, want at least %d unconfirmed and the others released", f, unconfirmed)
		}
		// Pauses from 20 ms, doubled up to 500 ms: about nine tries in two seconds.
		if n := rule.Fired(); n > 15*3*perKind {
			t.Errorf("%d tries for %d jobs, want growing pauses", n, 3*perKind)
		}
		next := s.worker("next")
		s.settled(3 * perKind)
		next.leave()
		w.saidNothingTooLate()
		r := s.result(3*perKind).soon(t, shortTimeout+recovery)
		r.remark = "a time-out of 2 s among it: nothing was taken until then"
		return r
	}
}

// playHangingPoll: a poll that is never answered is given up, and the next brings the jobs.
func playHangingPoll(t *testing.T) result {
	const jobs = 40
	s := newScene(t, gatewaytest.Options{})
	rule := s.Inject(gatewaytest.Fault{Method: gatewaytest.ActivateJobs, Hang: true, Times: 1})
	w := s.worker("w1", short)
	s.fired(rule, 1)
	s.claims(jobs)
	s.settled(jobs)
	w.leave()
	return s.result(0).soon(t, shortTimeout+recovery)
}

// playLostActivation: the engine gave jobs away and the worker never heard of them. Nobody can help
// before their time-out; what comes meanwhile is served.
func playLostActivation(t *testing.T) result {
	const lost, later = 20, 20
	s := newScene(t, gatewaytest.Options{})
	s.claims(lost)
	s.Inject(gatewaytest.Fault{Method: gatewaytest.ActivateJobs, DropAck: true, Times: 1})
	w := s.worker("w1")
	s.until("the jobs are lost", func(v gatewaytest.View) bool { return v.Undelivered == lost })
	s.claims(later)
	s.settled(later)
	if n := s.Counts().TimedOut; n > 0 {
		t.Errorf("the jobs that came later had to wait for the lost ones")
	}
	s.settledAfterLoss(lost+later, w)
	w.leave()
	r := s.result(s.lost(w)).soon(t, jobTimeout+recovery)
	r.remark = "20 locked by the engine alone; the time-out passed on its clock (+1 min)"
	return r
}

// playLateActivation: the poll's answer arrives late, in one row when the jobs have run out already, in the
// other shortly before that, and with a gateway that takes no answers for a while. Nothing is said about
// them when they are no longer ours; whoever gets them next answers.
func playLateActivation(share time.Duration) func(*testing.T) result {
	return func(t *testing.T) result {
		const jobs, timeout = 20, 2 * time.Second
		s := newScene(t, gatewaytest.Options{})
		w := s.worker("w1", func(c *setup) { c.JobTimeout = timeout })
		s.until("a poll that found nothing", func(v gatewaytest.View) bool { return v.Calls(gatewaytest.ActivateJobs) > 0 })
		rule := s.Inject(gatewaytest.Fault{Method: gatewaytest.ActivateJobs, SlowReply: timeout * share / 100, Times: 1})
		answers := s.Inject(gatewaytest.Fault{Code: codes.ResourceExhausted, Match: func(c gatewaytest.Call) bool { return c.Method != gatewaytest.ActivateJobs }})
		s.fired(rule, 1)
		s.claims(jobs)
		w.stop() // the poll that runs is its last
		s.until("the jobs have run out", func(v gatewaytest.View) bool { return v.TimedOut == jobs })
		w.leave()
		answers.Remove()
		next := s.worker("next")
		s.settled(jobs)
		next.leave()
		w.saidNothingTooLate()
		r := s.result(jobs).soon(t, timeout+recovery)
		r.remark = "a time-out of 2 s among it"
		return r
	}
}

// playCutStream: what came before the error is answered at once, the rest when the engine lets it go.
func playCutStream(t *testing.T) result {
	const jobs, arrive = 40, 25
	s := newScene(t, gatewaytest.Options{JobsPerMessage: 5})
	s.claims(jobs)
	s.Inject(gatewaytest.Fault{Method: gatewaytest.ActivateJobs, CutStream: true, CutAfter: arrive, Times: 1})
	w := s.worker("w1")
	s.settled(arrive)
	if c := s.Counts(); c.TimedOut > 0 {
		t.Error("the jobs that came with the error waited for their time-out")
	}
	s.settledAfterLoss(jobs, w)
	w.leave()
	r := s.result(jobs-arrive).soon(t, jobTimeout+recovery)
	r.remark = "15 locked by the engine alone; the time-out passed on its clock (+1 min)"
	return r
}

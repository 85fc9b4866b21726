package faults_test

import (
	"regexp"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/testkit/gateway"
)

// disturbance is what calls meet for a while.
type disturbance struct {
	fault  string
	faults []gateway.Fault
	lasts  time.Duration // 0: the faults end by themselves
	times  int           // that it comes, once a minute; 0: once
	// within is how long after its end all claims are answered.
	within time.Duration
	// timeouts: claims wait for their time-out. Otherwise only those do that the engine gave away and nobody got.
	timeouts bool
}

const (
	// ownTimeout of the jobs of these rows.
	ownTimeout = 10 * time.Second
	// longestPause lies between two polls; longestRetry between two tries of an answer.
	longestPause = 2 * time.Second
	longestRetry = 500 * time.Millisecond
	// hungPoll is when a poll without an answer is given up.
	hungPoll = ownTimeout
)

// callRows: every status of every call, and calls that hang, come late, are lost with their connection or in part.
func callRows() (rows []row) {
	polls, answers := gateway.ActivateJobs, isAnswer
	all := []disturbance{
		{fault: "polls are answered OK, empty, at once",
			faults: []gateway.Fault{{Method: polls, Empty: true}}, lasts: 10 * time.Minute, within: longestPause},
		{fault: "a poll hangs",
			faults: []gateway.Fault{{Method: polls, Hang: true, Times: 1}}, within: hungPoll + soon},
		{fault: "a poll's answer comes when the jobs have run out", timeouts: true,
			faults: []gateway.Fault{{Method: polls, SlowReply: ownTimeout + time.Second, Times: 1}}, within: 2*ownTimeout + soon},
		{fault: "a poll's answer comes late, answers are refused then", timeouts: true, faults: []gateway.Fault{
			{Method: polls, SlowReply: ownTimeout / 2, Times: 1}, {Code: codes.ResourceExhausted, Match: answers},
		}, lasts: ownTimeout, within: ownTimeout + soon},
		{fault: "a poll's stream is cut: jobs and error together",
			faults: []gateway.Fault{{Method: polls, CutStream: true, CutAfter: 25, Times: 1}}, within: soon},
		{fault: "an answer hangs",
			faults: []gateway.Fault{{Hang: true, Match: oncePerJob()}}, within: ownTimeout},
		{fault: "answers are slow",
			faults: []gateway.Fault{{SlowReply: 2 * time.Second, Match: answers}}, lasts: 5 * time.Second, within: soon},
		{fault: "the acknowledgement of SetVariables is lost",
			faults: []gateway.Fault{{Method: gateway.SetVariables, DropAck: true, Times: 5}}, within: soon},
		{fault: "every call hangs for a minute", timeouts: true,
			faults: []gateway.Fault{{Hang: true}}, lasts: time.Minute, within: hungPoll + soon},
		{fault: "connection dropped with jobs in hand",
			faults: []gateway.Fault{{Method: gateway.CompleteJob, DropConnection: true, Times: 1}}, within: soon},
		{fault: "connection dropped at every tenth answer",
			faults: []gateway.Fault{{Method: gateway.CompleteJob, DropConnection: true, Every: 10, Times: 10}}, within: soon},
		{fault: "the gateway is away for 5 s of every minute", times: 10,
			faults: []gateway.Fault{{Code: codes.Unavailable}}, lasts: 5 * time.Second, within: longestPause},
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		poll := gateway.Fault{Method: polls, Code: code}
		all = append(all, answered(code), disturbance{fault: "polls are answered " + codeName(code),
			faults: []gateway.Fault{poll}, lasts: 10 * time.Minute, within: longestPause})
	}
	for _, code := range []codes.Code{codes.ResourceExhausted, codes.Unavailable, codes.Unauthenticated, codes.Internal} {
		all = append(all, refusedFor(code)...)
	}
	for _, d := range all {
		rows = append(rows, row{fault: d.fault, play: d.play, options: gateway.Options{JobsPerMessage: 5}})
	}
	return rows
}

// answered: the first answer of each claim is answered so. It costs a pause; the time-out, where the engine says that the
// job is somebody else's, or says it of FailJob; a back-off of 10 s, where it will never take that answer.
func answered(code codes.Code) disturbance {
	d := disturbance{fault: "the first answer is answered " + codeName(code), within: soon,
		faults: []gateway.Fault{{Code: code, Match: oncePerJob()}}}
	switch code {
	case codes.NotFound, codes.FailedPrecondition, codes.InvalidArgument, codes.Unimplemented, codes.OutOfRange, codes.AlreadyExists:
		d.within, d.timeouts = ownTimeout+soon, true
	}
	return d
}

// refusedFor: that code now and then, for a while, and beyond the deadline. What ends before the time-out costs what it
// lasts and a pause.
func refusedFor(code codes.Code) []disturbance {
	name, answers := codeName(code), []gateway.Fault{{Code: code, Match: isAnswer}}
	all := []disturbance{
		{fault: "5 % of all calls are answered " + name,
			faults: []gateway.Fault{{Code: code, Every: 20}}, lasts: time.Minute, within: soon},
		{fault: "a second of nothing but " + name,
			faults: []gateway.Fault{{Code: code}}, lasts: time.Second, within: soon},
		{fault: "answers are answered " + name + " beyond the deadline", timeouts: true,
			faults: answers, lasts: 2 * ownTimeout, within: ownTimeout + soon},
	}
	for _, lasts := range []time.Duration{100 * time.Millisecond, 5 * time.Second, 7 * time.Second} {
		all = append(all, disturbance{fault: "answers are answered " + name + " for " + lasts.String(),
			faults: answers, lasts: lasts, within: longestRetry})
	}
	return all
}

// play disturbs a worker at its first poll's end. The claims that come meanwhile are answered as was decided, the calls
// that the first fault meets are few, and the engine is known to be up afterwards.
func (d disturbance) play(f *fixture) result {
	const jobs = 40
	w := f.worker("w1", func(c *setup) { c.JobTimeout, c.PollTimeout = ownTimeout, 2*time.Second })
	time.Sleep(3 * time.Second) // into a poll
	fired := 0
	for range max(d.times, 1) {
		var rules []*gateway.Rule
		for _, fault := range d.faults {
			rules = append(rules, f.Inject(fault))
		}
		f.claims(jobs)
		time.Sleep(d.lasts)
		fired += rules[0].Fired()
		for _, r := range rules {
			if d.lasts > 0 {
				r.Remove()
			}
		}
		if d.times > 0 {
			time.Sleep(time.Minute - d.lasts)
		}
	}
	f.settled(max(d.times, 1) * jobs)
	w.untilTold("an engine that is up", func(c eventCounts) bool { return !c.down() })
	w.leave()
	f.wantOutputs()
	return d.held(f, w, fired)
}

// held holds what came of it against what may be.
func (d disturbance) held(f *fixture, w *local, fired int) result {
	f.t.Helper()
	jobs := len(f.Journal())
	most := jobs * (7 + int(d.lasts/(longestRetry/2)))
	if d.faults[0].Method == gateway.ActivateJobs {
		most = 2 + int(d.lasts/time.Second)
	}
	if fired > most {
		f.t.Errorf("%d calls met the fault in %s, want growing pauses: %d at most", fired, d.lasts, most)
	}
	timeouts := f.lost(w)
	if d.timeouts {
		timeouts = f.Counts().HandedOut
	}
	r := f.result(timeouts)
	if timeouts > 0 {
		return r.soon(f.t, d.lasts+d.within+ownTimeout).with("time-outs of 10 s among it")
	}
	return r.soon(f.t, d.lasts+d.within)
}

var humps = regexp.MustCompile(`([a-z])([A-Z])`)

// codeName returns the code as the platform's documents write it: RESOURCE_EXHAUSTED.
func codeName(c codes.Code) string {
	return strings.ToUpper(humps.ReplaceAllString(c.String(), "${1}_${2}"))
}

package scenarios

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

const (
	// floodSize is how many jobs wait when the worker starts.
	floodSize = 600
	// inFlight is how many answers a worker may have under way: several times what the broker takes at once.
	inFlight = "400"
	// fewestRefusals prove that answers were refused, and not only polls, of which there are some dozens.
	fewestRefusals = 200
	// pause of the broker: issue 4's minute.
	pause = time.Minute
)

// flood starts n instances that each have one job for the worker, which every other one ends with an error:
// Zeebe 8.5.8 refuses completions and errors, 8.6.0 the errors (and the variables set before) only.
func (s *scenario) flood(n int) []int64 {
	s.t.Helper()
	return s.createAll("UNMAPPED", n, func(i int) map[string]any {
		return map[string]any{
			"analysis": worker.AnalyzeRetry, "claimId": s.claimID(i), "submissionError": []string{"HTTP 503", "INSURANCE_EXPIRED"}[i%2],
		}
	})
}

var droppedRequests = regexp.MustCompile(`(?m)^zeebe_dropped_request_count_total\{[^}]*\} (\S+)$`)

// refusals is how many commands the broker has refused for being busy, which clients see as
// RESOURCE_EXHAUSTED; it is the broker's own counter.
func (s *scenario) refusals() int {
	s.t.Helper()
	text := get(s.t, strings.TrimPrefix(s.ActuatorURL(), "http://")+"/actuator/prometheus")
	m := droppedRequests.FindStringSubmatch(text)
	if m == nil { // 8.5.8 shows it from the first one on
		return 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	testkit.Must(s.t, err)
	return int(n)
}

func TestRefusedAnswersAreSentAgain(t *testing.T) {
	s := beginAlone(t, "load")
	keys := s.flood(floodSize)
	before := s.refusals() // creating was refused too
	// A time-out as long as the test waits: a busy machine alone cannot use it up, and a job lost to a refusal is missed.
	w := s.serve("flooded", "RETRY_WORKER_JOB_TIMEOUT="+wait.Limit.String(), "RETRY_WORKER_CONCURRENCY="+inFlight, "RETRY_WORKER_MAX_JOBS_ACTIVE="+inFlight)
	s.awaitEnded(keys...)
	refused := s.refusals() - before
	if refused < fewestRefusals {
		t.Errorf("the broker refused %d commands with %s answers in flight, expected %d or more: the scenario did not come about", refused, inFlight, fewestRefusals)
	}
	var actions map[string]int
	wait.Until(t, "each answer to be counted", func() bool { // the worker hears of an answer after the process does
		actions = w.actions(t)
		return actions["completed"]+actions["bpmn_error"]+actions["unconfirmed"] == floodSize
	}, func() string { return fmt.Sprint(actions) })
	s.expectGivenOutOnce(s.look(keys))
	s.expectCounts(counts{"analyze-retry completed": floodSize / 2, "analyze-retry error thrown": floodSize / 2, "processes completed": floodSize})
	s.done("broker refuses under a flood", "%d jobs, %d commands refused, all answered once, no time-out", floodSize, refused)
}

// A paused broker answers nobody and closes nothing. What it was asked meanwhile waits in its sockets, and
// polls that the worker has given up are served when it goes on: their jobs are lost to a time-out, which no
// worker can prevent. No other job may be.
func TestBrokerPausedUnderLoad(t *testing.T) {
	s := beginFaults(t, "waits")
	l := s.startLoad()
	w := s.serve("worker", "RETRY_WORKER_CONCURRENCY=8", "RETRY_WORKER_JOB_TIMEOUT=45s")
	s.startPortal(w)
	s.awaitAnswers(60)
	testkit.Must(s.t, s.Pause())
	paused := time.NewTimer(pause)
	defer paused.Stop()
	defer s.Resume() // whatever happens
	select {
	case <-paused.C:
	case <-s.Done():
		t.Fatal("the paused broker ended")
	case <-w.Done():
		t.Fatal("the worker ended while the broker was paused")
	}
	if !w.said("engine does not answer polls; asking on with growing pauses (`retry-worker check` says more)") {
		t.Error("the worker's log does not say that the engine is gone")
	}
	testkit.Must(s.t, s.Resume())
	resumed := s.clock.Now()
	s.finish(l)
	back := s.clock.Now().Sub(resumed)

	s.expectCounts(s.withTimeOuts(loadCounts(), l.keys))
	o := s.look(l.keys)
	const givenUp = 20 * time.Second // a poll takes 2 s, and the broker has a minute of them to read
	for _, j := range o.timedOut {
		if last := j.lastAsked(); j.ours() && (last.IsZero() || last.After(resumed.Add(givenUp))) {
			t.Errorf("the job %d (%s), asked for at %v after the pause that ended at %v, waited for its time-out", j.key, j.kind, last, resumed)
		}
	}
	s.done("broker paused under load", "%d instances, %d jobs, each answered once, paused %v, done %.1f s later, %d waited for the time-out, all asked for by polls of the pause; worker: %v",
		len(l.keys), o.jobs, pause, back.Seconds(), len(o.timedOut), w.actions(t))
}

// withTimeOuts adds the time-outs of the broker's record to what its counters should say.
func (s *scenario) withTimeOuts(c counts, keys []int64) counts {
	s.history.Lock()
	defer s.history.Unlock()
	for _, key := range keys {
		for _, j := range s.history.instances[key].jobs {
			c[j.kind+" timed out"] += len(j.timeouts)
			c["timed out"] += len(j.timeouts)
		}
	}
	return c
}

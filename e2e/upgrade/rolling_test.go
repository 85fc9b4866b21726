package upgrade

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/postgres"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

const (
	// portion of jobs is RETRY_WORKER_MAX_JOBS_ACTIVE's default: who has that many has no place left.
	portion = 50
	// jobTimeout is RETRY_WORKER_JOB_TIMEOUT's default.
	jobTimeout = 10 * time.Second
	// underLoad is how many jobs each version answers while both are there, and the one before while it is alone.
	underLoad = 40
	// each is how many claims stay dead in each stretch, for the notices.
	each = 3
)

// TestARollingUpgrade: one process works on one PostgreSQL under load; another comes and works beside it; the one before goes;
// it comes back alone; and the other comes again. Nothing was released before: both are of this version.
func TestARollingUpgrade(t *testing.T) {
	t.Parallel() // most of it is waiting
	begun := time.Now()
	s := newFixture(t, postgres.Database(t))
	h := s.processes
	old := s.alone()
	half := h.wave("RUN", 10, dies, diesAgain)

	h.flows(true)
	busy(s, nameBefore, underLoad)
	now := s.begin(nameAfter)
	busy(s, nameBefore, underLoad)
	busy(s, nameAfter, underLoad)
	h.flows(false)
	h.wave("STAY", each, stays)
	h.settle()
	s.contest()
	s.contest()
	s.shareRun(old, now, append(half, h.wave("RUN", 10, dies, diesAgain)...))
	old.shows()
	now.shows()
	s.agree()

	old.end() // this one goes on alone
	alone := h.wave("ALONE", 2*flowing, recovers, recoversAt2, diesLater, dies, diesAgain, senseless)
	h.settle()
	now.decide("retry", alone[2])
	h.ends("recovered", alone[0], alone[1], alone[2])
	s.receiver.heard(t, 2*each)

	old = s.begin(nameBefore) // and back: in a cluster this one goes when the other is there
	r, claims := s.beginRun(now)
	now.end()
	s.goBack(old, claims)
	now = s.begin(nameAfter)
	old.end()
	s.endRun(now, r, claims)
	s.receiver.heard(t, 3*each)
	now.shows()
	said := s.agree(claims...)
	s.counted()
	now.end()
	found := s.hold()
	if found.shared < portion*9/10*2 {
		t.Errorf("%d jobs were answered by both versions: the test shows little", found.shared)
	}
	done(t, "rolling, on PostgreSQL", "%d decisions, %d of them given by both versions, one answer each; there, back, there again; %s; %.1f s",
		found.attempts, found.shared, firstLine(said), time.Since(begun).Seconds())
}

// alone has the version before do everything it can, on a journal of its own.
func (s *fixture) alone() *program {
	s.t.Helper()
	p, h := s.begin(nameBefore), s.processes
	first := h.wave("FIRST", 3*flowing, recovers, recoversAt2, diesLater, dies, diesAgain, senseless)
	h.wave("STAY", each, stays)
	h.settle()
	p.decide("retry", first[2], first[3])
	p.decide("discard", first[2+flowing])
	h.ends("recovered", first[0], first[1], first[2], first[3])
	h.ends("discarded", first[2+flowing])
	p.shows()
	s.verifies(harness.Binary(s.t))
	s.counted()
	return p
}

// busy waits until a version has answered n more jobs of the flow.
func busy(s *fixture, name string, n int) {
	s.t.Helper()
	begin := s.processes.answeredBy(name, worker.AnalyzeRetry)
	wait.Until(s.t, fmt.Sprintf("%s to answer %d jobs", name, n), func() bool {
		return s.processes.answeredBy(name, worker.AnalyzeRetry) >= begin+n
	})
}

// contest has both versions decide the same jobs: who gets them cannot answer, and has no place left when they run out, so that
// the other gets all of them.
func (s *fixture) contest() {
	s.t.Helper()
	h := s.processes
	s.bothAsk()
	unheard := h.Inject(gateway.Fault{Code: codes.Unavailable, Match: func(c gateway.Call) bool {
		return c.Method == gateway.CompleteJob || c.Method == gateway.ThrowError || c.Method == gateway.FailJob
	}})
	h.mu.Lock()
	first := len(h.analyses)
	h.admit("BOTH", portion, recovers, dies, recoversAt2, diesLater)
	jobs := h.analyses[first:]
	h.mu.Unlock()
	all := func(what string, so func(*gateway.Record) bool) {
		n := 0
		wait.Until(s.t, fmt.Sprintf("%d jobs %s", portion, what), func() bool {
			n = 0
			for _, a := range jobs {
				if record, _ := h.Job(a.key); so(&record) {
					n++
				}
			}
			return n == portion
		}, func() string { return strconv.Itoa(n) })
	}
	all("to be answered by one", func(r *gateway.Record) bool { return len(r.Answers) > 0 })
	h.Advance(jobTimeout)
	all("to be answered by both", answeredByBoth)
	unheard.Remove()
	h.settle()
}

// bothAsk waits until both versions, with nothing in hand, wait for jobs.
func (s *fixture) bothAsk() {
	s.t.Helper()
	since := s.processes.Now()
	testkit.Must(s.t, s.processes.WaitFor(wait.Context(s.t), func(gateway.Counts) bool {
		free := map[string]bool{}
		for _, p := range s.processes.Polls(worker.AnalyzeRetry) {
			if p.At.After(since) && p.Ended.IsZero() && p.MaxJobsToActivate == portion {
				free[p.Worker] = true
			}
		}
		return len(free) == 2
	}))
}

// shareRun has this version run a bulk run, whose decisions both deliver and follow up, and whose last dead letters people decide
// on at the version before.
func (s *fixture) shareRun(old, now *program, claims []string) {
	s.t.Helper()
	h := s.processes
	h.settle()
	delivered := h.answeredBy(nameBefore, worker.RetryReview)
	r := now.starts("RUN", len(claims))
	late := h.wave("RUN", each, dies) // after it was planned
	items := now.items(r.ID)
	var taken []string
	for _, i := range items[len(items)-3:] {
		taken = append(taken, i.Subject.ID)
	}
	old.decide("discard", taken[0])
	old.decide("retry", taken[1:]...)
	want := map[string]string{}
	for _, id := range claims {
		want[id] = map[kind]string{dies: "recovered", diesAgain: "dead_again"}[h.claim(id).kind]
	}
	for _, id := range taken {
		want[id] = "refused invalid_retry_state"
	}
	now.finished(r.ID, want)
	h.ends("discarded", taken[0])
	h.settle()
	for _, id := range late {
		if c := h.claim(id); c.end != "" {
			s.t.Errorf("%+v died after the run was planned, and was decided on", c)
		}
	}
	if n := h.answeredBy(nameBefore, worker.RetryReview) - delivered; n < len(claims) {
		s.t.Errorf("the version before, whose the queue is, delivered %d of %d decisions", n, len(claims))
	}
}

// inRun is how many dead letters are in the run that is interrupted.
const inRun = 16

// beginRun starts a run that cannot end before its program does, and returns its claims in their order. For the first of them
// no process waits any more.
func (s *fixture) beginRun(now *program) (r bulkRun, claims []string) {
	s.t.Helper()
	h := s.processes
	first := h.wave("BACK", 1, dies)
	h.settle()
	h.wave("BACK", inRun-1, dies)
	h.settle()
	now.plans("BACK", inRun)
	h.Cancel(h.claim(first[0]).instance)
	r = now.starts("BACK", inRun)
	var items []bulkItem
	wait.Until(s.t, "nobody to take the first decision", func() bool {
		items = now.items(r.ID)
		return len(items) == inRun && items[0].Outcome == "nobody"
	}, func() string { return fmt.Sprintf("%+v", items) })
	for _, i := range items {
		claims = append(claims, i.Subject.ID)
	}
	if claims[0] != first[0] || items[inRun-2].Outcome != "planned" {
		s.t.Fatalf("the run is %+v: want %s first, and the last ones planned", items, first[0])
	}
	return r, claims
}

// goBack has the version before work alone on this one's schema and records, while a run of this one is not done.
func (s *fixture) goBack(old *program, claims []string) {
	s.t.Helper()
	h := s.processes
	again := h.wave("AGAIN", 2*flowing, recovers, recoversAt2, diesLater, dies, diesAgain, senseless)
	h.wave("STAY", each, stays)
	h.settle()
	old.decide("retry", again[2])
	old.decide("discard", claims[inRun-1], claims[0])
	old.decide("retry", claims[inRun-2])
	h.ends("recovered", again[0], again[1], again[2], claims[inRun-2])
	h.ends("discarded", claims[inRun-1])
	h.discarded(claims[0])
	old.shows()
	for _, id := range claims[:3] {
		old.asks("/api/v1/subjects/tiss-submission/"+id+"/audit", nil, nil)
		old.asks("/subjects/tiss-submission/"+id, nil, nil)
	}
	s.agree(claims[0], claims[1], claims[inRun-1], again[0], again[2])
	s.counted()
}

// endRun has this version go on with the run that was interrupted.
func (s *fixture) endRun(now *program, r bulkRun, claims []string) {
	s.t.Helper()
	want := map[string]string{}
	for _, id := range claims {
		want[id] = "recovered"
	}
	want[claims[0]] = "nobody" // what was decided later is not the run's
	want[claims[inRun-1]], want[claims[inRun-2]] = "refused invalid_retry_state", "refused invalid_retry_state"
	now.finished(r.ID, want)
	letters := now.letters()
	for _, id := range claims {
		of := letters[s.processes.letter(id)].BulkRun
		if mine := of != nil && *of == r.ID; mine != (want[id] == "recovered") {
			s.t.Errorf("the dead letter of %s, which is %s, is of the run %v", id, want[id], of)
		}
	}
}

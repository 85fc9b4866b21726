package chaos_test

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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
	// rounds in which every job is given to both replicas.
	rounds = 6
	// portion of jobs: the default of RETRY_WORKER_MAX_JOBS_ACTIVE, so that who got them all has no place left.
	portion = 50
	// pollDelay between giving jobs away and their arrival: long enough for both to have them on their way.
	pollDelay = 100 * time.Millisecond
	// apart is how far the replicas' clocks are; a retry lies further ahead, so that none is re-based.
	apart = 2 * time.Minute
)

// Two replicas, whose clocks are apart, have the same jobs, now one after the other and now at the same moment: each is
// decided once, and both give the same answer. The one that is behind is told.
func TestTwoReplicasOnePostgreSQL(t *testing.T) {
	t.Parallel()
	begun, url := time.Now(), postgres.Database(t)
	s := newStub(t, "TWICE")
	ahead, err := harness.OpenSharedClock(filepath.Join(t.TempDir(), "clock"))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = ahead.Close() })
	testkit.Must(t, ahead.SetAhead(apart))
	one := serve(t, settings{name: "one", gateway: s.Addr(), url: url})
	two := serve(t, settings{name: "two", gateway: s.Addr(), url: url, clock: ahead})
	s.giveToBoth()
	s.settle()
	replayed := one.counted("retry_worker_decisions_replayed_total") + two.counted("retry_worker_decisions_replayed_total")
	one.stop()
	two.stop()
	a := look(t, url)
	found, both := s.holdAgainst(a), s.givenToBoth()
	a.oneAttemptPerCount(false)
	if both < len(s.jobs)*9/10 || replayed < both/2 {
		t.Errorf("%d of %d jobs were given to both replicas and %d decisions replayed: the test shows little", both, len(s.jobs), replayed)
	}
	const told = "this machine's clock is behind that of another replica"
	line := one.logged(told)
	if off, err := time.ParseDuration(line.Text("by")); err != nil || (off-apart).Abs() > time.Minute {
		t.Errorf("the replica that is behind said %v, want that it is so by about %v", line, apart)
	}
	if strings.Contains(two.out.Text(), told) {
		t.Error("the replica ahead said so too")
	}
	report(t, "two replicas, one PostgreSQL", "%d jobs, %d given to both; %d attempts, one answer each, the same from both; %d replayed; %.1f s",
		len(s.jobs), both, found.attempts, replayed, time.Since(begun).Seconds())
}

// giveToBoth plays rounds: whoever gets a portion cannot answer, and has no place left when the jobs have run out;
// so the other gets all of them. In every second round the jobs arrive at both at the same moment.
func (s *stub) giveToBoth() {
	s.t.Helper()
	total := 0
	for round := range rounds {
		slow := s.Inject(gateway.Fault{Method: gateway.ActivateJobs, SlowReply: time.Duration(round%2) * pollDelay, Delay: time.Nanosecond})
		s.bothAsk(s.Now()) // nothing is left of the round before
		unheard := s.Inject(gateway.Fault{Code: codes.Unavailable, Match: func(c gateway.Call) bool {
			return c.Answers() || c.Method == gateway.SetVariables
		}})
		first := s.asked()
		s.portion(portion)
		total += portion
		testkit.Must(s.t, s.WaitFor(wait.Context(s.t), func(c gateway.Counts) bool { return c.Held == portion }))
		if round%2 == 0 { // the first has decided
			testkit.Must(s.t, s.WaitFor(wait.Context(s.t), func(gateway.Counts) bool { return unheard.Fired() >= portion }))
		}
		handed := s.Counts().HandedOut
		s.Advance(jobTimeout)
		testkit.Must(s.t, s.WaitFor(wait.Context(s.t), func(c gateway.Counts) bool { return c.HandedOut >= handed+portion }))
		s.answeredByBoth(first)
		slow.Remove()
		unheard.Remove()
		s.answered(total)
	}
}

// answeredByBoth waits until both replicas have decided nearly all jobs from the first one on, and said so.
func (s *stub) answeredByBoth(first int) {
	s.t.Helper()
	s.mu.Lock()
	jobs := s.jobs[first:]
	s.mu.Unlock()
	wait.Until(s.t, "the answers of both replicas", func() bool {
		n := 0
		for i := range jobs {
			record, _ := s.Job(jobs[i].key)
			by := map[string]bool{}
			for _, a := range record.Answers {
				by[a.Worker] = true
			}
			if len(by) == 2 {
				n++
			}
		}
		return n >= portion*9/10
	})
}

// bothAsk waits until two workers with nothing in hand wait for jobs, by polls that began after an instant.
func (s *stub) bothAsk(since time.Time) {
	s.t.Helper()
	testkit.Must(s.t, s.WaitFor(wait.Context(s.t), func(c gateway.Counts) bool {
		free := map[string]bool{}
		for _, p := range s.Polls(worker.AnalyzeRetry) {
			if p.At.After(since) && p.Ended.IsZero() && p.MaxJobsToActivate == portion {
				free[p.Worker] = true
			}
		}
		return len(free) == 2
	}))
}

// givenToBoth is how many jobs more than one worker got.
func (s *stub) givenToBoth() (n int) {
	s.t.Helper()
	for _, record := range s.Journal() {
		names := map[string]bool{}
		for _, given := range record.Activations {
			names[given.Worker] = true
		}
		if len(names) > 1 {
			n++
		}
	}
	return n
}

// counted is the sum of a counter over its labels.
func (p *program) counted(name string) (sum int) {
	p.t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\d+)$`).FindAllStringSubmatch(p.metrics(), -1) {
		n, err := strconv.Atoi(m[1])
		testkit.Must(p.t, err)
		sum += n
	}
	return sum
}

package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

const (
	// brokerKills where CHAOS_KILLS does not say otherwise; otherwise a tenth of those.
	brokerKills = 6
	// brokerProcesses run at once.
	brokerProcesses = 100
)

// The same on a real broker, whose own time-outs bring the jobs back: each process ends once, with the very answer
// that the journal holds.
func TestKilledUnderLoadOnABroker(t *testing.T) {
	t.Parallel()
	begun, b := time.Now(), openBroker(t)
	kills, seed := max(harness.Setting(t, "CHAOS_KILLS", 10*brokerKills)/10, 1), harness.Setting(t, "CHAOS_SEED", shortSeed)
	random := rand.New(rand.NewPCG(uint64(seed), 6))
	before, err := b.Counters(t.Context())
	testkit.Must(t, err)
	url := newURL["SQLite"](t)
	start := func(n int) *program {
		return serve(t, settings{name: fmt.Sprintf("life-%d", n), gateway: b.GatewayAddress(), url: url, env: []string{"RETRY_WORKER_JOB_TIMEOUT=1s"}})
	}
	p := start(0)
	ended := b.load(t, brokerProcesses+kills*brokerProcesses/3)
	for n := range kills {
		pass(t, time.Duration(100+random.IntN(500))*time.Millisecond) // a random moment
		p.Kill()
		p = start(n + 1)
	}
	all := ended()
	p.stop()
	a := look(t, url)
	attempts := a.oneAttemptPerCount(false)
	if attempts != len(all) {
		t.Errorf("%d attempts of %d claims that fail once", attempts, len(all))
	}
	thrown := 0
	for i := range a.stories {
		story := &a.stories[i]
		at, got := &story.Attempts[0], all[story.Subject.ID]
		next := ""
		if at.Decision.ShouldRetry() {
			next = instant(at)
		} else {
			thrown++
		}
		if got.instance != at.ProcessInstanceKey || got.variables.text("nextRetryTime") != next || got.variables.text("deadLetterId") != at.DeadLetter ||
			string(got.variables["retryCount"]) != fmt.Sprint(at.Decision.RetryCount) || got.variables.text("retryReason") != at.Decision.RetryReason {
			t.Errorf("%s: the process %d ended with %s, the journal holds %+v", story.Subject.ID, got.instance, got.variables, at)
		}
		if (at.Decision.Outcome == decision.PermanentError) != (got.problem == permanent) {
			t.Errorf("%s: %q was decided as %s", story.Subject.ID, got.problem, at.Decision.Outcome)
		}
	}
	b.expectCounters(t, before, map[string]int{
		"created": len(all), "completed": len(all) - thrown, "error thrown": thrown, "canceled": 0, "processes completed": len(all), "incidents pending": 0,
	})
	now, err := b.Counters(t.Context())
	testkit.Must(t, err)
	report(t, "killed under load, real broker, SQLite", "%d kills; %d processes ended once each as the journal says, %d attempts, %d jobs timed out and were given again; seed %d, %.1f s",
		kills, len(all), attempts, counted(now, "timed out")-counted(before, "timed out"), seed, time.Since(begun).Seconds())
}

// end is how a process of the load ended.
type end struct {
	instance  int64
	problem   string
	variables variables
}

// load starts n processes, as many at once as brokerProcesses, and returns how to wait for the end of all.
func (b *broker) load(t *testing.T, n int) (ended func() map[string]end) {
	var mu sync.Mutex
	var running sync.WaitGroup
	all, places := map[string]end{}, make(chan struct{}, brokerProcesses)
	ctx := wait.Context(t)
	running.Go(func() {
		for i := range n {
			places <- struct{}{}
			running.Go(func() {
				defer func() { <-places }()
				claim, problem := fmt.Sprintf("CLM-BROKER-%d", i), []string{passing, permanent}[i%2]
				instance, got, err := b.ends(ctx, analysis(claim, problem, 0))
				if err != nil {
					t.Errorf("%s: %v", claim, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				all[claim] = end{instance, problem, got}
			})
		}
	})
	return func() map[string]end {
		t.Helper()
		running.Wait()
		if len(all) != n {
			t.Fatalf("%d of %d processes ended", len(all), n)
		}
		return all
	}
}

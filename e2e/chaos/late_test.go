package chaos_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/protobuf/proto"

	"retry-worker/e2e/harness/engine"
	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

const (
	// late is how long after its time a job is delivered.
	late = time.Hour
	// lateClaims of each kind.
	lateClaims = 5
)

// A decision is recorded and its worker killed before the engine heard of it; the job comes again an hour later, when
// the retry's time has passed. And a job that nobody took for an hour is taken. The engine's clock is moved, and
// that of the workers with it. The retry's timer must wait for the new time.
func TestDeliveredAnHourLate(t *testing.T) {
	t.Parallel()
	for _, name := range stores {
		t.Run(name, func(t *testing.T) { playLate(t, name) })
	}
}

func playLate(t *testing.T, name string) {
	began, e, url := time.Now(), openEngine(t), newURL[name](t)
	begun := e.clock.Now()
	again := e.failed(t, "AGAIN-"+name, lateClaims)
	e.recordedAndKilled(t, url)
	waiting := e.failed(t, "WAITING-"+name, lateClaims)
	first := look(t, url)
	if n := first.oneAttemptPerCount(false); n != lateClaims {
		t.Fatalf("%d decisions were recorded before the kill, want %d", n, lateClaims)
	}
	before, err := e.Counters(t.Context())
	testkit.Must(t, err)
	testkit.Must(t, e.clock.MoveTo(t.Context(), e.clock.Now().Add(late)))
	later := serve(t, settings{name: "later", gateway: e.GatewayAddress(), url: url, clock: e.clock.SharedClock})
	e.expectCounters(t, before, map[string]int{"completed": 2 * lateClaims, "timers triggered": 0, "incidents pending": 0})
	later.stop()
	a := look(t, url)
	if n := a.oneAttemptPerCount(true); n != 2*lateClaims || a.revisions() != lateClaims {
		t.Errorf("%d attempts and %d revisions, want %d and %d", n, a.revisions(), 2*lateClaims, lateClaims)
	}
	a.expectLate(first, begun)
	e.expectTimersAt(t, a, before, append(again, waiting...))
	report(t, "delivered an hour late, the engine, "+name, "%d decisions came again after their time and were re-based, one attempt and a revision each; %d decided an hour late, one attempt each; the timers fired at the new time, not before; %.1f s",
		lateClaims, lateClaims, time.Since(began).Seconds())
}

// failed starts SUB_06 for claims, and lets their submission fail.
func (e *devEngine) failed(t *testing.T, name string, n int) (claims []string) {
	t.Helper()
	for i := range n {
		claim := fmt.Sprintf("CLM-%s-%d", name, i)
		claims = append(claims, claim)
		e.start(t, &pb.CreateProcessInstanceRequest{BpmnProcessId: "SUB_06", Version: -1, Variables: jsonOf(map[string]any{"claimId": claim, "operadora": claim})})
	}
	e.take(t, worker.SubmissionGate, n, e.complete(t)) // no worker runs
	e.take(t, "submit-claim", n, func(key int64) {
		_, err := e.ThrowError(t.Context(), &pb.ThrowErrorRequest{
			JobKey: key, ErrorCode: "SUBMISSION_FAILED", Variables: jsonOf(map[string]any{"submissionError": passing}),
		})
		testkit.Must(t, err)
	})
	return claims
}

// take takes n jobs of a type, one after the other, as the portal.
func (e *devEngine) take(t *testing.T, jobType string, n int, answer func(key int64)) {
	t.Helper()
	ctx := wait.Context(t)
	for done := 0; done < n; {
		all, err := e.jobs(ctx, jobType, n-done, wait.Limit, 5*time.Second)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d jobs %s: %v", done, n, jobType, err)
		}
		for _, j := range all {
			answer(j.Key)
			done++
		}
	}
}

// recordedAndKilled lets a worker record what waits, on an engine that never hears of its answers, and kills it.
func (e *devEngine) recordedAndKilled(t *testing.T, url string) {
	t.Helper()
	var mu sync.Mutex
	kept := map[int64]bool{} // the jobs whose answers came so far
	deaf := relay(t, e.GatewayAddress(), func(ctx context.Context, method string, request []byte) error {
		var r pb.CompleteJobRequest
		if !strings.HasSuffix(method, "/CompleteJob") {
			return nil
		}
		if err := proto.Unmarshal(request, &r); err != nil {
			return err
		}
		mu.Lock()
		kept[r.JobKey] = true
		mu.Unlock()
		<-ctx.Done()
		return ctx.Err()
	})
	p := launch(t, settings{name: "killed", gateway: deaf, url: url, clock: e.clock.SharedClock})
	wait.Until(t, "the answers to be on their way", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(kept) == lateClaims
	})
	p.Kill()
}

// expectLate holds what was decided against the hour: a re-based decision has the backoff that it had.
func (a *audit) expectLate(first *audit, begun time.Time) {
	a.t.Helper()
	for i := range a.stories {
		s := &a.stories[i]
		at := &s.Attempts[len(s.Attempts)-1]
		if since := at.Decision.AnalysedAt.Sub(begun); since < late-time.Second || since > late+wait.Limit {
			a.t.Errorf("%s: decided %v after the beginning, want an hour later", s.Subject.ID, since)
		}
		if !strings.HasPrefix(s.Subject.ID, "CLM-AGAIN") {
			continue
		}
		old := first.attempts[at.JobKey]
		if len(old) != 1 || len(s.Attempts) != 2 || at.Revision != 1 || at.Number != 1 || at.Decision.Backoff.Delay != old[0].Decision.Backoff.Delay ||
			!s.Attempts[0].Decision.NextRetryTime.Equal(old[0].Decision.NextRetryTime) || at.Decision.RetryCount != old[0].Decision.RetryCount {
			a.t.Errorf("%s: %+v, recorded before %+v; want a revision with the same backoff", s.Subject.ID, s.Attempts, old)
		}
	}
}

// expectTimersAt moves the engine's clock to the last of the journal's new times, and sees that the claims are then
// submitted again, and that none was before.
func (e *devEngine) expectTimersAt(t *testing.T, a *audit, before engine.Counters, claims []string) {
	t.Helper()
	var earliest, last time.Time
	for i := range a.stories {
		all := a.stories[i].Attempts
		next := all[len(all)-1].Decision.NextRetryTime
		if earliest.IsZero() || next.Before(earliest) {
			earliest = next
		}
		if next.After(last) {
			last = next
		}
	}
	now, err := e.Time(t.Context())
	testkit.Must(t, err)
	if !now.Before(earliest) {
		t.Fatalf("the engine's clock is at %v, the first timer at %s", now, decision.Instant(earliest))
	}
	e.expectCounters(t, before, map[string]int{"timers triggered": 0})
	testkit.Must(t, e.clock.MoveTo(t.Context(), last.Add(time.Second)))
	for _, jobType := range []string{worker.SubmissionGate, "submit-claim", worker.RecordRetryOutcome} { // nothing is left for the next test's worker
		e.take(t, jobType, len(claims), e.complete(t))
	}
}

// complete returns what completes a job.
func (e *devEngine) complete(t *testing.T) func(key int64) {
	return func(key int64) {
		_, err := e.CompleteJob(t.Context(), &pb.CompleteJobRequest{JobKey: key})
		testkit.Must(t, err)
	}
}

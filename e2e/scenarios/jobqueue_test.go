package scenarios

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/internal/testkit"
)

const (
	queueFailure = "Falha ao gerar o relatório"
	// messageLife is how long the engine keeps a message for a job that does not listen yet.
	messageLife = 30 * time.Second
)

// expectStates holds the states that a job of the queue went through, in the words of UC-004.
func (s *scenario) expectStates(key int64, want string) {
	s.t.Helper()
	if got := slices.Compact(s.instance(key).states); strings.Join(got, " ") != want {
		s.t.Errorf("the job's states were %v, expected %s", got, want)
	}
}

// What a job goes through for one run, from the look at its dependencies on.
const (
	runs   = "WAITING PENDING RUNNING"
	again  = " DELAYED "
	failed = " FAILED"
)

// UC-004: maxAttempts and delayBetweenAttempts are the job's own, the delay as ISO 8601 or in milliseconds; when they are
// used up the job is FAILED.
func TestQueuedJobBringsItsOwnPolicy(t *testing.T) {
	withEverybody(t, byREST, func(t *testing.T, s *world) {
		policies := []struct {
			attempts int
			delay    any
			rung     rung
			failures int
		}{
			{3, "PT20S", rung{20 * time.Second, "PT20S", 1}, 2},
			{3, 45_500, rung{45500 * time.Millisecond, "PT45.5S", 1}, 3}, // one too many
			{2, "PT2M", rung{2 * time.Minute, "PT2M", 2}, 1},
			{1, "PT2M", rung{}, 1}, // one attempt, no retry
		}
		var keys []int64
		for n, p := range policies {
			keys = append(keys, s.run(jobQueue, s.id("QUEUE", n), jobQueue.fails(repeat(queueFailure, p.failures)...),
				map[string]any{"maxAttempts": p.attempts, "delayBetweenAttempts": p.delay}))
		}
		for made := range 2 {
			var waiting []int64
			for n, p := range policies {
				if made < min(p.failures, p.attempts-1) {
					s.expectRung(jobQueue, keys[n], made, p.attempts-1, p.rung, "UNKNOWN", queueFailure)
					waiting = append(waiting, keys[n])
				}
			}
			s.fire(waiting...)
		}
		s.awaitEnded(keys...)
		s.expectEnd(jobQueue, keys[0], jobQueue.recorded, 3)
		s.expectStates(keys[0], runs+again+runs+again+runs+" COMPLETED")
		s.expectRemembered(jobQueue, s.id("QUEUE", 0), "recovered", "entregue", "RETRY", "RETRY")
		s.expectEnd(jobQueue, keys[2], jobQueue.recorded, 2)

		s.expectDeadLetter(jobQueue, keys[1], 0, wantDead{2, 2, "UNKNOWN", "Maximum of 2 retries reached", queueFailure, jobTeam})
		s.expectEnd(jobQueue, keys[1], jobQueue.recorded, 4) // the review ran it once more
		s.expectStates(keys[1], runs+again+runs+again+runs+failed+again+runs+" COMPLETED")
		s.expectRemembered(jobQueue, s.id("QUEUE", 1), "recovered", "entregue", "RETRY", "RETRY", "MAX_RETRIES_EXCEEDED")
		s.expectDeadLetter(jobQueue, keys[3], 0, wantDead{0, 0, "UNKNOWN", "Maximum of 0 retries reached", queueFailure, jobTeam})
		s.expectCounts(counts{
			"check-dependencies completed": 3 + 4 + 2 + 2, "run-queued-job error thrown": 2 + 3 + 1 + 1, "run-queued-job completed": 4,
			"analyze-retry completed": 2 + 2 + 1, "analyze-retry error thrown": 2, "retry-review completed": 2,
			"record-retry-outcome completed": 4, "timers triggered": 5 + 2, "processes completed": 4,
		})
		s.done("job queue: a policy of its own", "4 jobs, 20 s, 45.5 s, 2 min, 1 attempt; used up: FAILED, sent again")
	})
}

// UC-004 FA-004.1 and FA-004.2: without a policy, or where the error says that it is not retryable, the first failure is
// final.
func TestQueuedJobFailsAtOnce(t *testing.T) {
	withEverybody(t, byREST, func(t *testing.T, s *world) {
		none := jobQueue.fails(queueFailure)
		none.Review.Discard = true
		final := jobQueue.fails(queueFailure)
		final.Failures[0]["nonRetryable"] = true
		late := jobQueue.fails(queueFailure, queueFailure)
		late.Failures[1]["nonRetryable"] = true
		patient := map[string]any{"maxAttempts": 9, "delayBetweenAttempts": "PT10S"}
		keys := []int64{
			s.run(jobQueue, s.id("QUEUE", 0), none, nil),
			s.run(jobQueue, s.id("QUEUE", 1), final, patient),
			s.run(jobQueue, s.id("QUEUE", 2), late, patient), // retryable first, then not
			s.run(jobQueue, s.id("QUEUE", 3), claim{}, nil),
		}
		s.expectRung(jobQueue, keys[2], 0, 8, rung{10 * time.Second, "PT10S", 1}, "UNKNOWN", queueFailure)
		s.fire(keys[2])
		s.awaitEnded(keys...)
		const permanent = "Permanent error, not retried"
		s.expectDeadLetter(jobQueue, keys[0], 0, wantDead{0, 0, "UNKNOWN", "Maximum of 0 retries reached", queueFailure, jobTeam})
		s.expectEnd(jobQueue, keys[0], "discarded", 1)
		s.expectStates(keys[0], runs+failed)
		s.expectRemembered(jobQueue, s.id("QUEUE", 0), "discarded", "descartada", "MAX_RETRIES_EXCEEDED")
		s.expectDeadLetter(jobQueue, keys[1], 0, wantDead{0, 8, "PERMANENT", permanent, queueFailure, jobTeam})
		s.expectEnd(jobQueue, keys[1], jobQueue.recorded, 2)
		s.expectStates(keys[1], runs+failed+again+runs+" COMPLETED")
		s.expectDeadLetter(jobQueue, keys[2], 0, wantDead{1, 8, "PERMANENT", permanent, queueFailure, jobTeam})
		s.expectRemembered(jobQueue, s.id("QUEUE", 2), "recovered", "entregue", "RETRY", "PERMANENT_ERROR")
		s.expectEnd(jobQueue, keys[3], jobQueue.atOnce, 1)
		s.expectStates(keys[3], runs+" COMPLETED")
		s.expectCounts(counts{
			"check-dependencies completed": 1 + 2 + 3 + 1, "run-queued-job error thrown": 1 + 1 + 2, "run-queued-job completed": 3,
			"analyze-retry completed": 1, "analyze-retry error thrown": 3, "retry-review completed": 3,
			"record-retry-outcome completed": 2, "timers triggered": 1 + 2, "processes completed": 4,
		})
		s.done("job queue: FAILED at once", "no policy, not retryable, not retryable later; one done at once")
	})
}

// UC-004 FA-004.1 for work of other authors: the policy no-retry.
func TestNoRetryIsFinalAtOnce(t *testing.T) {
	withEverybody(t, byREST, func(t *testing.T, s *world) {
		for n, analysis := range analyses {
			key := s.create("NO_RETRY", map[string]any{"analysis": analysis, "jobId": s.id("ONCE", n), "jobError": "TIMEOUT"})
			s.awaitEnded(key)
			i := s.instance(key)
			s.expectVariables(i, map[string]string{
				"shouldRetry": "false", "retryCount": "0", "maxRetries": "0", "retryReason": `"Maximum of 0 retries reached"`,
				"originalError": `"TIMEOUT"`, "retryPolicy": `"no-retry"`, "responsibleTeam": jsonOf(jobTeam),
			})
			expectUUID(t, i.variables["deadLetterId"])
			if i.endedBy != "limit_reached" {
				t.Errorf("%s: the process ended at %s, expected limit_reached", analysis, i.endedBy)
			}
		}
		s.expectCounts(counts{"analyze-retry error thrown": 1, "retry-submission-backoff error thrown": 1, "processes completed": 2})
		s.done("no-retry: final at once", "2 instances")
	})
}

// UC-004 step 7: a job is WAITING while dependencies are open, before its first run and before a retry, and looks again
// when the message comes or, where none does, after a minute.
func TestQueuedJobWaitsForItsDependencies(t *testing.T) {
	withEverybody(t, byREST, func(t *testing.T, s *world) {
		c := jobQueue.fails(queueFailure)
		c.Open = []int{2, 1} // before the first run, before the retry
		id := s.id("QUEUE", 0)
		key := s.run(jobQueue, id, c, map[string]any{"maxAttempts": 2, "delayBetweenAttempts": "PT10M"})
		s.awaitLooks(key, 1, "2")
		s.publishResolved(id)
		s.awaitLooks(key, 2, "1")
		if timer := s.instance(key).timers[0]; !timer.canceled || !timer.triggered.IsZero() {
			t.Errorf("the message came, and the timer %+v goes on", timer)
		}
		timers := s.instance(key).timers
		s.expectWait(timers[len(timers)-1], time.Minute)
		s.fire(key) // nobody tells of the second one
		s.expectRung(jobQueue, key, 0, 1, rung{10 * time.Minute, "PT10M", 10}, "UNKNOWN", queueFailure)
		s.expectStates(key, runs+again[:len(again)-1])
		s.fire(key)
		s.awaitLooks(key, 4, "1")
		s.expectStates(key, runs+again+"WAITING")
		s.publishResolved(id)
		s.awaitEnded(key)
		s.expectEnd(jobQueue, key, jobQueue.recorded, 2)
		s.expectStates(key, runs+again+runs+" COMPLETED")
		s.expectRemembered(jobQueue, id, "recovered", "entregue", "RETRY")
		s.expectCounts(counts{
			"check-dependencies completed": 5, "run-queued-job error thrown": 1, "run-queued-job completed": 1, "analyze-retry completed": 1,
			"record-retry-outcome completed": 1, "timers triggered": 2 + 2, "processes completed": 1, // two messages, two timers
		})
		s.done("job queue: dependencies", "1 job, WAITING twice: 2 messages, 1 minute's timer")
	})
}

// awaitLooks waits until the job has looked for its dependencies so often, found so many open, and waits.
func (s *scenario) awaitLooks(key int64, looks int, open string) {
	s.t.Helper()
	s.awaitAll([]int64{key}, "the job to wait for its dependencies", func(i *instance) bool {
		return i.waiting() && len(i.of(checkDependencies)) == looks && i.variables["openDependencies"] == open
	})
	s.expectVariables(s.instance(key), map[string]string{"jobStatus": `"WAITING"`})
}

func (s *scenario) publishResolved(id string) {
	s.t.Helper()
	_, err := s.PublishMessage(s.t.Context(), &pb.PublishMessageRequest{
		Name: "dependency-resolved", CorrelationKey: id, TimeToLive: messageLife.Milliseconds(),
	})
	testkit.Must(s.t, err)
}

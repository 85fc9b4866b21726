package scenarios

import (
	"testing"
	"time"
)

// The delays of R14.
var jobRungs = []rung{{time.Second, "PT1S", 1}, {5 * time.Second, "PT5S", 1}, {25 * time.Second, "PT25S", 1}}

const (
	jobTeam    = "ti"
	jobFailure = "Serviço externo indisponível"
)

// Retry Failed Job: none, one, two or three retries after 1, 5 and 25 s, without jitter, until the job succeeds.
func TestFailedJobSucceedsAfterRetries(t *testing.T) {
	s := begin(t)
	var keys []int64
	for failures := range 4 {
		keys = append(keys, s.play(failedJob, s.id("JOB", failures), failedJob.fails(repeat(jobFailure, failures)...), nil))
	}
	for made, r := range jobRungs {
		for _, key := range keys[made+1:] {
			s.expectRung(failedJob, key, made, 3, r, "UNKNOWN", jobFailure)
		}
		s.fire(keys[made+1:]...)
	}
	s.awaitEnded(keys...)
	s.expectEnd(failedJob, keys[0], failedJob.atOnce, 1)
	for failures := 1; failures < 4; failures++ {
		s.expectEnd(failedJob, keys[failures], failedJob.recorded, failures+1)
		s.expectRemembered(failedJob, s.id("JOB", failures), "recovered", "entregue", repeat("RETRY", failures)...)
	}
	s.expectCounts(counts{
		"run-job error thrown": 1 + 2 + 3, "run-job completed": 4, "analyze-retry completed": 1 + 2 + 3,
		"record-retry-outcome completed": 3, "timers triggered": 1 + 2 + 3, "processes completed": 4,
	})
	s.done("failed job: success after retries", "4 jobs, 0 to 3 retries, 1 s, 5 s, 25 s")
}

// Retry Failed Job: three retries are the most. Beyond them only a person runs the job again, as often as that person
// says so: each failure is dead at once.
func TestFailedJobBeyondThreeRetries(t *testing.T) {
	s := begin(t)
	letGo := failedJob.fails(repeat(jobFailure, 4)...)
	letGo.Review.Discard = true
	ids := []string{s.id("JOB", 1), s.id("JOB", 2)}
	keys := []int64{
		s.play(failedJob, ids[0], failedJob.fails(repeat(jobFailure, 5)...), nil), // fails the forced run too
		s.play(failedJob, ids[1], letGo, nil),
	}
	for made, r := range jobRungs {
		for _, key := range keys {
			s.expectRung(failedJob, key, made, 3, r, "UNKNOWN", jobFailure)
		}
		s.fire(keys...)
	}
	s.awaitEnded(keys...)
	const limit = "MAX_RETRIES_EXCEEDED"
	s.expectDeadLetter(failedJob, keys[0], 0, wantDead{3, 3, "UNKNOWN", "Maximum of 3 retries reached", jobFailure, jobTeam})
	s.expectDeadLetter(failedJob, keys[0], 1, wantDead{4, 3, "UNKNOWN", "Maximum of 3 retries reached", jobFailure, jobTeam})
	s.expectEnd(failedJob, keys[0], failedJob.recorded, 6)
	s.expectRemembered(failedJob, ids[0], "recovered", "entregue", "RETRY", "RETRY", "RETRY", limit, limit)
	s.expectDeadLetter(failedJob, keys[1], 0, wantDead{3, 3, "UNKNOWN", "Maximum of 3 retries reached", jobFailure, jobTeam})
	s.expectEnd(failedJob, keys[1], "discarded", 4)
	s.expectRemembered(failedJob, ids[1], "discarded", "descartada", "RETRY", "RETRY", "RETRY", limit)
	s.expectCounts(counts{
		"run-job error thrown": 5 + 4, "run-job completed": 1, "analyze-retry completed": 2 * 3, "analyze-retry error thrown": 2 + 1,
		"retry-review completed": 2 + 1, "record-retry-outcome completed": 1, "timers triggered": 2*3 + 2, "processes completed": 2,
	})
	s.done("failed job: beyond 3 retries", "2 jobs; one run twice more by a person, one let go")
}

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
	withEverybody(t, byREST, func(t *testing.T, s *world) {
		var keys []int64
		for failures := range 4 {
			keys = append(keys, s.run(failedJob, s.id("JOB", failures), failedJob.fails(repeat(jobFailure, failures)...), nil))
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
	})
}

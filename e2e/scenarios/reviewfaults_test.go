package scenarios

import (
	"net/http"
	"testing"

	"retry-worker/internal/worker"
)

// outageSize is how many retries are decided while the engine is down.
const outageSize = 200

// dead starts n claims that a person must decide on, and waits until each can be. It returns their dead letters' ids.
func (s *scenario) dead(d api, first, n int) (keys []int64, ids []string) {
	s.t.Helper()
	keys = s.createAll("SUB_06", n, func(i int) map[string]any {
		return submissions.variables(s.claimID(first+i), left(failing("INVALID_PATIENT_DATA")), nil)
	})
	for _, key := range keys {
		ids = append(ids, s.deadLetterOf(d, key, 0))
	}
	return keys, ids
}

// expectAnsweredOnce holds that each review of the instances was answered once, by completing its job.
func (s *scenario) expectAnsweredOnce(keys []int64) {
	s.t.Helper()
	for _, key := range keys {
		i := s.instance(key)
		for _, j := range i.of(worker.RetryReview) {
			if len(j.answers) != 1 || j.answers[0].intent != "COMPLETED" {
				s.t.Errorf("the review %d of %d was answered %d times: %+v", j.key, key, len(j.answers), j.answers)
			}
		}
	}
}

// The engine is down while people decide: what they decide is recorded at once, waits, and none of it is lost.
func TestEngineDownWhileRetriesAreDecided(t *testing.T) {
	withEverybody(t, byREST, func(t *testing.T, s *world) {
		d := api{worker: s.worker}
		keys, ids := s.dead(d, 0, outageSize)
		s.bubble.StopEngine()
		for _, id := range ids {
			if l := s.orders(d, id, "retry", request{Reason: corrected, When: "now"}); l.State != "reprocessing" || l.Delivery != "pending" {
				t.Errorf("decided while the engine is down: %+v, expected it reprocessing and on its way", l)
			}
		}
		s.refused(d, ids[0], "retry", request{Reason: corrected}, http.StatusConflict, "invalid_retry_state", "reprocessing since")
		s.bubble.StartEngine()
		back := s.clock.Now()
		s.awaitEnded(keys...)
		took := s.clock.Now().Sub(back)
		for n, id := range ids {
			s.expectSettled(d, id, "recovered")
			s.expectEnd(submissions, keys[n], submissions.recorded, 2)
		}
		s.expectAnsweredOnce(keys)
		s.done("engine down while retries are decided", "%d retries decided, all taken and done %v after the engine was back, each once", len(ids), took)
	})
}

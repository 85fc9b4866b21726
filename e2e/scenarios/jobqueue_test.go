package scenarios

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/internal/testkit"
)

// messageLife is how long the engine keeps a message for a job that does not listen yet.
const messageLife = 30 * time.Second

// expectStates holds the states that a job of the queue went through, in the words of UC-004.
func (s *scenario) expectStates(key int64, want string) {
	s.t.Helper()
	if got := slices.Compact(s.instance(key).states); strings.Join(got, " ") != want {
		s.t.Errorf("the job's states were %v, expected %s", got, want)
	}
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
		s.expectStates(key, runs+again+runs+done)
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
		Variables: `{"retryCount":7}`, // which is none of the process's business
	})
	testkit.Must(s.t, err)
}

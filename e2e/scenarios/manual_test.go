package scenarios

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/internal/access"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// nobodyTime is longer than a dead letter's process may take to come to its review task.
const nobodyTime = 90 * time.Second

// left makes the reviews of a claim the test's own.
func left(c claim) claim {
	c.Review.Left = true
	return c
}

// deadLetterOf waits until a process waits for its n-th review (from 0) and the worker knows, and returns the dead letter's id.
func (s *scenario) deadLetterOf(d api, key int64, n int) string {
	s.t.Helper()
	s.awaitAll([]int64{key}, "the review", func(i *instance) bool { return len(i.reviews) > n })
	id := strings.Trim(s.instance(key).reviews[n]["deadLetterId"], `"`)
	s.awaitDeadLetter(d, id, "to be waited for", func(l *deadLetter) bool { return l.Process == "waiting" })
	return id
}

// awaitDeadLetter waits until the API says something of a dead letter.
func (s *scenario) awaitDeadLetter(d api, id, what string, met func(*deadLetter) bool) (l deadLetter) {
	s.t.Helper()
	s.until("the dead letter "+id+" "+what, func() bool {
		var err error
		l, err = d.deadLetter(s.t.Context(), id, "", nil)
		return err == nil && met(&l)
	}, func() string { return fmt.Sprintf("%+v", l) })
	return l
}

// orders a retry or a discard that is to be recorded.
func (s *scenario) orders(d api, id, how string, body request) deadLetter {
	s.t.Helper()
	l, err := d.deadLetter(s.t.Context(), id, how, body)
	if err != nil {
		s.t.Fatalf("%s %s %+v: %v, expected it recorded", how, id, body, err)
	}
	return l
}

// refused is a retry or a discard that changes nothing; the message holds says.
func (s *scenario) refused(d api, id, how string, body request, status int, code, says string) {
	s.t.Helper()
	before, err := d.deadLetter(s.t.Context(), id, "", nil)
	testkit.Must(s.t, err)
	_, err = d.deadLetter(s.t.Context(), id, how, body)
	if no, is := errors.AsType[*access.Refusal](err); !is || no.Status != status || no.Code != code || !strings.Contains(no.Message, says) {
		s.t.Errorf("%s %s %+v: %v, expected %d %s: … %s …", how, id, body, err, status, code, says)
	}
	after, err := d.deadLetter(s.t.Context(), id, "", nil)
	testkit.Must(s.t, err)
	if jsonOf(before) != jsonOf(after) {
		s.t.Errorf("%s %s %+v was refused and changed %+v to %+v", how, id, body, before, after)
	}
}

// expectSettled holds how a dead letter ended, and that its process was told.
func (s *scenario) expectSettled(d api, id string, state journal.DeadLetterState) {
	s.t.Helper()
	s.awaitDeadLetter(d, id, string(state)+", and taken by the process", func(l *deadLetter) bool { return l.State == state && l.Delivery == "taken" })
}

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

const corrected = "cadastro corrigido"

// R17 below the limit: one retry more, after the policy's delay or at once, or nothing more.
func TestPersonDecidesBelowTheLimit(t *testing.T) {
	withEverybody(t, byREST, func(t *testing.T, s *world) {
		d := api{worker: s.worker}
		var ids []string
		var keys []int64
		const due = "2099-03-05T21:00:00Z"
		for n := range 4 {
			c := left(claim{Failures: []map[string]any{answered(404, "number is not registered on WhatsApp")}})
			keys = append(keys, s.run(whatsapp, s.id("MSG", n), c, nil))
		}
		for _, key := range keys {
			ids = append(ids, s.deadLetterOf(d, key, 0))
		}

		after := s.orders(d, ids[0], "retry", request{Reason: corrected})
		if after.State != "reprocessing" || after.Review == nil || after.Review.By != "local" || after.Review.Reason != corrected {
			t.Errorf("the answer to the retry is %+v, expected it reprocessing, as local said", after)
		}
		s.orders(d, ids[1], "retry", request{Reason: corrected, When: "now", SubmissionDeadline: due})
		s.orders(d, ids[2], "discard", request{Reason: "o número não existe"})
		testkit.Must(t, d.ask(t.Context(), "/jobs/retry", request{JobID: ids[3], Reason: corrected}, &deadLetter{})) // retry-failed-job.md
		s.awaitEnded(keys[1:3]...)
		for _, n := range []int{0, 3} {
			s.awaitAll(keys[n:n+1], "the timer", func(i *instance) bool { return len(i.timers) > 0 })
			x := s.instance(keys[n]).timers[0]
			s.expectKnown("the process", x.known, map[string]string{
				"reviewDecision": `"reprocess"`, "reviewReason": jsonOf(corrected), "reviewedBy": `"local"`, "shouldRetry": "true",
				"retryCount": "1", "backoffDuration": `"PT5S"`, "backoffMinutes": "1",
			})
			s.expectWait(x, 5*time.Second)
		}
		s.fire(keys[0], keys[3])
		s.awaitEnded(keys...)
		for _, n := range []int{0, 1, 3} {
			s.expectEnd(whatsapp, keys[n], whatsapp.recorded, 2)
			s.expectRemembered(whatsapp, s.id("MSG", n), "recovered", "entregue", "PERMANENT_ERROR")
			s.expectSettled(d, ids[n], "recovered")
		}
		s.expectVariables(s.instance(keys[1]), map[string]string{"retryCount": "1", "backoffDuration": `"PT0S"`, "backoffMinutes": "0", "submissionDeadline": jsonOf(due)})
		s.expectEnd(whatsapp, keys[2], "discarded", 1)
		s.expectVariables(s.instance(keys[2]), map[string]string{"reviewDecision": `"discard"`, "reviewReason": `"o número não existe"`})
		s.expectRemembered(whatsapp, s.id("MSG", 2), "discarded", "descartada", "PERMANENT_ERROR")
		s.expectSettled(d, ids[2], "discarded")
		s.expectCounts(counts{
			"send-whatsapp-message error thrown": 4, "send-whatsapp-message completed": 3, "analyze-retry error thrown": 4, "retry-review completed": 4,
			"record-retry-outcome completed": 3, "timers triggered": 3, "processes completed": 4,
		})
		s.done("person decides, below the limit", "4 messages: after the backoff, at once, discarded, by /jobs/retry")
	})
}

// Retry Failed Job: three retries are the most. R17 at that limit: a retry has to be forced: one more, or the whole ladder
// again in a new episode. A forced one that fails is dead at once.
func TestPersonDecidesAtTheLimit(t *testing.T) {
	withEverybody(t, byREST, func(t *testing.T, s *world) {
		d := api{worker: s.worker}
		ids, keys := []string{s.id("JOB", 0), s.id("JOB", 1)}, []int64{}
		for n, failures := range []int{5, 4} {
			keys = append(keys, s.run(failedJob, ids[n], left(failedJob.fails(repeat(jobFailure, failures)...)), nil))
		}
		for made, r := range jobRungs {
			for _, key := range keys {
				s.expectRung(failedJob, key, made, 3, r, "UNKNOWN", jobFailure)
			}
			s.fire(keys...)
		}
		once, fresh := s.deadLetterOf(d, keys[0], 0), s.deadLetterOf(d, keys[1], 0)
		s.expectDeadLetter(failedJob, keys[0], 0, wantDead{3, 3, "UNKNOWN", "Maximum of 3 retries reached", jobFailure, jobTeam})
		for _, id := range []string{once, fresh} {
			s.refused(d, id, "retry", request{Reason: corrected}, http.StatusConflict, "max_retries_exceeded", "3 of 3")
		}
		s.orders(d, once, "retry", request{Reason: corrected, ForceRetry: true})
		n := len(jobRungs)
		s.awaitAll(keys[:1], "the forced retry's timer", func(i *instance) bool { return len(i.timers) > n })
		x := s.instance(keys[0]).timers[n]
		s.expectKnown("the process", x.known, map[string]string{"retryCount": "4", "backoffDuration": `"PT30S"`, "reviewDecision": `"reprocess"`}) // R14
		s.expectWait(x, 30*time.Second)

		after := s.orders(d, fresh, "retry", request{Reason: corrected, ForceRetry: true, Fresh: true})
		if after.Review == nil || !after.Review.Fresh || !after.Review.ForceRetry {
			t.Errorf("the answer to the fresh retry is %+v, expected it to say so", after)
		}
		s.awaitAll(keys[1:], "the fresh retry's timer", func(i *instance) bool { return len(i.timers) > n })
		s.expectKnown("the process", s.instance(keys[1]).timers[n].known, map[string]string{"retryCount": "0", "backoffDuration": `"PT1S"`})
		s.fire(keys[0])
		more := s.deadLetterOf(d, keys[0], 1)
		s.expectDeadLetter(failedJob, keys[0], 1, wantDead{4, 3, "UNKNOWN", "Maximum of 3 retries reached", jobFailure, jobTeam})
		s.orders(d, more, "retry", request{Reason: corrected, ForceRetry: true, When: "now"})
		s.awaitEnded(keys[0])
		s.expectEnd(failedJob, keys[0], failedJob.recorded, 6)
		s.expectRemembered(failedJob, ids[0], "recovered", "entregue", "RETRY", "RETRY", "RETRY", "MAX_RETRIES_EXCEEDED", "MAX_RETRIES_EXCEEDED")
		s.expectSettled(d, once, "superseded")
		s.expectSettled(d, more, "recovered")

		again := s.deadLetterOf(d, keys[1], 1) // after the whole ladder
		if l, err := d.deadLetter(t.Context(), again, "", nil); err != nil || l.Episode != 2 || l.RetryCount != 3 {
			t.Errorf("dead again it is %+v (%v), expected 3 retries in episode 2", l, err)
		}
		s.orders(d, again, "discard", request{Reason: "sem conserto"})
		s.expectCounts(counts{
			"run-job error thrown": 5 + 8, "run-job completed": 1, "analyze-retry completed": 3 + 6, "analyze-retry error thrown": 2 + 2,
			"retry-review completed": 2 + 2, "record-retry-outcome completed": 1, "timers triggered": 5 + 7, "processes completed": 2,
		})
		s.done("person decides, at the limit", "2 jobs: forced once more after 30 s, in vain, and at once, and the whole ladder anew; 2 refusals without force")
	})
}

// A process without a review task, and one that is cancelled while it waits: the dead letter says that nobody waits, and it
// is never taken for done.
func TestDeadLetterForWhichNobodyWaits(t *testing.T) {
	withEverybody(t, byREST, func(t *testing.T, s *world) {
		d := api{worker: s.worker}
		without := s.create("UNMAPPED", map[string]any{"analysis": worker.AnalyzeRetry, "claimId": s.claimID(1), "submissionError": "INSURANCE_EXPIRED"})
		cancelled := s.submit(s.claimID(2), left(failing("INVALID_PATIENT_DATA")), nil)
		id := s.deadLetterOf(d, cancelled, 0)
		_, err := s.CancelProcessInstance(t.Context(), &pb.CancelProcessInstanceRequest{ProcessInstanceKey: cancelled})
		testkit.Must(s.t, err)
		s.awaitEnded(cancelled)
		s.orders(d, id, "retry", request{Reason: corrected, When: "now"}) // nobody knows yet
		s.expectNobody(d, id)

		s.awaitEnded(without)
		early := strings.Trim(s.instance(without).variables["deadLetterId"], `"`)
		s.refused(d, early, "retry", request{Reason: corrected}, http.StatusConflict, "invalid_retry_state", "not come to its review task yet")
		s.advanceTo(s.clock.Now().Add(nobodyTime))
		s.awaitDeadLetter(d, early, "waited for by nobody", func(l *deadLetter) bool { return l.Process == "nobody" && l.State == "open" })
		s.expectNobody(d, early)
		s.expectCounts(counts{
			"submit-claim error thrown": 1, "analyze-retry error thrown": 2, "retry-review canceled": 1, "processes completed": 1,
		})
		s.done("nobody waits for a review", "an instance cancelled while it waited, a process without a review task: open, and said so")
	})
}

// expectNobody holds that a dead letter is open, that nobody waits for it, and that it can only be discarded.
func (s *scenario) expectNobody(d api, id string) {
	s.t.Helper()
	s.awaitDeadLetter(d, id, "open, with nobody who waits", func(l *deadLetter) bool { return l.State == "open" && l.Process == "nobody" })
	s.refused(d, id, "retry", request{Reason: corrected}, http.StatusConflict, "invalid_retry_state", "no process waits")
	s.orders(d, id, "discard", request{Reason: "encerrada por fora"})
	s.awaitDeadLetter(d, id, "discarded, to nobody", func(l *deadLetter) bool { return l.State == "discarded" && l.Delivery == "nobody" })
}

package scenarios

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// step is what R5 and R8 say of the analysis that finds so many retries made.
type step struct{ least, most int }

// soon is within what an analysis is logged and a timer made.
const soon = time.Second

// ladder of tiss-submission, in minutes.
var ladder = []step{{5, 6}, {8, 12}, {16, 24}, {32, 48}, {64, 96}}

func TestSuccessAfterTwoRetries(t *testing.T) {
	eachProtocol(t, func(_ *testing.T, s *world) {
		c := failing("TIMEOUT - Connection timeout after 30s", "HTTP 503 Service Unavailable")
		keys := []int64{s.submit(s.claimID(1), c, nil)}
		for made := range 2 {
			s.awaitScheduled(keys, made)
			s.fire(keys...)
		}
		s.awaitEnded(keys...)
		s.expectVariables(s.instance(keys[0]), map[string]string{
			"shouldRetry": "true", "retryCount": "2", "maxRetries": "5", "retryReason": `"Transient error, retry 2 of 5"`,
			"errorClassification": `"TRANSIENT"`, "originalError": jsonOf("HTTP 503 Service Unavailable"),
			"retryPolicy": `"tiss-submission"`, "deadLetterId": "null", "responsibleTeam": "null", "submissionError": "null",
		})
		s.expectEnd(submissions, keys[0], submissions.recorded, 3)
		s.expectCounts(counts{
			"submit-claim error thrown": 2, "submit-claim completed": 1, "analyze-retry completed": 2,
			"record-retry-outcome completed": 1, "timers triggered": 2, "processes completed": 1,
		})
		s.done("success after two retries", "1 instance, 2 retries")
	})
}

func TestWholeLadderThenReviewThenSuccess(t *testing.T) {
	withEverybody(t, byGRPC, func(t *testing.T, s *world) {
		const claims = 5 // each with a jitter of its own
		c := failing("HTTP 504", "TIMEOUT", "CONNECTION_ERROR: reset", "Resposta inesperada", "429 rate limit", "TIMEOUT: the last one")
		c.Review.Backoff = true
		var keys []int64
		for n := range claims {
			keys = append(keys, s.submit(s.claimID(n), c, nil))
		}
		for made := range ladder {
			s.awaitScheduled(keys, made)
			s.fire(keys...)
		}
		s.awaitAll(keys, "the review to send the claims again", func(i *instance) bool { return len(i.timers) == len(ladder)+1 })
		for _, key := range keys {
			s.expectLimitReached(key)
			s.expectManualBackoff(key)
		}
		s.fire(keys...)
		s.awaitEnded(keys...)
		for _, key := range keys {
			s.expectVariables(s.instance(key), map[string]string{"reviewDecision": `"reprocess"`, "retryCount": "6", "submissionError": "null"})
			s.expectEnd(submissions, key, submissions.recorded, 7)
		}
		s.expectCounts(counts{
			"submit-claim error thrown": 6 * claims, "submit-claim completed": claims,
			"analyze-retry completed": 5 * claims, "analyze-retry error thrown": claims,
			"retry-review completed": claims, "record-retry-outcome completed": claims,
			"timers triggered": 6 * claims, "processes completed": claims,
		})
		s.done("ladder, limit, review, success", "%d instances, %d retries each", claims, len(ladder)+1)
	})
}

// R20: no retry is scheduled beyond 48 h from the first failure; the failure is final, though retries are left.
func TestTimeLimitLeadsToReview(t *testing.T) {
	withEverybody(t, byGRPC, func(t *testing.T, s *world) {
		c := failing("TIMEOUT")
		c.Review.Discard = true
		first := s.clock.Now().Add(-48*time.Hour + 4*time.Minute) // the shortest backoff is 5 minutes
		key := s.submit(s.claimID(1), c, map[string]any{"lastSubmissionTime": first.Format(time.RFC3339)})
		s.awaitEnded(key)
		i := s.instance(key)
		s.expectVariables(i, map[string]string{
			"shouldRetry": "false", "retryCount": "0", "maxRetries": "5", "retryReason": `"Time limit of 48h reached"`,
			"errorClassification": `"TRANSIENT"`, "responsibleTeam": `"faturamento"`, "reviewDecision": `"discard"`,
		})
		if i.endedBy != "discarded" || len(i.timers) != 0 {
			s.t.Errorf("the process ended at %s after %d timers, expected discarded after none", i.endedBy, len(i.timers))
		}
		s.expectCounts(counts{"submit-claim error thrown": 1, "analyze-retry error thrown": 1, "retry-review completed": 1, "processes completed": 1})
		s.done("time limit, review", "1 instance, no retry beyond 48 h")
	})
}

// awaitScheduled waits until the analysis after so many retries has led each instance to a timer, and
// holds what the process then knows against R5, R7 and R8.
func (s *scenario) awaitScheduled(keys []int64, made int) {
	s.t.Helper()
	s.awaitAll(keys, "the timer of retry "+strconv.Itoa(made+1), func(i *instance) bool { return len(i.timers) == made+1 })
	for _, key := range keys {
		i := s.instance(key)
		minutes, err := strconv.Atoi(i.variables["backoffMinutes"])
		if err != nil || minutes < ladder[made].least || minutes > ladder[made].most {
			s.t.Errorf("retry %d of %d: backoffMinutes is %s, expected %d to %d (R5)", made+1, key, i.variables["backoffMinutes"], ladder[made].least, ladder[made].most)
		}
		s.expectVariables(i, map[string]string{
			"shouldRetry": "true", "retryCount": strconv.Itoa(made + 1), "backoffDuration": fmt.Sprintf(`"PT%dM"`, minutes),
		})
		if reason, end := i.variables["retryReason"], fmt.Sprintf(` error, retry %d of 5"`, made+1); !strings.HasSuffix(reason, end) {
			s.t.Errorf("retryReason is %s, expected … %s", reason, end)
		}
		s.expectInstant(i, minutes)
	}
}

// expectInstant holds nextRetryTime against R7: the analysis's instant plus the backoff, and the timer
// waits for exactly that.
func (s *scenario) expectInstant(i instance, minutes int) {
	s.t.Helper()
	timer := i.timers[len(i.timers)-1]
	next, err := time.Parse(`"2006-01-02T15:04:05Z"`, i.variables["nextRetryTime"])
	if err != nil {
		s.t.Fatalf("nextRetryTime: %v, expected an instant in UTC with whole seconds (R7)", err)
	}
	if !timer.due.Equal(next) {
		s.t.Errorf("the timer is due at %v, expected nextRetryTime %v", timer.due.UTC(), next)
	}
	s.expectLogged(i.key, len(i.timers), next.Add(-time.Duration(minutes)*time.Minute), i.variables["nextRetryTime"])
	if wait := timer.due.Sub(timer.created); wait < time.Minute {
		s.t.Errorf("the timer was made %v before it was due: it did not really wait", wait)
	}
}

// expectLimitReached looks at what the person in the review saw.
func (s *scenario) expectLimitReached(key int64) {
	s.t.Helper()
	reviews := s.instance(key).reviews
	v := reviews[len(reviews)-1]
	s.expectKnown("the review", v, map[string]string{
		"shouldRetry": "false", "retryCount": "5", "maxRetries": "5", "retryReason": `"Maximum of 5 retries reached"`,
		"errorClassification": `"TRANSIENT"`, "originalError": `"TIMEOUT: the last one"`, "retryPolicy": `"tiss-submission"`,
		"responsibleTeam": `"faturamento"`, "nextRetryTime": "null",
	})
	expectUUID(s.t, v["deadLetterId"])
}

// expectManualBackoff holds the wait that a person ordered against R17: that of the sixth retry, 160 minutes and a jitter
// of 20 %, from the decision on.
func (s *scenario) expectManualBackoff(key int64) {
	s.t.Helper()
	i := s.instance(key)
	minutes, err := strconv.Atoi(i.variables["backoffMinutes"])
	if err != nil || minutes < 128 || minutes > 192 {
		s.t.Errorf("backoffMinutes is %s, expected 128 to 192", i.variables["backoffMinutes"])
	}
	s.expectVariables(i, map[string]string{"backoffDuration": fmt.Sprintf(`"PT%dM"`, minutes)})
	next, err := time.Parse(`"2006-01-02T15:04:05Z"`, i.variables["nextRetryTime"])
	if err != nil || !next.Equal(i.timers[len(i.timers)-1].due) {
		s.t.Errorf("the timer is due at %v, expected nextRetryTime %s (%v)", i.timers[len(i.timers)-1].due, i.variables["nextRetryTime"], err)
	}
	if decided := next.Add(-time.Duration(minutes) * time.Minute); decided.Before(s.begun) || decided.After(s.clock.Now()) {
		s.t.Errorf("nextRetryTime − backoffMinutes is %v, expected the instant of the decision", decided)
	}
}

package scenarios

import (
	"cmp"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/e2e/harness/bubble"
	"retry-worker/e2e/harness/engine"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// wrong is an input that R11 rejects, in work that fails once.
type wrong struct {
	system   system
	name     string
	id       any            // nil: a good one; missing: none
	failure  map[string]any // variables of the failed work; nil: a timeout
	extra    map[string]any // further variables that the process starts with
	code     string         // what the incident's message begins with
	says     string         // what is in it: the variable, and what was found
	variable string         // the variable to correct
	correct  any            // what it is corrected to; nil: a good id
}

// rejectedAt is the job type that rejects it: a claim that nobody can name is not sent.
func (w *wrong) rejectedAt() string {
	if w.variable == "claimId" {
		return worker.SubmissionGate
	}
	return worker.AnalyzeRetry
}

// missing is an id that the process does not start with.
const missing = "missing"

func failure(value any) map[string]any { return map[string]any{"submissionError": value} }

var wrongClaims = []wrong{
	{system: submissions, name: "claimId malformed", id: "GUIA-1", code: "INVALID_CLAIM_ID", says: `claimId is "GUIA-1" (text)`, variable: "claimId"},
	{system: submissions, name: "claimId missing", id: missing, code: "INVALID_CLAIM_ID", says: "claimId is missing", variable: "claimId"},
	{system: submissions, name: "claimId a number", id: 503, code: "INVALID_CLAIM_ID", says: "claimId is 503", variable: "claimId"},
	{system: submissions, name: "retryCount a text", extra: map[string]any{"retryCount": "2"},
		code: "INVALID_RETRY_COUNT", says: `retryCount is "2" (text)`, variable: "retryCount", correct: 0},
	{system: submissions, name: "retryCount 2.5", extra: map[string]any{"retryCount": 2.5},
		code: "INVALID_RETRY_COUNT", says: "retryCount is 2.5", variable: "retryCount", correct: 0},
	{system: submissions, name: "retryCount -1", extra: map[string]any{"retryCount": -1}, code: "INVALID_RETRY_COUNT", says: "retryCount is -1", variable: "retryCount", correct: 0},
	{system: submissions, name: "retryCount true", extra: map[string]any{"retryCount": true},
		code: "INVALID_RETRY_COUNT", says: "retryCount is true", variable: "retryCount", correct: 0},
	{system: submissions, name: "lastSubmissionTime", extra: map[string]any{"lastSubmissionTime": "ontem"},
		code: "INVALID_LAST_SUBMISSION_TIME", says: `lastSubmissionTime is "ontem" (text)`, variable: "lastSubmissionTime", correct: bubble.Begin.Add(-time.Hour)},
	{system: submissions, name: "submissionError empty", failure: failure(""),
		code: "INVALID_ERROR_MESSAGE", says: `submissionError is "" (text)`, variable: "submissionError", correct: "TIMEOUT"},
	{system: submissions, name: "submissionError spaces", failure: failure("   \t"),
		code: "INVALID_ERROR_MESSAGE", says: `submissionError is "   \t" (text)`, variable: "submissionError", correct: "TIMEOUT"},
	{system: submissions, name: "submissionError missing", failure: map[string]any{},
		code: "INVALID_ERROR_MESSAGE", says: "submissionError is null", variable: "submissionError", correct: "TIMEOUT"},
	{system: submissions, name: "submissionError a number", failure: failure(503),
		code: "INVALID_ERROR_MESSAGE", says: "submissionError is 503", variable: "submissionError", correct: "TIMEOUT"},
}

// ownPolicy is a retry policy of a queued job, with other values in place of its own.
func ownPolicy(other map[string]any) map[string]any {
	all := map[string]any{"maxAttempts": 2, "delayBetweenAttempts": "PT1S"}
	maps.Copy(all, other)
	return all
}

var wrongWork = []wrong{
	{system: whatsapp, name: "messageId missing", id: missing, code: "INVALID_ID", says: "messageId is missing", variable: "messageId"},
	{system: whatsapp, name: "messageId a number", id: 7, code: "INVALID_ID", says: "messageId is 7", variable: "messageId"},
	{system: whatsapp, name: "sendError empty", failure: answered(503, ""),
		code: "INVALID_ERROR_MESSAGE", says: `sendError is "" (text)`, variable: "sendError", correct: "TIMEOUT"},
	{system: whatsapp, name: "sendError missing", failure: map[string]any{}, code: "INVALID_ERROR_MESSAGE", says: "sendError is null", variable: "sendError", correct: "TIMEOUT"},
	{system: whatsapp, name: "httpStatus a text", failure: map[string]any{"sendError": "recusado", "httpStatus": "alto"},
		code: "INVALID_HTTP_STATUS", says: `httpStatus is "alto" (text)`, variable: "httpStatus", correct: 503},
	{system: whatsapp, name: "httpStatus no status", failure: answered(42, "recusado"), code: "INVALID_HTTP_STATUS", says: "httpStatus is 42", variable: "httpStatus", correct: 503},
	{system: failedJob, name: "jobId missing", id: missing, code: "INVALID_ID", says: "jobId is missing", variable: "jobId"},
	{system: failedJob, name: "jobError missing", failure: map[string]any{}, code: "INVALID_ERROR_MESSAGE", says: "jobError is null", variable: "jobError", correct: jobFailure},
	{system: failedJob, name: "retryCount a text", extra: map[string]any{"retryCount": "x"},
		code: "INVALID_RETRY_COUNT", says: `retryCount is "x" (text)`, variable: "retryCount", correct: 0},
	{system: jobQueue, name: "maxAttempts 0", extra: ownPolicy(map[string]any{"maxAttempts": 0}),
		code: "INVALID_RETRY_POLICY", says: "maxAttempts is 0", variable: "maxAttempts", correct: 2},
	{system: jobQueue, name: "maxAttempts a text", extra: ownPolicy(map[string]any{"maxAttempts": "2"}),
		code: "INVALID_RETRY_POLICY", says: `maxAttempts is "2" (text)`, variable: "maxAttempts", correct: 2},
	{system: jobQueue, name: "delay no duration", extra: ownPolicy(map[string]any{"delayBetweenAttempts": "30 segundos"}),
		code: "INVALID_RETRY_POLICY", says: `delayBetweenAttempts is "30 segundos" (text)`, variable: "delayBetweenAttempts", correct: "PT1S"},
	{system: jobQueue, name: "delay negative", extra: ownPolicy(map[string]any{"delayBetweenAttempts": -1}),
		code: "INVALID_RETRY_POLICY", says: "delayBetweenAttempts is -1", variable: "delayBetweenAttempts", correct: 1000},
	{system: jobQueue, name: "nonRetryable a text", extra: ownPolicy(nil), failure: map[string]any{"jobError": "x", "nonRetryable": "sim"},
		code: "INVALID_RETRY_POLICY", says: `nonRetryable is "sim" (text)`, variable: "nonRetryable", correct: false},
}

// TestRejectedInputIsAnIncidentThatACorrectionEnds: an incident says what is wrong, and the process goes on once it is corrected.
func TestRejectedInputIsAnIncidentThatACorrectionEnds(t *testing.T) {
	eachProtocol(t, func(_ *testing.T, s *world) {
		n, atGate := len(wrongClaims), 3 // those with a wrong claimId
		s.playRejected(wrongClaims, counts{
			"submit-claim error thrown": n - atGate, "analyze-retry failed": n - atGate, "analyze-retry created": n - atGate, "incidents pending": n,
			"submission-gate failed": atGate, "submission-gate created": n,
		})
		s.expectCounts(counts{
			"submit-claim error thrown": n, "submit-claim completed": n, "submission-gate failed": atGate, "analyze-retry failed": n - atGate,
			"analyze-retry completed":        n,
			"record-retry-outcome completed": n, "timers triggered": n, "processes completed": n,
		})
	})
}

func TestRejectedInputOfTheOtherPolicies(t *testing.T) {
	n := len(wrongWork)
	withEverybody(t, byREST, func(_ *testing.T, s *world) {
		s.playRejected(wrongWork, counts{
			sendMessage + " error thrown": 6, runJob + " error thrown": 3, runQueuedJob + " error thrown": 5, checkDependencies + " completed": 5,
			"analyze-retry failed": n, "analyze-retry created": n, "incidents pending": n,
		})
	})
}

// playRejected plays work with each of these inputs until it has ended; stopped are the counts when all are incidents.
func (s *scenario) playRejected(inputs []wrong, stopped counts) {
	s.t.Helper()
	var keys []int64
	for n, w := range inputs {
		keys = append(keys, s.playWrong(n, w))
	}
	s.awaitAll(keys, "the incidents", func(i *instance) bool { return len(i.incidents) > 0 })
	s.expectCounts(stopped)
	for n, w := range inputs {
		s.expectRejected(keys[n], w)
		s.correct(keys[n], w.variable, cmp.Or(w.correct, any(s.claimID(n))))
	}
	s.awaitAll(keys, "the processes to go on to their timers", func(i *instance) bool { return len(i.timers) > 0 })
	s.fire(keys...)
	s.awaitEnded(keys...)
	for n, w := range inputs {
		s.expectEnd(w.system, keys[n], w.system.recorded, 2)
		i := s.instance(keys[n])
		s.expectVariables(i, map[string]string{"retryCount": "1", "shouldRetry": "true"})
		if len(i.incidents) != 1 {
			s.t.Errorf("%s: ended with %d incidents, expected 1", w.name, len(i.incidents))
		}
	}
	s.done("rejected inputs, corrected", "%d instances, %d incidents, %d retries", len(keys), len(keys), len(keys))
}

func (s *scenario) playWrong(n int, w wrong) int64 {
	s.t.Helper()
	c := w.system.fails("TIMEOUT")
	if w.failure != nil {
		c.Failures[0] = w.failure
	}
	id := s.claimID(n)
	variables := map[string]any{w.system.idVariable: cmp.Or(w.id, any(id)), "scenario": c, "operadora": portalOf(id)}
	if w.id == missing {
		delete(variables, w.system.idVariable)
	}
	maps.Copy(variables, w.extra)
	return s.create(w.system.process, variables)
}

// expectRejected holds the incident, the job and the worker's log against R11.
func (s *scenario) expectRejected(key int64, w wrong) {
	s.t.Helper()
	i := s.instance(key)
	jobs := i.of(w.rejectedAt())
	if len(i.incidents) != 1 || len(jobs) != 1 {
		s.t.Errorf("%s: %d incidents of %d analyses, expected 1 of 1", w.name, len(i.incidents), len(jobs))
		return
	}
	x := i.incidents[0]
	if !strings.HasPrefix(x.message, w.code+": ") || !strings.Contains(x.message, w.says+", expected ") || strings.Contains(x.message, "\n") {
		s.t.Errorf("%s: the incident says %q, expected one line from %s on with %s", w.name, x.message, w.code, w.says)
	}
	if f := jobs[0].failures; x.kind != "JOB_NO_RETRIES" || x.jobKey != jobs[0].key || f[len(f)-1].retries != 0 {
		s.t.Errorf("%s: incident %+v of a job that failed %+v, expected JOB_NO_RETRIES of a job with 0 retries", w.name, *x, f)
	}
	lines := s.worker.Log.About(s.t, key, 1)
	if len(lines) != 1 || lines[0].Text("event") != "input_rejected" || lines[0].Text("rejection") != w.code {
		s.t.Errorf("%s: the worker's log has %v, expected one line input_rejected, %s", w.name, lines, w.code)
	}
}

// correct does what a person does in Operate: sets the variable, gives the job a retry, resolves the
// incident. The incident's key is known from the engine's own record; gRPC has no query for it.
func (s *scenario) correct(key int64, variable string, value any) {
	s.t.Helper()
	set := &pb.SetVariablesRequest{ElementInstanceKey: key, Variables: jsonOf(map[string]any{variable: value})}
	incidents := s.instance(key).incidents
	x := incidents[len(incidents)-1]
	for _, ask := range []func() error{
		func() error { _, err := s.SetVariables(s.t.Context(), set); return err },
		func() error {
			_, err := s.UpdateJobRetries(s.t.Context(), &pb.UpdateJobRetriesRequest{JobKey: x.jobKey, Retries: 3})
			return err
		},
		func() error {
			_, err := s.ResolveIncident(s.t.Context(), &pb.ResolveIncidentRequest{IncidentKey: x.key})
			return err
		},
	} {
		testkit.Must(s.t, engine.Patiently(ask))
	}
}

// An error that the process does not catch is an incident. Resolved as it is, the job comes again with the retryCount that the
// answer wrote: the same attempt, the same dead letter. Resolved with a correction it is another.
func TestUncaughtErrorIsOneAttempt(t *testing.T) {
	withEverybody(t, byGRPC, func(t *testing.T, s *world) {
		key := s.create("UNCAUGHT", map[string]any{"analysis": worker.AnalyzeRetry, "claimId": s.claimID(0), "submissionError": "DUPLICATE_CLAIM"})
		for n := range 3 {
			s.awaitAll([]int64{key}, "the incident", func(i *instance) bool { return len(i.incidents) == n+1 })
			s.expectVariables(s.instance(key), map[string]string{"retryCount": "0"})
			if n == 2 {
				s.correct(key, "submissionError", "TIMEOUT")
				break
			}
			_, err := s.ResolveIncident(t.Context(), &pb.ResolveIncidentRequest{IncidentKey: s.instance(key).incidents[n].key})
			testkit.Must(s.t, err)
		}
		s.awaitEnded(key)
		var story struct {
			Attempts []struct{ Outcome string }
		}
		err := api{worker: s.worker}.ask(t.Context(), "/subjects/tiss-submission/"+s.claimID(0), nil, &story)
		if err != nil || len(story.Attempts) != 2 || story.Attempts[0].Outcome != "PERMANENT_ERROR" || story.Attempts[1].Outcome != "RETRY" {
			s.t.Errorf("remembered %+v (%v), expected one attempt that was given up and one that is retried", story, err)
		}
		s.done("error that nobody catches", "3 incidents, 1 attempt; corrected, 1 more")
	})
}

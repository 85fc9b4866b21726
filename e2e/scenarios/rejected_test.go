package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/e2e/harness/zeebe"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// wrong is an input that R11 rejects, in a claim whose submission fails once.
type wrong struct {
	name     string
	claimID  any            // nil: a good one; missing: none
	failure  map[string]any // variables of the failed submission; nil: a timeout
	extra    map[string]any // further variables that the process starts with
	code     string         // what the incident's message begins with
	says     string         // what is in it: the variable, and what was found
	variable string         // the variable to correct
}

// rejectedAt is the job type that rejects it: a claim that nobody can name is not sent.
func (w *wrong) rejectedAt() string {
	if w.variable == "claimId" {
		return worker.SubmissionGate
	}
	return worker.AnalyzeRetry
}

// missing is a claimId that the process does not start with.
const missing = "missing"

func failure(value any) map[string]any { return map[string]any{"submissionError": value} }

var wrongInputs = []wrong{
	{name: "claimId malformed", claimID: "GUIA-1", code: "INVALID_CLAIM_ID", says: `claimId is "GUIA-1" (text)`, variable: "claimId"},
	{name: "claimId missing", claimID: missing, code: "INVALID_CLAIM_ID", says: "claimId is missing", variable: "claimId"},
	{name: "claimId a number", claimID: 503, code: "INVALID_CLAIM_ID", says: "claimId is 503", variable: "claimId"},
	{name: "retryCount a text", extra: map[string]any{"retryCount": "2"}, code: "INVALID_RETRY_COUNT", says: `retryCount is "2" (text)`, variable: "retryCount"},
	{name: "retryCount 2.5", extra: map[string]any{"retryCount": 2.5}, code: "INVALID_RETRY_COUNT", says: "retryCount is 2.5", variable: "retryCount"},
	{name: "retryCount -1", extra: map[string]any{"retryCount": -1}, code: "INVALID_RETRY_COUNT", says: "retryCount is -1", variable: "retryCount"},
	{name: "retryCount true", extra: map[string]any{"retryCount": true}, code: "INVALID_RETRY_COUNT", says: "retryCount is true", variable: "retryCount"},
	{name: "lastSubmissionTime", extra: map[string]any{"lastSubmissionTime": "ontem"}, code: "INVALID_LAST_SUBMISSION_TIME", says: `lastSubmissionTime is "ontem" (text)`, variable: "lastSubmissionTime"},
	{name: "submissionError empty", failure: failure(""), code: "INVALID_ERROR_MESSAGE", says: `submissionError is "" (text)`, variable: "submissionError"},
	{name: "submissionError spaces", failure: failure("   \t"), code: "INVALID_ERROR_MESSAGE", says: `submissionError is "   \t" (text)`, variable: "submissionError"},
	{name: "submissionError missing", failure: map[string]any{}, code: "INVALID_ERROR_MESSAGE", says: "submissionError is null", variable: "submissionError"},
	{name: "submissionError a number", failure: failure(503), code: "INVALID_ERROR_MESSAGE", says: "submissionError is 503", variable: "submissionError"},
}

func TestRejectedInputIsAnIncidentThatACorrectionEnds(t *testing.T) {
	corrected := map[string]any{
		"retryCount": 0, "lastSubmissionTime": time.Now().Add(-time.Hour).Format(time.RFC3339), "submissionError": "TIMEOUT",
	}
	eachVersion(t, func(s *scenario) {
		var keys []int64
		for n, w := range wrongInputs {
			keys = append(keys, s.submitWrong(n, w))
		}
		s.awaitAll(keys, "the incidents", func(i *instance) bool { return len(i.incidents) > 0 })
		n, atGate := len(wrongInputs), 0
		for _, w := range wrongInputs {
			if w.rejectedAt() == worker.SubmissionGate {
				atGate++
			}
		}
		s.expectCounts(counts{
			"submit-claim error thrown": n - atGate, "analyze-retry failed": n - atGate, "analyze-retry created": n - atGate, "incidents pending": n,
			"submission-gate failed": atGate, "submission-gate created": n,
		})
		for index, w := range wrongInputs {
			s.expectRejected(keys[index], w)
			value, given := corrected[w.variable]
			if !given {
				value = s.claimID(index)
			}
			s.correct(keys[index], w.variable, value)
		}
		s.awaitAll(keys, "the processes to go on to their timers", func(i *instance) bool { return len(i.timers) > 0 })
		s.climb(keys, 0)
		s.awaitEnded(keys...)
		for index, key := range keys {
			i := s.instance(key)
			s.expectVariables(i, map[string]string{"retryCount": "1", "shouldRetry": "true"})
			if i.endedBy != "resubmission_recorded" || len(i.incidents) != 1 {
				s.t.Errorf("%s: ended at %s with %d incidents, expected resubmission_recorded with 1", wrongInputs[index].name, i.endedBy, len(i.incidents))
			}
		}
		s.expectCounts(counts{
			"submit-claim error thrown": n, "submit-claim completed": n, "submission-gate failed": atGate, "analyze-retry failed": n - atGate,
			"analyze-retry completed":        n,
			"record-retry-outcome completed": n, "timers triggered": n, "processes completed": n,
		})
		s.done("rejected inputs, corrected", "%d instances, %d incidents, %d retries", n, n, n)
	})
}

func (s *scenario) submitWrong(n int, w wrong) int64 {
	s.t.Helper()
	c := claim{Failures: []map[string]any{w.failure}}
	if w.failure == nil {
		c = failing("TIMEOUT")
	}
	switch w.claimID {
	case nil:
		return s.submit(s.claimID(n), c, w.extra)
	case missing:
		return s.submit(nil, c, w.extra)
	default:
		return s.submit(w.claimID, c, w.extra)
	}
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
// incident. The incident's key is known from the broker's own record; gRPC has no query for it.
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
		testkit.Must(s.t, zeebe.Patiently(ask))
	}
}

// An error that the process does not catch is an incident. Resolved as it is, the job comes again with the retryCount that the
// answer wrote: the same attempt, the same dead letter. Resolved with a correction it is another.
func TestUncaughtErrorIsOneAttempt(t *testing.T) {
	eachVersion(t, func(s *scenario) {
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

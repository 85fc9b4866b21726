package scenarios

import (
	"cmp"
	"strings"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/e2e/harness/engine"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// wrong is an input that R11 rejects, in work that fails once. internal/decision has all that are.
type wrong struct {
	system   system
	id       any            // nil: a good one
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

var wrongWork = []wrong{
	{system: submissions, id: "GUIA-1", code: "INVALID_CLAIM_ID", says: `claimId is "GUIA-1" (text)`, variable: "claimId"},
	{system: submissions, extra: map[string]any{"retryCount": "beneficiário " + strings.Join(personal, ", ")},
		code: "INVALID_RETRY_COUNT", says: `retryCount is "beneficiário `, variable: "retryCount", correct: 0},
	{system: submissions, failure: map[string]any{},
		code: "INVALID_ERROR_MESSAGE", says: "submissionError is null", variable: "submissionError", correct: "TIMEOUT"},
	{system: whatsapp, failure: map[string]any{"sendError": "recusado", "httpStatus": "alto"},
		code: "INVALID_HTTP_STATUS", says: `httpStatus is "alto" (text)`, variable: "httpStatus", correct: 503},
	{system: failedJob, id: 7, code: "INVALID_ID", says: "jobId is 7", variable: "jobId"},
	{system: jobQueue, extra: map[string]any{"maxAttempts": 0, "delayBetweenAttempts": "PT1S"},
		code: "INVALID_RETRY_POLICY", says: "maxAttempts is 0", variable: "maxAttempts", correct: 2},
}

// TestRejectedInputIsAnIncidentThatACorrectionEnds: an incident says what is wrong, and nothing personal; the process goes on
// once it is corrected.
func TestRejectedInputIsAnIncidentThatACorrectionEnds(t *testing.T) {
	eachProtocol(t, func(t *testing.T, s *world) {
		var keys []int64
		for n, w := range wrongWork {
			c := w.system.fails("TIMEOUT")
			if w.failure != nil {
				c.Failures[0] = w.failure
			}
			variables := w.system.variables(s.claimID(n), c, w.extra)
			if w.id != nil {
				variables[w.system.idVariable] = w.id
			}
			keys = append(keys, s.create(w.system.process, variables))
		}
		s.awaitAll(keys, "the incidents", func(i *instance) bool { return len(i.incidents) > 0 })
		for n, w := range wrongWork {
			s.expectRejected(keys[n], w)
			s.correct(keys[n], w.variable, cmp.Or(w.correct, any(s.claimID(n))))
		}
		s.awaitAll(keys, "the processes to go on to their timers", func(i *instance) bool { return len(i.timers) > 0 })
		s.fire(keys...)
		s.awaitEnded(keys...)
		for n, w := range wrongWork {
			s.expectEnd(w.system, keys[n], w.system.recorded, 2)
			i := s.instance(keys[n])
			s.expectVariables(i, map[string]string{"retryCount": "1", "shouldRetry": "true"})
			if len(i.incidents) != 1 {
				t.Errorf("%s: ended with %d incidents, expected 1", w.says, len(i.incidents))
			}
		}
		s.done("rejected inputs, corrected", "%d instances, %d incidents, %d retries", len(keys), len(keys), len(keys))
	})
}

// expectRejected holds the incident, the job and the worker's log against R11.
func (s *scenario) expectRejected(key int64, w wrong) {
	s.t.Helper()
	i := s.instance(key)
	jobs := i.of(w.rejectedAt())
	if len(i.incidents) != 1 || len(jobs) != 1 {
		s.t.Errorf("%s: %d incidents of %d analyses, expected 1 of 1", w.says, len(i.incidents), len(jobs))
		return
	}
	x := i.incidents[0]
	if !strings.HasPrefix(x.message, w.code+": ") || !strings.Contains(x.message, w.says) || !strings.Contains(x.message, ", expected ") ||
		strings.Contains(x.message, "\n") {
		s.t.Errorf("the incident says %q, expected one line from %s on with %s", x.message, w.code, w.says)
	}
	s.expectNothingPersonal("the incident's message", x.message)
	if f := jobs[0].failures; x.kind != "JOB_NO_RETRIES" || x.jobKey != jobs[0].key || f[len(f)-1].retries != 0 {
		s.t.Errorf("%s: incident %+v of a job that failed %+v, expected JOB_NO_RETRIES of a job with 0 retries", w.says, *x, f)
	}
	lines := s.worker.Log.About(s.t, key, 1)
	if len(lines) != 1 || lines[0].Text("event") != "input_rejected" || lines[0].Text("rejection") != w.code {
		s.t.Errorf("%s: the worker's log has %v, expected one line input_rejected, %s", w.says, lines, w.code)
	}
}

// correct does what a person does in Operate: sets the variable, gives the job a retry, resolves the
// incident. The incident's key is known from the engine's own record; gRPC has no query for it.
func (s *scenario) correct(key int64, variable string, value any) {
	s.t.Helper()
	set := &pb.SetVariablesRequest{ElementInstanceKey: key, Variables: jsonOf(map[string]any{variable: value})}
	x := s.instance(key).incidents[0]
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

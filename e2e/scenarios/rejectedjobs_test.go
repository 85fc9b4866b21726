package scenarios

import (
	"maps"
	"testing"
)

// misread is an input of another process than SUB_06 that R11 rejects, in work that fails once.
type misread struct {
	wrong
	system  system
	correct any // what the variable is corrected to
}

// ownPolicy is a retry policy of a queued job, with other values in place of its own.
func ownPolicy(other map[string]any) map[string]any {
	all := map[string]any{"maxAttempts": 2, "delayBetweenAttempts": "PT1S"}
	maps.Copy(all, other)
	return all
}

var misreadInputs = []misread{
	{wrong{name: "messageId missing", claimID: missing, code: "INVALID_ID", says: "messageId is missing", variable: "messageId"}, whatsapp, nil},
	{wrong{name: "messageId a number", claimID: 7, code: "INVALID_ID", says: "messageId is 7", variable: "messageId"}, whatsapp, nil},
	{wrong{name: "sendError empty", failure: answered(503, ""), code: "INVALID_ERROR_MESSAGE", says: `sendError is "" (text)`, variable: "sendError"}, whatsapp, "TIMEOUT"},
	{wrong{name: "sendError missing", failure: map[string]any{}, code: "INVALID_ERROR_MESSAGE", says: "sendError is null", variable: "sendError"}, whatsapp, "TIMEOUT"},
	{wrong{name: "httpStatus a text", failure: map[string]any{"sendError": "recusado", "httpStatus": "alto"}, code: "INVALID_HTTP_STATUS", says: `httpStatus is "alto" (text)`, variable: "httpStatus"}, whatsapp, 503},
	{wrong{name: "httpStatus no status", failure: answered(42, "recusado"), code: "INVALID_HTTP_STATUS", says: "httpStatus is 42", variable: "httpStatus"}, whatsapp, 503},
	{wrong{name: "jobId missing", claimID: missing, code: "INVALID_ID", says: "jobId is missing", variable: "jobId"}, failedJob, nil},
	{wrong{name: "jobError missing", failure: map[string]any{}, code: "INVALID_ERROR_MESSAGE", says: "jobError is null", variable: "jobError"}, failedJob, jobFailure},
	{wrong{name: "retryCount a text", extra: map[string]any{"retryCount": "x"}, code: "INVALID_RETRY_COUNT", says: `retryCount is "x" (text)`, variable: "retryCount"}, failedJob, 0},
	{wrong{name: "maxAttempts 0", extra: ownPolicy(map[string]any{"maxAttempts": 0}), code: "INVALID_RETRY_POLICY", says: "maxAttempts is 0", variable: "maxAttempts"}, jobQueue, 2},
	{wrong{name: "maxAttempts a text", extra: ownPolicy(map[string]any{"maxAttempts": "2"}), code: "INVALID_RETRY_POLICY", says: `maxAttempts is "2" (text)`, variable: "maxAttempts"}, jobQueue, 2},
	{wrong{name: "delay no duration", extra: ownPolicy(map[string]any{"delayBetweenAttempts": "30 segundos"}), code: "INVALID_RETRY_POLICY", says: `delayBetweenAttempts is "30 segundos" (text)`, variable: "delayBetweenAttempts"}, jobQueue, "PT1S"},
	{wrong{name: "delay negative", extra: ownPolicy(map[string]any{"delayBetweenAttempts": -1}), code: "INVALID_RETRY_POLICY", says: "delayBetweenAttempts is -1", variable: "delayBetweenAttempts"}, jobQueue, 1000},
	{wrong{name: "nonRetryable a text", extra: ownPolicy(nil), failure: map[string]any{"jobError": "x", "nonRetryable": "sim"}, code: "INVALID_RETRY_POLICY", says: `nonRetryable is "sim" (text)`, variable: "nonRetryable"}, jobQueue, false},
}

// R11 for the variables of the other policies: an incident that says what is wrong, and the process goes on once it is
// corrected.
func TestRejectedInputOfTheOtherPolicies(t *testing.T) {
	s := begin(t)
	var keys []int64
	for n, m := range misreadInputs {
		keys = append(keys, s.playMisread(n, m))
	}
	s.awaitAll(keys, "the incidents", func(i *instance) bool { return len(i.incidents) > 0 })
	s.expectCounts(counts{
		sendMessage + " error thrown": 6, runJob + " error thrown": 3, runQueuedJob + " error thrown": 5, checkDependencies + " completed": 5,
		"analyze-retry failed": len(keys), "analyze-retry created": len(keys), "incidents pending": len(keys),
	})
	for n, m := range misreadInputs {
		s.expectRejected(keys[n], m.wrong)
		if m.correct == nil {
			m.correct = s.id("ID", n)
		}
		s.correct(keys[n], m.variable, m.correct)
	}
	s.awaitAll(keys, "the processes to go on to their timers", func(i *instance) bool { return len(i.timers) > 0 })
	s.fire(keys...)
	s.awaitEnded(keys...)
	for n, m := range misreadInputs {
		s.expectEnd(m.system, keys[n], m.system.recorded, 2)
		s.expectVariables(s.instance(keys[n]), map[string]string{"retryCount": "1", "shouldRetry": "true"})
	}
	s.done("other policies: rejected, corrected", "%d instances, %d incidents, %d retries", len(keys), len(keys), len(keys))
}

func (s *scenario) playMisread(n int, m misread) int64 {
	s.t.Helper()
	c := m.system.fails(jobFailure)
	if m.failure != nil {
		c.Failures[0] = m.failure
	}
	variables := map[string]any{m.system.idVariable: s.id("ID", n), "scenario": c}
	maps.Copy(variables, m.extra)
	switch m.claimID {
	case nil:
	case missing:
		delete(variables, m.system.idVariable)
	default:
		variables[m.system.idVariable] = m.claimID
	}
	return s.create(m.system.process, variables)
}

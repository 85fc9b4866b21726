package bpmn_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"retry-worker/bpmn"
)

// expectation is what the contract says of one model.
type expectation struct {
	// id is the variable it starts with, policy the one that all its tasks of ours name.
	id, policy string
	// tasks are the hospital's own job types, with the retries each is given.
	tasks []hospitalTask
	// gated tells that a gate stands before the first, and behind it a task that asks whether it was accepted already (R33).
	gated bool
	// failure is the BPMN error of the hospital's task, carries the variables it brings, optional ones too.
	failure string
	carries []string
}

type hospitalTask struct{ jobType, retries string }

// expectations of each process that the contract names; there is no other.
var expectations = map[string]expectation{
	"SUB_06": {
		id: "claimId", policy: "tiss-submission", tasks: []hospitalTask{{"submit-claim", "1"}}, gated: true,
		failure: "SUBMISSION_FAILED", carries: []string{"submissionError", "lastSubmissionTime", "retryAfter"},
	},
	"WHATSAPP_MESSAGE": {
		id: "messageId", policy: "whatsapp-message", tasks: []hospitalTask{{"send-whatsapp-message", "1"}},
		failure: "SEND_FAILED", carries: []string{"sendError", "httpStatus"},
	},
	"FAILED_JOB": {
		id: "jobId", policy: "failed-job", tasks: []hospitalTask{{"run-job", "1"}},
		failure: "JOB_FAILED", carries: []string{"jobError"},
	},
	"JOB_QUEUE": {
		id: "jobId", policy: "job-queue", tasks: []hospitalTask{{"check-dependencies", "3"}, {"run-queued-job", "1"}},
		failure: "JOB_FAILED", carries: []string{"jobError", "nonRetryable"},
	},
}

// onError are the contract's outputs on a BPMN error.
var onError = []string{"shouldRetry", "retryCount", "maxRetries", "retryReason", "errorClassification",
	"originalError", "retryPolicy", "possiblyAccepted", "deadLetterId", "responsibleTeam"}

// policyReads are the variables that a policy reads beside those of every policy: the subject's id, and what tells
// the failure.
var policyReads = map[string]struct {
	id      string
	failure []string
	// destination is the variable that names where the subject goes.
	destination string
}{
	"tiss-submission":  {"claimId", []string{"submissionError", "operadora", "retryAfter", "submissionDeadline"}, "operadora"},
	"whatsapp-message": {"messageId", []string{"sendError", "httpStatus"}, ""},
	"failed-job":       {"jobId", []string{"jobError"}, ""},
	"job-queue":        {"jobId", []string{"jobError", "maxAttempts", "delayBetweenAttempts", "nonRetryable"}, ""}, // R15
	"no-retry":         {"jobId", []string{"jobError"}, ""},
	"of-the-house":     {}, // a hospital's own policy, whose names no template knows
}

func TestModelsHaveTheContractsProcessIDs(t *testing.T) {
	var seen []string
	for _, m := range bpmn.Models() {
		if name := strings.ToUpper(strings.TrimSuffix(m.Name, ".bpmn")) + "_"; !strings.HasPrefix(name, m.ProcessID+"_") {
			t.Errorf("%s holds the process %s, expected the file's name to begin with it", m.Name, m.ProcessID)
		}
		seen = append(seen, m.ProcessID)
	}
	slices.Sort(seen)
	if want := slices.Sorted(maps.Keys(expectations)); !slices.Equal(seen, want) {
		t.Errorf("processes %v, expected the contract's %v, each once", seen, want)
	}
}

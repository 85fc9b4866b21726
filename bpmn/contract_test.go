package bpmn_test

// expectation is what the contract says of one model.
type expectation struct {
	// id is the variable it starts with, policy the one that all its tasks of ours name.
	id, policy string
	// tasks are the hospital's own job types, with the retries each is given; the first is what follows the
	// start and every wait.
	tasks []hospitalTask
	// gated tells that a gate stands before the first, and behind it a task that asks whether it was accepted already (R33).
	gated bool
	// failure is the BPMN error of the hospital's task, carries the variables it brings, optional ones too.
	failure string
	carries []string
	// forgets are the variables beside these that count for one try only.
	forgets []string
	// date or duration is what the wait goes by: the absolute time, or the engine's clock where the policy
	// has delays below five minutes.
	date, duration string
}

type hospitalTask struct{ jobType, retries string }

// expectations of each process that the contract names; there is no other.
var expectations = map[string]expectation{
	"SUB_06": {
		id: "claimId", policy: "tiss-submission", tasks: []hospitalTask{{"submit-claim", "1"}}, gated: true,
		failure: "SUBMISSION_FAILED", carries: []string{"submissionError", "lastSubmissionTime"},
		date: "=nextRetryTime",
	},
	"WHATSAPP_MESSAGE": {
		id: "messageId", policy: "whatsapp-message", tasks: []hospitalTask{{"send-whatsapp-message", "1"}},
		failure: "SEND_FAILED", carries: []string{"sendError", "httpStatus"},
		duration: "=backoffDuration",
	},
	"FAILED_JOB": {
		id: "jobId", policy: "failed-job", tasks: []hospitalTask{{"run-job", "1"}},
		failure: "JOB_FAILED", carries: []string{"jobError"},
		duration: "=backoffDuration",
	},
	"JOB_QUEUE": {
		id: "jobId", policy: "job-queue", tasks: []hospitalTask{{"check-dependencies", "3"}, {"run-queued-job", "1"}},
		failure: "JOB_FAILED", carries: []string{"jobError", "nonRetryable"}, forgets: []string{"openDependencies"},
		duration: "=backoffDuration",
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

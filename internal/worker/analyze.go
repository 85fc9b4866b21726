package worker

import (
	"context"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/redact"
)

// The job types of the contract.
const (
	AnalyzeRetry           = "analyze-retry"            // RN-BIL-005
	RetrySubmissionBackoff = "retry-submission-backoff" // RN-BIL-004
	RecordRetryOutcome     = "record-retry-outcome"
	RetryReview            = "retry-review"
)

const (
	// maxFoundBytes of a refused value in a message: what was expected is to be read behind it.
	maxFoundBytes = 300
	// maxErrorBytes of an error text in a log line.
	maxErrorBytes = 1000
	// correctVariable and correctHeader end every rejection (R11). An incident's job keeps its headers.
	correctVariable = "; correct the variable and resolve the incident"
	correctHeader   = "; correct the task's header in the model, deploy it and move the instance to it"
)

// Analyzer is the use case of both rules: what follows a failed submission?
type Analyzer struct {
	policies decision.Policies
	rule     decision.BusinessRule
	now      func() time.Time
	hooks    Hooks
	log      *zap.Logger
}

// NewAnalyzer decides by policies and reports as rule names things. now gives the instant of analysis.
func NewAnalyzer(policies decision.Policies, rule decision.BusinessRule, now func() time.Time, hooks Hooks, log *zap.Logger) *Analyzer {
	return &Analyzer{policies, rule, now, hooks, log}
}

// Handle is one job's way: parse, recall, decide, record, reply. Recalling and recording are the
// journal's; until it is there nothing is remembered and every decision is fresh.
func (a *Analyzer) Handle(_ context.Context, j *Job) Reply {
	started := time.Now()
	policy, failure, rejection := a.parse(j)
	if rejection != nil {
		return a.reject(j, rejection)
	}
	now := a.now()
	d := decision.Decide(&failure, policy, decision.Past{}, now)
	if d.Rejection != nil {
		return a.reject(j, d.Rejection)
	}
	a.report(j, &d, &failure, now, time.Since(started))
	return replyTo(j, &d, &failure)
}

func (a *Analyzer) parse(j *Job) (*decision.Policy, decision.Failure, *decision.Rejection) {
	name, rejection := policyHeader(j)
	if rejection != nil {
		return nil, decision.Failure{}, rejection
	}
	policy, rejection := a.policies.Find(name)
	if rejection != nil {
		return nil, decision.Failure{}, rejection
	}
	values, rejection := readVariables(j, a.hooks)
	if rejection != nil {
		return nil, decision.Failure{}, rejection
	}
	failure, rejection := policy.Read(decision.Variables{
		ID:                 values.get(policy.IDVariable),
		Error:              values.get(policy.ErrorVariable),
		RetryCount:         values.get(decision.RetryCountVariable),
		LastSubmissionTime: values.get(decision.LastSubmissionVariable),
	})
	return policy, failure, rejection
}

// replyTo is the answer that carries d to the process.
func replyTo(j *Job, d *decision.Decision, f *decision.Failure) Reply {
	if d.ShouldRetry() {
		return Reply{Action: Completed, Variables: string(outputs(d, f).end())}
	}
	variables := outputs(d, f).text("deadLetterId", deadLetterID(j, d, f)).end()
	return Reply{Action: Thrown, Error: BPMNError{Code: string(d.Outcome), Message: d.RetryReason, Variables: string(variables)}}
}

// reject fails the job with no retries left: the engine raises an incident that says what is wrong,
// and nothing is lost (R11).
func (a *Analyzer) reject(j *Job, r *decision.Rejection) Reply {
	return rejectJob(j, r, a.hooks, a.log)
}

func rejectJob(j *Job, r *decision.Rejection, hooks Hooks, log *zap.Logger) Reply {
	message := RejectionMessage(r) + correctVariable
	if r.Variable == PolicyHeader || r.Variable == taskHeaders {
		message = RejectionMessage(r) + correctHeader
	}
	hooks.Rejected(j.Type, r.Code)
	log.Warn("input rejected", zap.String("event", "input_rejected"), zap.String("rejection", string(r.Code)),
		zap.String("detail", message), zap.String("jobType", j.Type), zap.Int64("jobKey", j.Key),
		zap.Int64("processInstanceKey", j.ProcessInstanceKey), zap.String("tenantId", j.TenantID))
	return Reply{Action: Failed, Failure: Failure{Retries: 0, Message: message}}
}

// RejectionMessage is one line that says what was refused, with nothing personal in it.
func RejectionMessage(r *decision.Rejection) string {
	clean := *r
	clean.Found = redact.Line(r.Found, maxFoundBytes) // nothing else of it comes from the process
	return clean.Error()
}

// report feeds the metrics and writes the decision's one log line (RN-BIL-005 §13.4).
func (a *Analyzer) report(j *Job, d *decision.Decision, f *decision.Failure, now time.Time, took time.Duration) {
	a.hooks.Decided(j.Type, d, took)
	text := redact.Line(f.Error, maxErrorBytes)
	event := d.Event(a.rule, text)
	ahead := f.LastSubmission.After(now)
	level := zap.InfoLevel
	switch {
	case d.Outcome == decision.MaxRetriesExceeded: // RN-BIL-005 §2.1.1
		level = zap.ErrorLevel
	case d.Outcome == decision.PermanentError, d.ErrorClassification == decision.Unknown, ahead: // R1.6, R23
		level = zap.WarnLevel
	}
	line := a.log.Check(level, d.RetryReason)
	if line == nil {
		return
	}
	fields := append(make([]zap.Field, 0, 16),
		zap.String("event", event.LogName()),
		zap.String("claimId", d.SubjectID),
		zap.String("submissionError", text),
		zap.String("errorClassification", string(d.ErrorClassification)),
		zap.String("matchedRule", d.MatchedRule),
		zap.Int64("retryCount", d.RetryCount),
		zap.Int64("maxRetries", d.MaxRetries),
		zap.String("retryPolicy", d.Policy),
		zap.Float64("executionTimeMs", float64(took.Microseconds())/1000),
		zap.Int64("jobKey", j.Key),
		zap.Int64("processInstanceKey", j.ProcessInstanceKey),
	)
	if d.ShouldRetry() {
		fields = append(fields,
			zap.Int64("backoffMinutes", d.Backoff.Minutes()), zap.String("nextRetryTime", instant(d.NextRetryTime)))
	} else {
		fields = append(fields, zap.String("responsibleTeam", string(d.Team)))
	}
	if ahead {
		fields = append(fields, zap.String("warning", "lastSubmissionTime lies in the future and is ignored"))
	}
	line.Write(fields...)
}

package worker

import (
	"cmp"
	"context"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// refuse records that a job's input was rejected, then rejects the job (R11).
func (u *useCase) refuse(ctx context.Context, j *Job, r *decision.Rejection) Reply {
	refusal := journal.Refusal{
		Subject: journal.Subject{Tenant: tenant(j)}, Rule: u.rule,
		JobKey: j.Key, ProcessInstanceKey: j.ProcessInstanceKey, Rejection: r,
	}
	if err := u.memory.Reject(ctx, &refusal); err != nil {
		return u.unrecorded(ctx, j)
	}
	return u.rejectJob(j, r)
}

// rejectJob fails the job with no retries left: the engine raises an incident that says what is wrong, and
// nothing is lost (R11).
func (u *useCase) rejectJob(j *Job, r *decision.Rejection) Reply {
	message := journal.RejectionMessage(r)
	switch r.Variable {
	case PolicyHeader, taskHeaders:
		message += correctHeader
	case remembered:
		message += correctJournal
	default:
		message += correctVariable
	}
	u.hooks.Rejected(j.Type, r.Code)
	u.log.Warn("input rejected", zap.String("event", "input_rejected"), zap.String("rejection", string(r.Code)),
		zap.String("detail", message), zap.String("jobType", j.Type), zap.Int64("jobKey", j.Key),
		zap.Int64("processInstanceKey", j.ProcessInstanceKey), zap.String("tenantId", j.TenantID))
	return Reply{Action: Failed, Failure: Failure{Retries: 0, Message: message}}
}

// tenant of a job; an engine that knows none names none.
func tenant(j *Job) string { return cmp.Or(j.TenantID, journal.DefaultTenant) }

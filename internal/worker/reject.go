package worker

import (
	"cmp"
	"context"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// refuse records that a job's input was rejected, then rejects the job (R11). rule is empty for a job type that
// is no rule's.
func refuse(
	ctx context.Context, memory *journal.Journal, j *Job, rule decision.BusinessRule, r *decision.Rejection,
	hooks Hooks, log *zap.Logger,
) Reply {
	refusal := journal.Refusal{
		Subject: journal.Subject{Tenant: tenant(j)}, Rule: rule,
		JobKey: j.Key, ProcessInstanceKey: j.ProcessInstanceKey, Rejection: r,
	}
	if err := memory.Reject(ctx, &refusal); err != nil {
		return unrecorded(ctx, j, hooks)
	}
	return rejectJob(j, r, hooks, log)
}

// rejectJob fails the job with no retries left: the engine raises an incident that says what is wrong, and
// nothing is lost (R11).
func rejectJob(j *Job, r *decision.Rejection, hooks Hooks, log *zap.Logger) Reply {
	message := journal.RejectionMessage(r)
	switch r.Variable {
	case PolicyHeader, taskHeaders:
		message += correctHeader
	case remembered:
		message += correctJournal
	default:
		message += correctVariable
	}
	hooks.Rejected(j.Type, r.Code)
	log.Warn("input rejected", zap.String("event", "input_rejected"), zap.String("rejection", string(r.Code)),
		zap.String("detail", message), zap.String("jobType", j.Type), zap.Int64("jobKey", j.Key),
		zap.Int64("processInstanceKey", j.ProcessInstanceKey), zap.String("tenantId", j.TenantID))
	return Reply{Action: Failed, Failure: Failure{Retries: 0, Message: message}}
}

// tenant of a job; an engine that knows none names none.
func tenant(j *Job) string { return cmp.Or(j.TenantID, journal.DefaultTenant) }

package worker

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// OutcomeVariable tells how the retried work ended: success (the default) or failure.
const OutcomeVariable = "retryOutcome"

// OutcomeRecorder is the use case of record-retry-outcome: the process reports what came of a retry.
type OutcomeRecorder struct {
	policies decision.Policies
	memory   *journal.Journal
	hooks    Hooks
	log      *zap.Logger
}

// NewOutcomeRecorder knows the subjects of policies and tells memory what became of them.
func NewOutcomeRecorder(policies decision.Policies, memory *journal.Journal, hooks Hooks, log *zap.Logger) *OutcomeRecorder {
	return &OutcomeRecorder{policies, memory, hooks, log}
}

// Handle records the outcome and completes the job, or rejects one that names no subject or an outcome that
// does not exist. An outcome of which the journal knows no failure changes nothing.
func (o *OutcomeRecorder) Handle(ctx context.Context, j *Job) Reply {
	outcome, rejection := o.read(j)
	if rejection != nil {
		return refuse(ctx, o.memory, j, "", rejection, o.hooks, o.log)
	}
	concluded, err := o.memory.Conclude(ctx, outcome)
	switch {
	case errors.Is(err, journal.ErrInvalid):
		return refuse(ctx, o.memory, j, "", unrecordable(err), o.hooks, o.log)
	case err != nil:
		return release(j, notRecorded)
	case concluded.Changed:
		o.log.Info("outcome recorded", zap.String("event", "retry_outcome_recorded"), zap.String("claimId", outcome.Subject.ID),
			zap.String("retryPolicy", outcome.Subject.Policy), zap.String("state", string(concluded.Episode.State)),
			zap.Int64("retryCount", concluded.Episode.Retries), zap.Int64("jobKey", j.Key), zap.Int64("processInstanceKey", j.ProcessInstanceKey))
	}
	return Reply{Action: Completed, Variables: "{}"}
}

func (o *OutcomeRecorder) read(j *Job) (*journal.Outcome, *decision.Rejection) {
	name, rejection := policyHeader(j)
	if rejection != nil {
		return nil, rejection
	}
	policy, rejection := o.policies.Find(name)
	if rejection != nil {
		return nil, rejection
	}
	values, rejection := readVariables(j, o.hooks)
	if rejection != nil {
		return nil, rejection
	}
	f, rejection := policy.Read(decision.Variables{ID: values.get(policy.IDVariable)})
	if rejection != nil {
		return nil, rejection
	}
	success, rejection := decision.ReadOutcome(values.get(OutcomeVariable))
	return &journal.Outcome{
		Subject: journal.Subject{Tenant: tenant(j), Policy: policy.Name, ID: f.ID}, Success: success, Team: policy.LimitTeam,
		JobKey: j.Key, ElementInstanceKey: j.ElementInstanceKey, ProcessInstanceKey: j.ProcessInstanceKey,
	}, rejection
}

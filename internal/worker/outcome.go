package worker

import (
	"context"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
)

// OutcomeVariable tells how the retried work ended: success (the default) or failure.
const OutcomeVariable = "retryOutcome"

// OutcomeRecorder is the use case of record-retry-outcome: the process reports what came of a retry.
// It checks what it is told and completes; closing the episode is the journal's part.
type OutcomeRecorder struct {
	policies decision.Policies
	hooks    Hooks
	log      *zap.Logger
}

// NewOutcomeRecorder knows the subjects of policies.
func NewOutcomeRecorder(policies decision.Policies, hooks Hooks, log *zap.Logger) *OutcomeRecorder {
	return &OutcomeRecorder{policies, hooks, log}
}

// Handle completes the job, or rejects one that names no subject or an outcome that does not exist.
func (o *OutcomeRecorder) Handle(_ context.Context, j *Job) Reply {
	if rejection := o.check(j); rejection != nil {
		return rejectJob(j, rejection, o.hooks, o.log)
	}
	return Reply{Action: Completed, Variables: "{}"}
}

func (o *OutcomeRecorder) check(j *Job) *decision.Rejection {
	name, rejection := policyHeader(j)
	if rejection != nil {
		return rejection
	}
	policy, rejection := o.policies.Find(name)
	if rejection != nil {
		return rejection
	}
	values, rejection := readVariables(j, o.hooks)
	if rejection != nil {
		return rejection
	}
	if _, rejection = policy.Read(decision.Variables{ID: values.get(policy.IDVariable)}); rejection != nil {
		return rejection
	}
	return decision.ReadOutcome(values.get(OutcomeVariable))
}

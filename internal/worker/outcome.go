package worker

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// OutcomeVariable says how the retried work ended: success (the default), failure or accepted. protocolVariable is the
// other side's number for what it accepted.
const (
	OutcomeVariable  = "retryOutcome"
	protocolVariable = "protocolNumber"
)

// OutcomeRecorder is the use case of record-retry-outcome: a process reports the result of a retry.
type OutcomeRecorder struct {
	useCase
}

// NewOutcomeRecorder returns the use case; memory records the outcomes of the policies' subjects.
func NewOutcomeRecorder(
	policies func() decision.Policies, memory *journal.Journal, hooks Hooks, log *zap.Logger,
) *OutcomeRecorder {
	return &OutcomeRecorder{useCase{policies, "", memory, hooks, log}}
}

// Begin returns an activation under the policies in force.
func (o *OutcomeRecorder) Begin() Activation {
	return o.begin(func(ps decision.Policies) []string {
		return append(ps.IDVariables(), OutcomeVariable, protocolVariable)
	}, o.handle)
}

// handle records the outcome and completes the job, or rejects a job with an invalid subject or outcome. An outcome
// without a recorded failure changes nothing.
func (o *OutcomeRecorder) handle(ctx context.Context, j *Job, policies decision.Policies) Reply {
	policy, vs, reply, ok := o.open(ctx, j, policies)
	if !ok {
		return reply
	}
	outcome, rejection := readOutcome(j, policy, vs)
	if rejection != nil {
		return o.refuse(ctx, j, rejection)
	}
	concluded, err := o.memory.Conclude(ctx, outcome)
	switch {
	case errors.Is(err, journal.ErrInvalid):
		return o.refuse(ctx, j, unrecordable(err))
	case err != nil:
		return release(j, notRecorded)
	case concluded.Changed:
		o.log.Info("outcome recorded", zap.String("event", "retry_outcome_recorded"),
			SubjectField(policy, outcome.Subject.ID),
			zap.String("retryPolicy", outcome.Subject.Policy), zap.String("state", string(concluded.Episode.State)),
			zap.Int64("retryCount", concluded.Episode.Retries), zap.Int64("jobKey", j.Key),
			zap.Int64("processInstanceKey", j.ProcessInstanceKey))
	}
	return Reply{Action: Completed, Variables: "{}"}
}

func readOutcome(j *Job, policy *decision.Policy, vs values) (*journal.Outcome, *decision.Rejection) {
	f, rejection := policy.Read(decision.Variables{ID: vs.get(policy.IDVariable)})
	if rejection != nil {
		return nil, rejection
	}
	result, rejection := decision.ReadResult(vs.get(OutcomeVariable))
	o := &journal.Outcome{
		Subject: journal.Subject{Tenant: tenant(j), Policy: policy.Name, ID: f.ID}, Team: policy.LimitTeam,
		JobKey: j.Key, ElementInstanceKey: j.ElementInstanceKey, ProcessInstanceKey: j.ProcessInstanceKey,
		LockedUntil: j.LockedUntil,
	}
	o.Ended(result, protocolNumber(vs.get(protocolVariable)))
	return o, rejection
}

// protocolNumber reads a text or a whole number. Anything else is ignored, so that the outcome is not lost.
func protocolNumber(v decision.Value) (protocol string) {
	if json.Unmarshal([]byte(v), &protocol) != nil && strings.Trim(string(v), "0123456789") == "" {
		protocol = string(v)
	}
	if !decision.IsProtocol(protocol) {
		return ""
	}
	return protocol
}

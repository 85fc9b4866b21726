package worker

import (
	"context"
	"encoding/json"
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

// recordOutcome is the use case of record-retry-outcome: a process reports the result of a retry. An outcome without a
// recorded failure changes nothing.
func (t *task) recordOutcome(ctx context.Context) (Reply, error) {
	policy, vs, err := t.open()
	if err != nil {
		return Reply{}, err
	}
	f, rejection := policy.Read(decision.Variables{ID: vs.get(policy.IDVariable)})
	if rejection != nil {
		return Reply{}, rejection
	}
	result, rejection := decision.ReadResult(vs.get(OutcomeVariable))
	if rejection != nil {
		return Reply{}, rejection
	}
	outcome := &journal.Outcome{
		Subject: t.subject(policy.Name, f.ID), Team: policy.LimitTeam,
		JobKey: t.Key, ElementInstanceKey: t.ElementInstanceKey, ProcessInstanceKey: t.ProcessInstanceKey,
		LockedUntil: t.LockedUntil,
	}
	outcome.Ended(result, protocolNumber(vs.get(protocolVariable)))
	concluded, err := t.Memory.Conclude(ctx, outcome)
	if err != nil {
		return Reply{}, err
	}
	if concluded.Changed {
		t.Log.Info("outcome recorded", zap.String("event", "retry_outcome_recorded"),
			SubjectField(policy, f.ID), zap.String("retryPolicy", policy.Name),
			zap.String("state", string(concluded.Episode.State)), zap.Int64("retryCount", concluded.Episode.Retries),
			zap.Int64("jobKey", t.Key), zap.Int64("processInstanceKey", t.ProcessInstanceKey))
	}
	return Reply{Action: Completed, Variables: "{}"}, nil
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

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// DeadLetterVariable names the dead letter that a process waits for.
const DeadLetterVariable = "deadLetterId"

// awaitReview is the use case of retry-review: a process waits for a person's decision on a dead letter. Its job is
// recorded, and stays locked until the decision is delivered (ReviewSink), even across restarts.
func (t *task) awaitReview(ctx context.Context) (Reply, error) {
	vs, err := t.readVariables()
	if err != nil {
		return Reply{}, err
	}
	id, err := readDeadLetterID(vs.get(DeadLetterVariable))
	if err != nil {
		return Reply{}, err
	}
	of, found, err := t.Letters.DeadLetter(ctx, id)
	switch {
	case err != nil:
		return Reply{}, err
	case !found, of.Subject.Tenant != t.tenant(): // another tenant's does not exist here
		return Reply{}, unknownLetter(strconv.Quote(id))
	}
	listed, err := header(t.Job, decisionsHeader)
	if err == nil {
		err = t.mistaken(vs, &of.Subject)
	}
	if err != nil {
		return Reply{}, err
	}
	d, err := t.Memory.ReviewSeen(ctx, &journal.ReviewJob{Subject: of.Subject, DeadLetter: id, JobKey: t.Key,
		ProcessInstanceKey: t.ProcessInstanceKey, Accepts: listsAccepted(listed)})
	switch {
	case errors.Is(err, journal.ErrDeadLetterUnknown):
		return Reply{}, unknownLetter(strconv.Quote(id))
	case err != nil:
		return Reply{}, err
	case d.Delivery == journal.DeliveryPending:
		t.Answered()
		return Reply{Action: held}, nil
	}
	t.Log.Info("a process waits for a review", zap.String("event", "review_waiting"), zap.String("deadLetterId", d.ID),
		zap.String("retryPolicy", of.Subject.Policy), zap.Int64("jobKey", t.Key),
		zap.Int64("processInstanceKey", t.ProcessInstanceKey))
	return t.keep(ctx), nil
}

// decisionsHeader lists the decisions that the process accepts, separated by commas; by default reprocess and discard
// (R33).
const decisionsHeader = "decisions"

func listsAccepted(decisions string) bool {
	return slices.ContainsFunc(strings.Split(decisions, ","), func(one string) bool {
		return strings.TrimSpace(one) == string(decision.Accepted)
	})
}

// mistaken returns the rejection of a process that waits with another subject's dead letter. It returns nil if they
// match, or if that is unknown: the policy does not exist here, or the process names no subject.
func (t *task) mistaken(vs values, s *journal.Subject) error {
	policy := t.policies[s.Policy]
	if policy == nil {
		return nil
	}
	given := vs.get(policy.IDVariable)
	if given == "" || given == "null" {
		return nil
	}
	f, rejection := policy.Read(decision.Variables{ID: given})
	switch {
	case rejection != nil:
		return rejection
	case f.ID == s.ID:
		return nil
	}
	return &decision.Rejection{Code: policy.InvalidID, Variable: policy.IDVariable, Found: strconv.Quote(f.ID),
		Expected: strconv.Quote(s.ID) + ", to which the dead letter of " + DeadLetterVariable + " belongs"}
}

// readDeadLetterID reads the variable deadLetterId.
func readDeadLetterID(v decision.Value) (id string, err error) {
	switch {
	case v == "" || v == "null":
		err = unknownLetter("missing")
	case json.Unmarshal([]byte(v), &id) != nil:
		err = unknownLetter("no text")
	case !deadletter.IsID(id):
		err = unknownLetter(strconv.Quote(id))
	}
	return id, err
}

func unknownLetter(found string) *decision.Rejection {
	return invalid(DeadLetterVariable, found, "the id of a dead letter in this worker's journal, as the BPMN errors "+
		string(decision.MaxRetriesExceeded)+" and "+string(decision.PermanentError)+" bring it")
}

package worker

import (
	"context"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// useCase is what the handlers of all job types have.
type useCase struct {
	policies func() decision.Policies // those in force
	// rule that rejections are recorded by; empty for a job type that is no rule's.
	rule   decision.BusinessRule
	memory *journal.Journal
	hooks  Hooks
	log    *zap.Logger
}

// begin is an activation under the policies that are in force now: the variables that a poll fetches are read, and its jobs
// handled, by the same catalogue.
func (u *useCase) begin(
	variables func(decision.Policies) []string, handle func(context.Context, *Job, decision.Policies) Reply,
) Activation {
	policies := u.policies()
	return Activation{
		Variables: variables(policies),
		Handler:   func(ctx context.Context, j *Job) Reply { return handle(ctx, j, policies) },
	}
}

// open returns what handlers begin with: the policy that the job's task names, and its variables. policies are those of
// its activation. Where ok is false the job gets reply. One whose policy came into force after its activation goes back,
// and the next one fetches what it reads. There is no circle in that, for the next one knows it. A rejection names the
// policies in force.
func (u *useCase) open(
	ctx context.Context, j *Job, policies decision.Policies,
) (policy *decision.Policy, vs values, reply Reply, ok bool) {
	name, rejection := policyHeader(j)
	if rejection != nil {
		return nil, nil, u.refuse(ctx, j, rejection), false
	}
	policy, unknown := policies.Find(name)
	if unknown != nil {
		if _, rejection = u.policies().Find(name); rejection != nil {
			return nil, nil, u.refuse(ctx, j, rejection), false
		}
		return nil, nil, release(j, outdated), false
	}
	if vs, rejection = u.readVariables(j); rejection != nil {
		return nil, nil, u.refuse(ctx, j, rejection), false
	}
	return policy, vs, reply, true
}

// outdated is why a job goes back whose policy is newer than its activation.
const outdated = "handed back: its policy came into force after this job was activated"

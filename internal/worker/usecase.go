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

// begin starts an activation under the policies in force now: the variables that its poll fetches, those that list
// names and more, are read, and its jobs decided, by the same catalogue. handle gets each job with the policy that its
// task names and its variables. A job whose policy came into force after the activation goes back, and the next one
// fetches what it reads. There is no circle in that, for the next one knows it. A rejection names the policies in force.
func (u *useCase) begin(
	list func(decision.Policies) []string, handle func(context.Context, *Job, *decision.Policy, values) Reply,
	more ...string,
) Activation {
	policies := u.policies()
	return Activation{
		Variables: append(list(policies), more...),
		Handler: func(ctx context.Context, j *Job) Reply {
			name, rejection := policyHeader(j)
			if rejection != nil {
				return u.refuse(ctx, j, rejection)
			}
			policy, unknown := policies.Find(name)
			if unknown != nil {
				if _, rejection = u.policies().Find(name); rejection != nil {
					return u.refuse(ctx, j, rejection)
				}
				return release(j, outdated)
			}
			vs, rejection := u.readVariables(j)
			if rejection != nil {
				return u.refuse(ctx, j, rejection)
			}
			return handle(ctx, j, policy, vs)
		},
	}
}

// outdated is why a job goes back whose policy is newer than its activation.
const outdated = "handed back: its policy came into force after this job was activated"

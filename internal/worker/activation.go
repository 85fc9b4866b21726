package worker

import "retry-worker/internal/decision"

// activated are the policies of one activation: the variables that its poll fetches are read, and its jobs decided,
// by the same catalogue. current gives those in force.
type activated struct {
	policies decision.Policies
	current  func() decision.Policies
}

// begin is an activation under the policies in force now.
func begin(current func() decision.Policies) activated { return activated{current(), current} }

// policy is the one that the job's task names. Without one, and without a rejection, the job goes back: the policy came
// into force after its activation, and the next one fetches what it reads. There is no circle in that, for the next
// one knows it. A rejection names the policies in force.
func (a *activated) policy(j *Job) (*decision.Policy, *decision.Rejection) {
	name, rejection := policyHeader(j)
	if rejection != nil {
		return nil, rejection
	}
	if p, unknown := a.policies.Find(name); unknown == nil {
		return p, nil
	}
	_, rejection = a.current().Find(name)
	return nil, rejection
}

// outdated is why a job goes back whose policy is newer than its activation.
const outdated = "handed back: its policy came into force after this job was activated"

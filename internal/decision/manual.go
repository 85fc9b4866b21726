package decision

// Manual is the backoff of a retry that a person asks for (R17), after count retries made: p's own, with the draw that the
// same retry would have had (R6). Beyond the ladder its last delay holds (R14: 30 s for failed-job). own is the policy
// that the job brought, if any. The total limit (R20) binds the worker, not a person.
func (p *Policy) Manual(subject string, own OwnPolicy, count int64) Backoff {
	_, rule := p.Limits(own)
	return rule.After(p.draw(subject, count), count)
}

package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
	"retry-worker/internal/kpi"
	"retry-worker/internal/worker"
)

// decide answers POST /api/v1/decisions with what `decide -o json` prints: with what was taught,
// where the journal is open. It remembers nothing.
func (s *API) decide(c *call) (any, error) {
	policies, policy, now := s.policies(), c.text("policy"), c.instant("now")
	v := c.variables(policies, policy)
	if c.wrong() != nil {
		return nil, c.wrong()
	}
	if now.IsZero() {
		now = s.now()
	}
	var unread error
	d, flat := worker.DryRun(policies, policy, v, now, func(p *decision.Policy, f *decision.Failure, redacted string) {
		if c.Journal != nil && c.DeadLetters != nil {
			unread = c.Foresee(c.Context(), p, f, redacted)
		}
	})
	if unread != nil {
		return nil, unread
	}
	if d.Rejection == nil {
		flat = worker.WithEvidence(flat, worker.Explain(policies, policy, v))
	} else {
		c.status = http.StatusUnprocessableEntity
	}
	return flat, nil
}

// variables are what the policy of that name decides by: the fields that every policy has, and the object variables
// with what only some read, by the names that the process has for them.
func (in *input) variables(policies decision.Policies, name string) decision.Variables {
	var own map[string]json.RawMessage
	if !in.read("variables", &own) {
		in.invalid("variables", "variables is no JSON object, expected one, or none")
	}
	v := decision.Variables{
		ID: in.value("id"), Error: in.value("error"), RetryCount: in.value("retryCount"), HTTPStatus: in.value("httpStatus"),
	}
	p, unknown := policies.Find(name)
	if unknown != nil {
		return v // which the decision says
	}
	var known []string
	if p.Own != nil {
		known = []string{p.Own.MaxAttempts, p.Own.Delay, p.Own.NonRetryable}
		v.MaxAttempts, v.Delay = decision.Value(own[known[0]]), decision.Value(own[known[1]])
		v.NonRetryable = decision.Value(own[known[2]])
	}
	known = slices.DeleteFunc(known, func(name string) bool { return name == "" })
	for name := range own { // a slip in a name would go unseen
		if !slices.Contains(known, name) {
			in.refuse(invalid("unknown_variable", "variables has %.60q, which the policy %s does not read, expected %s",
				name, p.Name, oneOf(known, "none")))
		}
	}
	return v
}

// KPIs is what the API, and `kpi -o json`, answer with.
type KPIs struct {
	KPIs []kpi.KPI `json:"kpis"`
}

// kpis answers GET /api/v1/kpis.
func (s *API) kpis(c *call) (any, error) {
	all, err := audit.KPIs(c.Context(), c, s.policies().Names(), c.name("policy"), s.now())
	if unknown, is := errors.AsType[*audit.UnknownPolicyError](err); is {
		err = invalid("unknown_policy", "%s", unknown)
	}
	return KPIs{all}, err
}

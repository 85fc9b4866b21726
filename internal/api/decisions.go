package api

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strings"

	"retry-worker/internal/decision"
	"retry-worker/internal/worker"
)

// decide answers POST /api/v1/decisions with what `decide -o json` prints: it needs no journal, and remembers nothing.
func (s *API) decide(w http.ResponseWriter, r *http.Request) {
	f, bad := readFields(w, r, "policy", "id", "error", "retryCount", "httpStatus", "variables", "now")
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	policies := s.policies()
	policy, bad := f.text("policy")
	now, badNow := f.instant("now")
	v, badVariables := f.variables(policies, policy)
	if bad := firstOf(bad, badNow, f.httpStatus(), badVariables); bad != nil {
		s.refuse(w, bad)
		return
	}
	if now.IsZero() {
		now = s.now()
	}
	d, flat := worker.DryRun(policies, policy, v, now)
	status := http.StatusOK
	if d.Rejection != nil {
		status = http.StatusUnprocessableEntity
	} else {
		flat = worker.WithEvidence(flat, worker.Explain(policies, policy, v))
	}
	s.write(w, status, flat)
}

// httpStatus checks the field of that name, which only some policies read; 0 is none (R15).
func (f fields) httpStatus() *refusal {
	var n *float64
	raw := f["httpStatus"]
	if len(raw) == 0 || json.Unmarshal(raw, &n) == nil && (n == nil || *n == 0 || *n >= 100 && *n <= 599 && *n == math.Trunc(*n)) {
		return nil
	}
	return invalid("invalid_http_status", "httpStatus is %.60s, expected a whole number from 100 to 599, or none", raw)
}

// variables are what the policy of that name decides by: the fields that every policy has, and the object variables
// with what only some read, by the names that the process has for them.
func (f fields) variables(policies decision.Policies, name string) (decision.Variables, *refusal) {
	var own map[string]json.RawMessage
	if raw := f["variables"]; len(raw) > 0 && json.Unmarshal(raw, &own) != nil {
		return decision.Variables{}, invalid("invalid_variables", "variables is no JSON object, expected one, or none")
	}
	v := decision.Variables{ID: f.value("id"), Error: f.value("error"), RetryCount: f.value("retryCount"), HTTPStatus: f.value("httpStatus")}
	p, unknown := policies.Find(name)
	if unknown != nil {
		return v, nil // which the decision says
	}
	var known []string
	if p.Own != nil {
		v.MaxAttempts, v.Delay, v.NonRetryable = decision.Value(own[p.Own.MaxAttempts]), decision.Value(own[p.Own.Delay]), decision.Value(own[p.Own.NonRetryable])
		known = []string{p.Own.MaxAttempts, p.Own.Delay, p.Own.NonRetryable}
	}
	for name := range own {
		if !slices.Contains(known, name) || name == "" {
			return v, unreadVariable(p, name, known)
		}
	}
	return v, nil
}

// unreadVariable refuses a variable that the policy does not read: a slip in its name would go unseen.
func unreadVariable(p *decision.Policy, name string, known []string) *refusal {
	known = slices.DeleteFunc(known, func(name string) bool { return name == "" })
	if len(known) == 0 {
		return invalid("unknown_variable", "variables has %.60q, expected none: the policy %s reads nothing beyond the other fields", name, p.Name)
	}
	return invalid("unknown_variable", "variables has %.60q, expected of %s, which the policy %s reads", name, strings.Join(known, ", "), p.Name)
}

package api

import (
	"errors"
	"net/http"

	"retry-worker/internal/audit"
	"retry-worker/internal/kpi"
)

// KPIs is what the API, and `kpi -o json`, answer with.
type KPIs struct {
	KPIs []kpi.KPI `json:"kpis"`
}

// kpis answers GET /api/v1/kpis?policy=.
func (s *API) kpis(w http.ResponseWriter, r *http.Request, m *Journal) {
	q, bad := readParameters(r, "policy")
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	all, err := audit.KPIs(r.Context(), m, s.policies().Names(), q["policy"], s.now())
	if unknown, is := errors.AsType[*audit.UnknownPolicyError](err); is {
		s.fail(w, http.StatusUnprocessableEntity, "unknown_policy", unknown.Error())
		return
	}
	if err != nil {
		s.unreadable(w, r, err)
		return
	}
	s.write(w, http.StatusOK, KPIs{all})
}

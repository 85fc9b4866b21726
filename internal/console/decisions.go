package console

import (
	"encoding/json"
	"net/http"

	"retry-worker/internal/decision"
	"retry-worker/internal/worker"
)

// decide answers POST /api/v1/decisions with what `decide -o json` prints: it needs no journal, and remembers nothing.
func (s *API) decide(w http.ResponseWriter, r *http.Request) {
	f, bad := readFields(w, r, "policy", "id", "error", "retryCount", "httpStatus", "now")
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	policy, bad := f.text("policy")
	now, badNow := f.instant("now")
	for _, bad := range []*refusal{bad, badNow, f.httpStatus()} {
		if bad != nil {
			s.refuse(w, bad)
			return
		}
	}
	if now.IsZero() {
		now = s.now()
	}
	v := decision.Variables{ID: f.value("id"), Error: f.value("error"), RetryCount: f.value("retryCount")}
	d, flat := worker.DryRun(s.policies, policy, v, now)
	status := http.StatusOK
	if d.Rejection != nil {
		status = http.StatusUnprocessableEntity
	}
	s.write(w, status, flat)
}

// httpStatus checks the field of that name, which only some policies read.
func (f fields) httpStatus() *refusal {
	var n *int
	raw := f["httpStatus"]
	if len(raw) == 0 || json.Unmarshal(raw, &n) == nil && (n == nil || *n >= 100 && *n <= 599) {
		return nil
	}
	return invalid("invalid_http_status", "httpStatus is %.60s, expected a whole number from 100 to 599, or none", raw)
}

package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

// Outcome is what became of a subject when an outcome was told.
type Outcome struct {
	Tenant string `json:"tenant"`
	Policy string `json:"policy"`
	ID     string `json:"id"`
	// State and Status of its latest episode.
	State         journal.State  `json:"state"`
	Status        journal.Status `json:"status"`
	RetryCount    int64          `json:"retryCount"`
	NextRetryTime *string        `json:"nextRetryTime"`
	DeadLetterID  *string        `json:"deadLetterId"`
	// Changed is false where it had ended already, or where a retry lies ahead.
	Changed bool `json:"changed"`
}

// recordTime bounds recording one outcome; it is shorter than the server's own limit, so that there is an answer.
const recordTime = 10 * time.Second

// maxTenantBytes of a tenant's id.
const maxTenantBytes = 255

// conclude answers POST /api/v1/outcomes.
func (s *API) conclude(w http.ResponseWriter, r *http.Request, m *Journal) {
	f, bad := readFields(w, r, "policy", "id", "outcome", "at", "tenant")
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	o, policy, bad := s.outcome(f)
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), recordTime)
	defer cancel()
	c, err := m.Conclude(ctx, o)
	switch {
	case errors.Is(err, journal.ErrInvalid):
		s.log.Error("the API could not record an outcome", zap.Error(err))
		s.fail(w, http.StatusUnprocessableEntity, "unrecordable", "the journal cannot hold this outcome; the worker's log says why")
	case err != nil:
		s.log.Error("the API could not record an outcome", zap.Error(err))
		s.fail(w, http.StatusServiceUnavailable, journalUnavailable, "the outcome was not recorded for sure; send it again: told twice it changes nothing")
	case c.Episode.Number == 0:
		s.unknown(w)
	default:
		s.concluded(o, policy, &c)
		s.write(w, http.StatusOK, outcomeOf(o.Subject, &c, s.now()))
	}
}

// outcome is what the fields tell, of a subject of that policy.
func (s *API) outcome(f fields) (*journal.Outcome, *decision.Policy, *refusal) {
	name, bad := f.text("policy")
	if bad != nil {
		return nil, nil, bad
	}
	policy, rejection := s.policies().Find(name)
	if rejection != nil {
		return nil, nil, rejected(rejection, journal.RejectionMessage, "policy")
	}
	failure, rejection := policy.Read(decision.Variables{ID: f.value("id")})
	if rejection != nil {
		return nil, nil, rejected(rejection, journal.RejectionMessage, "id")
	}
	success, rejection := decision.ReadOutcome(f.value("outcome"))
	if rejection != nil {
		return nil, nil, rejected(rejection, journal.RejectionMessage, "outcome")
	}
	tenant, bad := f.tenant()
	if bad != nil {
		return nil, nil, bad
	}
	at, bad := f.instant("at")
	if bad == nil && at.Sub(s.now()) > journal.ClockTolerance {
		bad = invalid("invalid_at", "at is %s, which lies in the future; leave it out for now", decision.Instant(at))
	}
	return &journal.Outcome{Subject: journal.Subject{Tenant: tenant, Policy: policy.Name, ID: failure.ID}, Success: success, At: at}, policy, bad
}

func (f fields) tenant() (string, *refusal) {
	tenant, bad := f.text("tenant")
	if bad == nil && (len(tenant) > maxTenantBytes || strings.ContainsFunc(tenant, unicode.IsControl)) {
		bad = invalid("invalid_tenant", "tenant is no tenant's id, expected printable text of at most %d bytes, or none", maxTenantBytes)
	}
	return cmp.Or(tenant, journal.DefaultTenant), bad
}

// concluded writes the log's line, as for an outcome that a job reports.
func (s *API) concluded(o *journal.Outcome, p *decision.Policy, c *journal.Concluded) {
	if c.Changed {
		s.log.Info("outcome recorded", zap.String("event", "retry_outcome_recorded"), worker.SubjectField(p, o.Subject.ID),
			zap.String("retryPolicy", o.Subject.Policy), zap.String("state", string(c.Episode.State)), zap.Int64("retryCount", c.Episode.Retries))
	}
}

func outcomeOf(of journal.Subject, c *journal.Concluded, now time.Time) Outcome {
	e := &c.Episode
	o := Outcome{Tenant: of.Tenant, Policy: of.Policy, ID: of.ID, State: e.StateAt(now), RetryCount: e.Retries, Changed: c.Changed}
	o.Status = o.State.Status()
	if !e.NextRetryTime.IsZero() {
		next := decision.Instant(e.NextRetryTime)
		o.NextRetryTime = &next
	}
	if e.DeadLetter != "" {
		o.DeadLetterID = &e.DeadLetter
	}
	return o
}

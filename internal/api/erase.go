package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/journal"
)

// Erased is what an erasure left of a subject.
type Erased struct {
	Tenant string `json:"tenant"`
	Policy string `json:"policy"`
	// Pseudonym is its id from then on.
	Pseudonym string `json:"pseudonym"`
	// Records are how many were erased, Record is the one that says so.
	Records int   `json:"records"`
	Record  int64 `json:"record"`
}

// eraseTime bounds one erasure: all bulk runs are looked through.
const eraseTime = 30 * time.Second

// erase answers POST /api/v1/subjects/{policy}/{id}/erase?tenant=.
func (s *API) erase(w http.ResponseWriter, r *http.Request, m *Journal) {
	q, bad := readParameters(r, "tenant")
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	f, bad := readFields(w, r, "reason")
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	reason, bad := f.checkedReason()
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	subject, possible := subjectOf(r, q)
	if !possible {
		s.unknown(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), eraseTime)
	defer cancel()
	by := access.From(ctx).Name
	done, err := m.Erase(ctx, m.Store, journal.Erasure{Subject: subject, Reason: reason, By: by})
	if err != nil {
		s.unerased(w, err)
		return
	}
	s.log.Info("a subject was erased", zap.String("event", "subject_erased"), zap.String("by", by),
		zap.Int64("record", done.Record), zap.Int("records", done.Records))
	s.write(w, http.StatusOK, Erased{done.Pseudonym.Tenant, done.Pseudonym.Policy, done.Pseudonym.ID, done.Records, done.Record})
}

// unerased answers that an erasure did not come about.
func (s *API) unerased(w http.ResponseWriter, err error) {
	code, message, _ := strings.Cut(err.Error(), ": ")
	switch {
	case errors.Is(err, journal.ErrSubjectUnknown):
		s.fail(w, http.StatusNotFound, code, message)
	case errors.Is(err, journal.ErrSubjectBusy):
		s.fail(w, http.StatusConflict, code, message)
	default:
		s.log.Error("the API could not erase a subject", zap.Error(err))
		s.fail(w, http.StatusServiceUnavailable, journalUnavailable,
			"whether the subject was erased is not known; ask again (once it was, the answer is subject_not_found), "+
				"or see the worker's log")
	}
}

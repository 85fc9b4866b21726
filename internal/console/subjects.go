package console

import (
	"cmp"
	"net/http"

	"go.uber.org/zap"

	"retry-worker/internal/journal"
)

// Subject is a subject as the API shows it.
type Subject struct {
	Policy string `json:"policy"`
	ID     string `json:"id"`
	journal.View
}

// subject answers GET /api/v1/subjects/{policy}/{id}?tenant=.
func (s *API) subject(w http.ResponseWriter, r *http.Request) {
	reader := s.journal.Load()
	if reader == nil {
		s.fail(w, http.StatusServiceUnavailable, "journal_unavailable", "the journal is not open yet; /readyz says why")
		return
	}
	wanted := journal.Subject{
		Tenant: cmp.Or(r.URL.Query().Get("tenant"), journal.DefaultTenant), Policy: r.PathValue("policy"), ID: r.PathValue("id"),
	}
	story, found, err := (*reader).Story(r.Context(), wanted)
	switch {
	case err != nil:
		s.log.Error("the API could not read the journal", zap.Error(err))
		s.fail(w, http.StatusServiceUnavailable, "journal_unavailable", "the journal cannot be read now; the worker's log says why")
	case !found:
		s.fail(w, http.StatusNotFound, "subject_not_found", "the journal knows no failure of this subject; policy, id and tenant must be written as the process has them")
	default:
		s.write(w, http.StatusOK, Subject{wanted.Policy, wanted.ID, story.View(s.now())})
	}
}

package console

import (
	"cmp"
	"net/http"
	"strconv"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
)

// Subject is a subject as the API shows it.
type Subject struct {
	Policy string `json:"policy"`
	ID     string `json:"id"`
	journal.View
}

// subject answers GET /api/v1/subjects/{policy}/{id}?tenant=.
func (s *API) subject(w http.ResponseWriter, r *http.Request, m *memory) {
	wanted := subjectOf(r)
	story, found, err := m.Story(r.Context(), wanted)
	switch {
	case err != nil:
		s.unreadable(w, err)
	case !found:
		s.unknown(w)
	default:
		s.write(w, http.StatusOK, Subject{wanted.Policy, wanted.ID, story.View(s.now())})
	}
}

// subjectOf is the subject that a request's address names.
func subjectOf(r *http.Request) journal.Subject {
	return journal.Subject{
		Tenant: cmp.Or(r.URL.Query().Get("tenant"), journal.DefaultTenant), Policy: r.PathValue("policy"), ID: r.PathValue("id"),
	}
}

// unknown answers that the journal holds nothing of a subject.
func (s *API) unknown(w http.ResponseWriter) {
	s.fail(w, http.StatusNotFound, "subject_not_found", "the journal knows no failure of this subject; policy, id and tenant must be written as the process has them")
}

// auditPage is how many records one answer lists.
const auditPage = 100

// auditList is one page of a subject's records.
type auditList struct {
	Items []audit.Record `json:"items"`
	// Next is the cursor of the next page; null on the last.
	Next *string `json:"next"`
}

// audit answers GET /api/v1/subjects/{policy}/{id}/audit?tenant=&cursor=.
func (s *API) audit(w http.ResponseWriter, r *http.Request, m *memory) {
	after, ok := cursor(r.URL.Query().Get("cursor"))
	if !ok {
		s.fail(w, http.StatusUnprocessableEntity, "invalid_cursor", "the cursor is not one that an answer gave as next; leave it out for the first page")
		return
	}
	records, err := m.Records(r.Context(), journal.RecordFilter{Subject: subjectOf(r)}, after, auditPage+1)
	switch {
	case err != nil:
		s.unreadable(w, err)
	case len(records) == 0 && after == 0:
		s.unknown(w)
	default:
		s.write(w, http.StatusOK, listed(records))
	}
}

// cursor is the record behind which a page begins: 0 where none is given.
func cursor(s string) (after int64, ok bool) {
	if s == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil && n > 0
}

// listed is the page that the records make; one more than fit tells that another follows.
func listed(records []journal.Record) auditList {
	l := auditList{Items: make([]audit.Record, 0, len(records))}
	for i := range records[:min(len(records), auditPage)] {
		l.Items = append(l.Items, audit.Of(&records[i]))
	}
	if len(records) > auditPage {
		next := strconv.FormatInt(l.Items[auditPage-1].Record, 10)
		l.Next = &next
	}
	return l
}

package api

import (
	"cmp"
	"net/http"
	"strconv"

	"retry-worker/internal/audit"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// maxShown attempts, and episodes, of a subject in one answer: the latest. The audit has them all, by pages.
const maxShown = 500

// Subject is a subject as the API shows it.
type Subject struct {
	Policy string `json:"policy"`
	ID     string `json:"id"`
	View
	// Omitted is how many attempts and episodes there are before those that are shown.
	Omitted Omitted `json:"omitted"`
}

// Omitted says how much is not shown.
type Omitted struct {
	Attempts int `json:"attempts"`
	Episodes int `json:"episodes"`
}

func shown(of journal.Subject, v *View) Subject {
	s := Subject{Policy: of.Policy, ID: of.ID, View: *v}
	s.Omitted = Omitted{max(0, len(v.Attempts)-maxShown), max(0, len(v.Episodes)-maxShown)}
	s.Attempts, s.Episodes = v.Attempts[s.Omitted.Attempts:], v.Episodes[s.Omitted.Episodes:]
	return s
}

// subject answers GET /api/v1/subjects/{policy}/{id}?tenant=.
func (s *API) subject(w http.ResponseWriter, r *http.Request, m *Journal) {
	q, bad := readParameters(r, "tenant")
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	wanted, possible := subjectOf(r, q)
	if !possible {
		s.unknown(w)
		return
	}
	story, found, err := m.Story(r.Context(), wanted)
	switch {
	case err != nil:
		s.unreadable(w, r, err)
	case !found:
		s.unknown(w)
	default:
		view := ViewOf(&story, s.now())
		s.write(w, http.StatusOK, shown(wanted, &view))
	}
}

// subjectOf is the subject that a request's address names; false where nothing can have that name.
func subjectOf(r *http.Request, q parameters) (journal.Subject, bool) {
	s := journal.Subject{Tenant: cmp.Or(q["tenant"], journal.DefaultTenant), Policy: r.PathValue("policy"), ID: r.PathValue("id")}
	return s, printable(s.Policy) && printable(s.ID)
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
func (s *API) audit(w http.ResponseWriter, r *http.Request, m *Journal) {
	q, bad := readParameters(r, "tenant", "cursor")
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	after, ok := cursor(q["cursor"])
	if !ok {
		s.undecided(w, r, deadletter.ErrBadCursor, cannotRead)
		return
	}
	wanted, possible := subjectOf(r, q)
	if !possible {
		s.unknown(w)
		return
	}
	records, err := m.Records(r.Context(), journal.RecordFilter{Subject: wanted}, after, auditPage+1)
	switch {
	case err != nil:
		s.unreadable(w, r, err)
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

package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
)

// FuzzPage: whatever stands where an id, a field of an address, a cursor or a form is expected, each address answers, and a
// page that is no refusal is sound.
func FuzzPage(f *testing.F) {
	w := newWorld(f, time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC))
	letter := w.DieWaiting(decision.DefaultPolicy, "CLM-1-1", "DUPLICATE_CLAIM", 2)
	site := open(f, w)
	addresses := []string{
		"GET /", "GET /dead-letters", "GET /dead-letters/groups", "GET /dead-letters/{id}", "GET /subjects/tiss-submission/{id}", "GET /bulk-runs",
		"GET /bulk-runs/new", "GET /bulk-runs/{id}", "GET /policies", "GET /audit", "GET /audit/export", "GET /assets/{id}",
		"POST /dead-letters/{id}/retry", "POST /dead-letters/{id}/discard", "POST /bulk-runs", "POST /bulk-runs/{id}/pause", "POST /assignees/{id}",
	}
	for i := range addresses {
		f.Add(uint8(i), "CLM-1-1", "q=CLM&state=open&since=2026-03-01T08:00&cursor=AAAAAAAAAAE&lang=en", "classification=PERMANENT&team=ti&until=2026-03-02")
		f.Add(uint8(i), letter, "format=csv&before=5&after=-1&tenant=%00", "reason=portal+voltou&how=next&when=now")
		f.Add(uint8(i), "<script>", "q=%3Cscript%3E&policy=%ff&id=%22%3E&until=yesterday&limit=x", "action=retry&why=x&token=AAAA&perMinute=0&total=1e9&everything=yes")
		f.Add(uint8(i), "\x00", "policy=%00&list=policy%3D%2500", "reason=%00&assignee=%00")
	}
	f.Fuzz(func(t *testing.T, n uint8, id, query, form string) {
		method, path, _ := strings.Cut(addresses[int(n)%len(addresses)], " ")
		path = strings.Replace(path, "{id}", strings.ReplaceAll(url.PathEscape(id), ".", "%2E"), 1)
		r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(form))
		testkit.Must(t, err)
		r.URL.RawQuery = query
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if method == http.MethodPost && r.ParseForm() != nil { // which the gate refuses
			return
		}
		s := *site
		s.t = t
		answer := s.ask(r)
		if answer.Code >= http.StatusInternalServerError {
			t.Fatalf("%s %s is answered %d %.300s", method, r.URL, answer.Code, answer.Body)
		}
		if answer.Code == http.StatusOK && strings.HasPrefix(answer.Header().Get("Content-Type"), "text/html") {
			s.doc(answer, http.StatusOK)
		}
	})
}

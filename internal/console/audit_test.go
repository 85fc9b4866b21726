package console_test

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

func TestTheAuditIsSearchedAndExported(t *testing.T) {
	w := sampleDead(t, now)
	s := open(t, w)
	search := "/audit?policy=tiss-submission&id=" + deadID
	for address, want := range map[string]int{search: 7, "/audit?id=" + deadID: 7, "/audit?id=CLM-NONE-1": 0} {
		d := s.page(address)
		if rows := d.rowLinks(); len(rows) != want {
			t.Errorf("%s: %d records of the claim, want %d", address, len(rows), want)
		}
	}
	d := s.page(search)
	for _, n := range d.all(func(n *html.Node) bool { return has(n, "download") }) {
		w := s.get(attr(n, "href"))
		if w.Code != 200 || !strings.Contains(w.Header().Get("Content-Disposition"), "attachment") || !strings.Contains(w.Body.String(), deadID) || strings.Contains(w.Body.String(), permanentID) {
			t.Errorf("%s exports something else", attr(n, "href"))
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/csv") {
			from := csv.NewReader(w.Body)
			from.Comma = ';'
			if all, err := from.ReadAll(); err != nil || len(all) != 8 {
				t.Errorf("the CSV has %d lines: %v", len(all), err)
			}
		}
	}
	if pages := s.eachPage("/audit", func(*doc) {}); pages < 2 {
		t.Errorf("the audit has %d pages", pages)
	}
	for _, address := range []string{"/audit?since=yesterday", "/audit?policy=tiss-submission"} {
		d := s.doc(s.get(address), 422)
		if d.id("wrong") == nil || len(d.all(func(n *html.Node) bool { return attr(n, "aria-invalid") == "true" })) != 1 {
			t.Errorf("%s does not say what is wrong", address)
		}
	}
	// Times are the reader's: 12:00 in São Paulo is 15:00 UTC.
	if d := s.page("/audit?since=" + now.Add(-3*time.Hour).Format("2006-01-02T15:04")); len(d.rowLinks()) > 0 {
		t.Error("the time was read as UTC")
	}
	w.Fail("no-retry", deadID, "x", 0)
	for address, want := range map[string]int{"/audit?id=" + deadID: 7, "/audit?policy=no-retry&id=" + deadID: 1} {
		if n := len(s.page(address).rowLinks()); n != want {
			t.Errorf("an id of two policies: %s lists %d, want %d", address, n, want)
		}
	}
}

// An erasure is told in the reader's language, and not whose it was.
func TestAnErasureIsShown(t *testing.T) {
	w := sampleDead(t, now)
	i := slices.IndexFunc(w.items(), func(i deadletter.Item) bool { return i.Subject.ID == deadID })
	_, err := w.DeadLetters.Decide(t.Context(), deadletter.Command{Action: journal.BulkDiscard, ID: w.items()[i].ID, Reason: "x", By: "ana"})
	testkit.Must(t, err)
	w.Deliver(true)
	e := journal.Erasure{Subject: testkit.Subject("tiss-submission", deadID), Reason: "protocolo 4711", By: "ana.souza"}
	_, err = w.Journal.Erase(t.Context(), w.Memory, e)
	testkit.Must(t, err)
	s := open(t, w)
	for lang, says := range map[string]string{"en": "Records erased on request (LGPD)", "pt-BR": "Registros apagados a pedido (LGPD)"} {
		s.lang = lang
		if raw := s.page("/audit").raw; !strings.Contains(raw, says) ||
			!strings.Contains(raw, "protocolo 4711") || strings.Contains(raw, deadID) {
			t.Errorf("the audit in %s does not tell of the erasure, or tells whose it was", lang)
		}
	}
	s.doc(s.get("/subjects/tiss-submission/"+deadID), 404)
}

// TestTheAuditGoesOnBelowAGap: pages reach what is older than a hundred records that are gone.
func TestTheAuditGoesOnBelowAGap(t *testing.T) {
	w := sampleDead(t, now)
	i := slices.IndexFunc(w.items(), func(i deadletter.Item) bool { return i.Subject.ID == deadID })
	c := deadletter.Command{ID: w.items()[i].ID, Reason: "olhei", By: "ana"}
	for range 100 {
		_, err := w.DeadLetters.Note(t.Context(), c, journal.Comment)
		testkit.Must(t, err)
	}
	c.Action = journal.BulkDiscard
	_, err := w.DeadLetters.Decide(t.Context(), c)
	testkit.Must(t, err)
	w.Deliver(true)
	_, err = w.Journal.Erase(t.Context(), w.Memory, journal.Erasure{Subject: testkit.Subject("tiss-submission", deadID), Reason: "x", By: "ana"})
	testkit.Must(t, err)
	left, err := w.Memory.Records(t.Context(), journal.RecordFilter{}, 0, 1000)
	testkit.Must(t, err)
	shown := map[string]bool{}
	open(t, w).eachPage("/audit", func(d *doc) {
		for _, number := range d.all(func(n *html.Node) bool { return attr(n, "role") == "rowheader" }) {
			shown[text(number)] = true
		}
	})
	if len(shown) != len(left) {
		t.Errorf("%d of %d records are shown", len(shown), len(left))
	}
}

func TestAnExportEndsWithTheReadersRight(t *testing.T) {
	s := open(t, sampleDead(t, now)).as(0)
	w := s.get("/audit/export?format=csv")
	if w.Code == http.StatusOK || strings.Contains(w.Body.String(), deadID) {
		t.Errorf("nobody reads %d", w.Code)
	}
}

func TestEveryPolicyIsShown(t *testing.T) {
	s := open(t, newWorld(t, now))
	d := s.page("/policies")
	d.mustSay("1 h 4 min to 1 h 36 min 2 h 5 min to 3 h 6 min") // the fifth wait
	for name, p := range catalogue.Default().Policies {
		if section := d.id("policy-" + name); section == nil || !strings.Contains(text(section), p.Description) {
			t.Errorf("%s is not shown", name)
		}
	}
}

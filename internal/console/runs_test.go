package console_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// running is a site with a run over 40 claims at 10 a minute, of which the last two were refused.
func running(t *testing.T) (s *site, at, run string) {
	s, _, _ = planned(t)
	run = s.world.begin(groupFilter(s), 10, "Senha trocada; combinado com a operadora.")
	for _, number := range []int64{39, 40} {
		testkit.Must(t, s.world.Journal.RefuseBulkItem(t.Context(), run, number, string(journal.InvalidRetryState)))
	}
	return s, "/bulk-runs/" + run, run
}

func TestARunSaysWhatBecameOfEach(t *testing.T) {
	s, at, run := running(t)
	s.world.becomes(t, run, 6, journal.BulkTaken)
	s.world.becomes(t, run, 9, journal.BulkRecovered)
	s.world.becomes(t, run, 3, journal.BulkDeadAgain)
	s.world.becomes(t, run, 1, journal.BulkNobody)
	s.world.becomes(t, run, 2, journal.BulkDecided)
	s.hold("run", at, at+"?outcome=dead_again", at+"?outcome=refused", "/bulk-runs")
	bar := s.as(access.Viewer).page(at).tags("progress")
	if len(bar) != 1 || attr(bar[0], "value") != "23" || attr(bar[0], "max") != "40" || attr(bar[0], "aria-label") != "23 of 40 are through" {
		t.Error("the bar does not say how many of 40 are through")
	}
}

func TestTheItemsAreFilteredAndPaged(t *testing.T) {
	w := newWorld(t, now)
	w.locked(130)
	s := open(t, w)
	run := s.world.begin(groupFilter(s), 60, "x")
	at := "/bulk-runs/" + run
	s.world.becomes(t, run, 70, journal.BulkRecovered)
	for address, want := range map[string]int{at: 130, at + "?outcome=recovered": 70, at + "?outcome=planned": 60, at + "?outcome=refused": 0, at + "?outcome=forged": 130, at + "?after=-7": 130, at + "?after=x": 130} {
		seen := map[string]bool{}
		s.eachPage(address, func(d *doc) {
			for _, n := range d.rowLinks() {
				seen[text(n)] = true
			}
		})
		if len(seen) != want {
			t.Errorf("%s lists %d, want %d", address, len(seen), want)
		}
	}
	s.page(at + "?outcome=refused").mustSay("None has this outcome so far.")
}

func TestARunIsPausedResumedAndCancelled(t *testing.T) {
	s, at, run := running(t)
	press := func(verb, words string) *doc {
		t.Helper()
		d := s.page(at)
		var form *html.Node
		for _, f := range d.tags("form") {
			if attr(f, "action") == at+"/"+verb {
				form = f
			}
		}
		if form == nil {
			t.Fatalf("there is no way to %s", verb)
		}
		w := s.post(at+"/"+verb, nil)
		to, fragment, _ := strings.Cut(w.Header().Get("Location"), "#")
		if w.Code != http.StatusSeeOther || fragment != "result" {
			t.Fatalf("%s: got %d to %q", verb, w.Code, to)
		}
		d = s.page(to)
		d.mustSay(words)
		return d
	}
	s.world.becomes(t, run, 10, journal.BulkTaken)
	live := s.get(at)
	summary := attr(s.doc(live, http.StatusOK).tags("body")[0], "data-summary")
	if live.Header().Get("ETag") == "" || summary != "running. 12 of 40 are through" {
		t.Errorf("a run that goes on is not live, or screen readers hear %q", summary)
	}
	d := press("pause", "Paused by ana.souza")
	if !d.says("28 are left, about 2 min 48 s at the pace") || d.id("pause") != nil || d.id("resume") == nil {
		t.Errorf("a paused run says %s", text(d.tags("main")[0]))
	}
	d = press("resume", "Resumed by ana.souza")
	if d.id("resume") != nil || d.id("pause") == nil {
		t.Error("a resumed run can be resumed")
	}
	d = press("cancel", "Cancelled by ana.souza")
	if d.id("cancel") != nil || d.id("pause") != nil || !d.says("Their turn never came: they stay open.") || d.says("about 2 min") {
		t.Errorf("a cancelled run says %s", text(d.tags("main")[0]))
	}
	// Too late, or by somebody else meanwhile: nothing is done, and the page says how it stands.
	for _, verb := range []string{"pause", "resume", "cancel"} {
		d := s.doc(s.post(at+"/"+verb, nil), http.StatusConflict)
		if !strings.Contains(text(d.id("wrong")), "Nothing was changed") || !d.says("cancelled") {
			t.Errorf("%s: it says %s", verb, text(d.id("wrong")))
		}
	}
	if state := s.world.run(t, run).State; state != journal.BulkCancelled {
		t.Errorf("the run is %s", state)
	}
	s.pages.Open(s.world.Memory, s.failing())
	d = s.doc(s.post(at+"/pause", nil), http.StatusServiceUnavailable)
	d.mustSay("The run may not have changed")
	d.mustNotSay("secret detail")
}

func TestAHeldRunSaysThatItGoesOnByItself(t *testing.T) {
	s, at, run := running(t)
	s.world.becomes(t, run, 5, journal.BulkDecided)
	s.world.SetEngineUp(time.Time{})
	d := s.as(access.Viewer).page(at)
	if got := text(d.id("held")); !strings.Contains(got, "The Zeebe engine does not answer") || !strings.Contains(got, "continues by itself") {
		t.Errorf("it says %q", got)
	}
	if d.says("are decided one by one, at the pace") || d.says("end at about") || d.id("pause") != nil || d.id("cancel") != nil || !d.says("Your role (viewer) can only watch") {
		t.Error("it promises an end, or lets a viewer steer")
	}
}

func TestRunsAreListed(t *testing.T) {
	s, _, run := running(t)
	s.world.becomes(t, run, 38, journal.BulkRecovered)
	for i := range 30 {
		other := s.world.begin(journal.DeadLetterFilter{Reason: "INVALID_PATIENT_DATA"}, 60, "lote "+strconv.Itoa(i))
		_, err := s.world.DeadLetters.Steer(t.Context(), other, journal.BulkCancel, "marta.lima")
		testkit.Must(t, err)
	}
	seen, last := 0, (*doc)(nil)
	pages := s.eachPage("/bulk-runs", func(d *doc) {
		seen += len(d.rowLinks())
		last = d
	})
	last.mustSay("recovered: 38, refused: 2", "Cause: logininvalido: usuário # bloqueado", "done")
	if seen != 31 || pages != 2 {
		t.Errorf("%d runs on %d pages, want 31 on 2", seen, pages)
	}
	s.leads(s.get("/bulk-runs?cursor=forged"), "/bulk-runs")
}

func TestHostileTextsOfARunAreInert(t *testing.T) {
	w := newWorld(t, now)
	w.DieWaiting("no-retry", hostileID, hostile, -1)
	s := open(t, w)
	run := "019c0000-0000-7000-8000-00000000000b"
	hostileRun := journal.BulkRun{ID: run, Through: 1 << 40, BulkCommand: journal.BulkCommand{Action: journal.BulkRetry, PerMinute: 60, Reason: hostile, By: hostile,
		Filter: journal.DeadLetterFilter{Policy: "<b>", Team: "<b>", Reason: "<b>", Query: hostile}}}
	_, err := w.Journal.Bulk(t.Context(), &journal.BulkStep{Verb: journal.BulkStart, By: hostile, Run: hostileRun})
	testkit.Must(t, err)
	refused := w.StartBulk(journal.BulkCommand{Action: journal.BulkDiscard, Filter: journal.DeadLetterFilter{Query: hostileID}, Reason: "x", By: "marta.lima"})
	testkit.Must(t, w.Journal.RefuseBulkItem(t.Context(), refused, 1, "<b>"))
	for _, address := range []string{"/bulk-runs", "/bulk-runs/" + run, "/bulk-runs/" + refused, "/"} {
		d := s.page(address)
		d.inert(address)
	}
}

// TestTheStoryAndTheAuditNameTheRun: with the journal's own words on a run, and on a decision that is part of it.
func TestTheStoryAndTheAuditNameTheRun(t *testing.T) {
	w := newWorld(t, now)
	w.locked(1)
	id := "019c0000-0000-7000-8000-00000000000a"
	step := func(verb journal.BulkVerb, by string) {
		t.Helper()
		_, err := w.Journal.Bulk(t.Context(), &journal.BulkStep{Verb: verb, By: by, Items: testkit.Open(t, w.Memory, journal.DeadLetterFilter{}, 9), Run: journal.BulkRun{ID: id, Through: 9, BulkCommand: journal.BulkCommand{Action: journal.BulkRetry, PerMinute: 60, Reason: "Senha trocada.", By: by}}})
		testkit.Must(t, err)
	}
	step(journal.BulkStart, "marta.lima")
	letter := w.letterOf(t, "CLM-T-0000")
	_, err := w.DeadLetters.Decide(t.Context(), deadletter.Command{Action: journal.BulkRetry, ID: letter.ID, Reason: "Senha trocada.", By: "marta.lima", When: deadletter.Now, Run: id})
	testkit.Must(t, err)
	step(journal.BulkCancel, "ana.souza")
	s := open(t, w)
	d := s.page(subjectAddress("tiss-submission", "CLM-T-0000"))
	for _, part := range []string{"decision", "events"} {
		links := 0
		for n := range d.id(part).Descendants() {
			if n.Data == "a" && attr(n, "href") == "/bulk-runs/"+id {
				links++
			}
		}
		if links != 1 {
			t.Errorf("the %s name the run %d times", part, links)
		}
	}
	d = s.page("/audit")
	d.mustSay("Bulk run started. “Senha trocada.” (marta.lima)", "Bulk run cancelled. (ana.souza)")
	if len(d.all(func(n *html.Node) bool { return attr(n, "href") == "/bulk-runs/"+id })) != 2 { // started, cancelled
		t.Error("the audit's records do not lead to the run")
	}
}

package console_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"retry-worker/internal/calendar"
	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
)

// worth has a claim die that is worth an amount and has a deadline; its process waits.
func (w world) worth(t *testing.T, id, text string, due time.Time, of ...decision.ContextValue) {
	t.Helper()
	a := w.Analysis("tiss-submission", id, text, -1)
	a.Failure.Deadline, a.Failure.Destination, a.Failure.Context = due, portalName, of
	analyzed, err := w.Journal.Analyze(t.Context(), a)
	testkit.Must(t, err)
	w.Await(analyzed.Attempt.DeadLetter)
}

func reais(amount string) decision.ContextValue {
	return decision.ContextValue{Variable: "valor", Type: "money", Value: amount}
}

// TestTheClaimStandsAboveTheForm: its number, error, amount and deadline, in a part of the page of their own.
func TestTheClaimStandsAboveTheForm(t *testing.T) {
	w := newWorld(t, now)
	w.worth(t, "CLM-D-1", "INVALID_PATIENT_DATA: carteira não confere", now.Add(time.Hour), reais("1234.50"))
	d := open(t, w).page(subjectAddress("tiss-submission", "CLM-D-1"))
	if got := text(d.id("claim-head")); got != "Dead letters CLM-D-1 awaits a decision R$ 1,234.50 Deadline in 1 h INVALID_PATIENT_DATA: carteira não confere" {
		t.Errorf("above the form stands %q", got)
	}
	if strings.Index(d.raw, `id="claim-head"`) > strings.Index(d.raw, `id="decision"`) {
		t.Error("the form comes first")
	}
	for words, n := range map[string]int{"Deadline": 1, "1,234.50": 1} {
		if found := strings.Count(text(d.tags("main")[0]), words); found > n {
			t.Errorf("%q stands %d times", words, found)
		}
	}
}

// TestAMissedDeadlineIsNoLimitOfRetries: what ended the retries is told as it was, by the claim and the audit.
func TestAMissedDeadlineIsNoLimitOfRetries(t *testing.T) {
	w := newWorld(t, now)
	w.worth(t, "CLM-D-1", "HTTP 503", now.Add(time.Minute))
	for _, address := range []string{subjectAddress("tiss-submission", "CLM-D-1"), "/audit?id=CLM-D-1"} {
		d := open(t, w).page(address)
		d.mustSay("The deadline cannot be met: not retried any more.")
		d.mustNotSay("Retry limit reached")
	}
}

// TestWhatIsOverdueIsCountedApart, and stands out.
func TestWhatIsOverdueIsCountedApart(t *testing.T) {
	w := newWorld(t, now)
	for i, due := range []time.Duration{-24*time.Hour - 9*time.Minute, -time.Minute, 3 * time.Hour, 30 * time.Hour} {
		w.worth(t, "CLM-D-"+string(rune('1'+i)), "DUPLICATE_CLAIM", now.Add(due), reais("100.00"))
	}
	s := open(t, w)
	for _, address := range []string{"/", "/dead-letters", "/dead-letters/groups"} {
		s.page(address).mustSay("2 overdue: R$ 200.00", "1 is due today: R$ 100.00")
	}
	for _, address := range []string{"/dead-letters", "/dead-letters/groups"} { // a search is for others
		s.page(address + "?q=CLM-D-4").mustNotSay("overdue: R$")
	}
	late := s.page("/dead-letters?sort=deadline").classed("late")
	if len(late) != 2 || text(late[0]) != "overdue by 24 h 9 min" {
		t.Errorf("%d deadlines stand out", len(late))
	}
}

// TestAfterAPermanentErrorNowIsChosen, since a person has corrected it; the form says when the retry goes.
func TestAfterAPermanentErrorNowIsChosen(t *testing.T) {
	s, _, _ := reviewing(t)
	s.world.failsUntilDead("job-queue", "JOB-1", "exit status 1") // which asks for 42 s itself
	s.world.Await(s.world.letterOf(t, "JOB-1").ID)
	for id, says := range map[string]string{"CLM-T-1": "It is sent again now; this can be undone for 30 seconds.",
		"CLM-T-2": "It is sent again in 2 h 8 min to 3 h 12 min.", "JOB-1": "It is sent again in 42 s."} {
		policy := map[bool]string{true: "job-queue", false: "tiss-submission"}[id == "JOB-1"]
		d := s.page(subjectAddress(policy, id))
		goes := d.all(func(n *html.Node) bool { return has(n, "data-goes") && n.Data == "p" })
		chosen := d.all(func(n *html.Node) bool { return attr(n, "name") == "when" && has(n, "checked") })
		if len(goes) != 1 || len(chosen) != 1 || text(goes[0]) != says || attr(chosen[0], "data-goes") != text(goes[0]) {
			t.Errorf("%s says %q", id, text(goes[0]))
		}
	}
}

// TestOneSearchFindsAnyClaim by any part of its number, in whatever state it is.
func TestOneSearchFindsAnyClaim(t *testing.T) {
	s := open(t, sampleDead(t, now))
	for part, id := range map[string]string{"5001": heldID, "004711": deadID, "4650": longStoryID, "4901": "CLM-2026-004901", "import-lote": "import-lote-2219"} {
		to := s.get("/search?q=" + part).Header().Get("Location")
		if !strings.HasSuffix(to, "/"+id) {
			t.Errorf("%s leads to %q", part, to)
		}
	}
	s.page("/search?q=clm-2026-0048").mustSay(permanentID, "awaits a decision")
	s.page("/search?q=nowhere").mustSay("No claim has “nowhere” in its number")
	d := s.page("/dead-letters?q=5001")
	d.mustSay("The claim is here: " + heldID + " TISS submission waits for its destination")
	if d.link("Act on") != nil || d.says("All 2") {
		t.Error("what is nowhere is acted on, or counted")
	}
	s.leads(s.get("/search?q="), "/dead-letters")
}

// TestWhatIsTheSameEverywhereHasNoColumn, and what no page may tell apart no link.
func TestWhatIsTheSameEverywhereHasNoColumn(t *testing.T) {
	w := newWorld(t, now)
	taken := decision.ContextValue{Variable: "cpf", Type: "text", Value: "[ID]"}
	due := decision.ContextValue{Variable: decision.DeadlineVariable, Type: "time", Value: "2026-03-05T21:00:00Z"}
	for _, id := range []string{"CLM-D-1", "CLM-D-2"} {
		w.worth(t, id, "DUPLICATE_CLAIM", now.Add(50*time.Hour), reais("1.00"), taken, due)
	}
	s := open(t, w)
	d := s.page("/dead-letters")
	if d.link("[ID]") != nil || strings.Contains(text(d.id("rows")), "submissionDeadline") {
		t.Error("a part of the context stands where it should not")
	}
	var columns []string
	for _, n := range d.all(func(n *html.Node) bool { return attr(n, "role") == "columnheader" }) {
		columns = append(columns, text(n))
	}
	if want := []string{"Claim", "Reason", "Deadline and amount", "Waiting since"}; !slices.Equal(columns, want) {
		t.Errorf("the columns are %q, want %q", columns, want)
	}
	w.worth(t, "CLM-D-3", "INVALID_PATIENT_DATA", now.Add(50*time.Hour))
	s.page("/dead-letters").mustSay("Who acts")
	if file := s.get("/dead-letters.csv").Body.String(); strings.Count(file, "Deadline") != 1 {
		t.Errorf("the file begins with %.200s", file)
	}
}

// TestAFormSaysThatItsPortalIsDown or closed, and that the retry waits for it.
func TestAFormSaysThatItsPortalIsDown(t *testing.T) {
	w := newWorld(t, now)
	w.worth(t, "CLM-D-1", "INVALID_PATIENT_DATA", time.Time{})
	p := testkit.NewPortal(portalName, w.Journal, now.Add(-time.Hour))
	s := open(t, w)
	if s.page(subjectAddress("tiss-submission", "CLM-D-1")).id("waits") != nil {
		t.Error("a portal that is up is said not to be")
	}
	p.Fails(t, now.Add(-10*time.Minute))
	s = open(t, w)
	s.page(subjectAddress("tiss-submission", "CLM-D-1")).mustSay("The destination unimed-sp is down: a retry waits until it is back")

	w = newWorld(t, now)
	var err error
	w.Calendar, err = calendar.New(time.UTC, []calendar.Window{{Hours: "16:00-18:00"}}, nil)
	testkit.Must(t, err)
	w.worth(t, "CLM-D-1", "INVALID_PATIENT_DATA", time.Time{})
	testkit.NewPortal(portalName, w.Journal, now.Add(-time.Hour)).Hold(t, "CLM-D-2", 1, time.Time{})
	s = open(t, w)
	s.page(subjectAddress("tiss-submission", "CLM-D-1")).mustSay("The destination unimed-sp is closed: a retry waits until it is back")
}

// TestAClaimLeadsToTheHospitalsSystem, with all that the address takes, escaped; not where a part of it is not known.
func TestAClaimLeadsToTheHospitalsSystem(t *testing.T) {
	w := newWorld(t, now)
	of := func(value string) decision.ContextValue {
		return decision.ContextValue{Variable: "operadora", Type: "text", Value: value}
	}
	w.worth(t, "CLM-D-1", "DUPLICATE_CLAIM", time.Time{}, of("A & B/ç?#"))
	w.worth(t, "CLM-D-2", "DUPLICATE_CLAIM", time.Time{}, of("[ID]"))
	w.worth(t, "CLM-D-3", "DUPLICATE_CLAIM", time.Time{})
	s := open(t, w)
	s.claim = "https://erp.example/guias/{id}?convenio={operadora}"
	s.links("", "")
	for id, to := range map[string]string{"CLM-D-1": "https://erp.example/guias/CLM-D-1?convenio=A%20%26%20B%2F%C3%A7%3F%23", "CLM-D-2": "", "CLM-D-3": ""} {
		page := s.get(subjectAddress("tiss-submission", id)).Body.String()
		if found := strings.Contains(page, "hospital&#39;s system"); found != (to != "") || !strings.Contains(page, `href="`+to) {
			t.Errorf("%s does not lead to %s", id, to)
		}
	}
}

// TestPortalsWithProblemsComeFirst, and each says once since when.
func TestPortalsWithProblemsComeFirst(t *testing.T) {
	w := newWorld(t, now)
	for _, name := range []string{"amil", "bradesco", "zurich"} {
		testkit.NewPortal(name, w.Journal, now.Add(-time.Hour)).Happens(t, now.Add(-50*time.Minute), testkit.Answered(0))
	}
	testkit.NewPortal("unimed", w.Journal, now.Add(-time.Hour)).Fails(t, now.Add(-40*time.Minute))
	s := open(t, w)
	if rows := s.page("/destinations").rowLinks(); len(rows) != 4 || text(rows[0]) != "unimed" {
		t.Errorf("of %d portals the one that is down is not first", len(rows))
	}
	d := s.page(portalAddress("unimed"))
	if d.says("In this state since") || len(d.classed("id")) > 0 {
		t.Error("it says twice since when, or its name as a number")
	}
}

// TestPlansOfNothingChosenNameNoFilter: whoever ticks none is told so, and of nothing else.
func TestPlansOfNothingChosenNameNoFilter(t *testing.T) {
	s, _, _ := planned(t)
	if d := s.doc(s.get("/bulk-runs/new?"+url.Values{"ids": {""}}.Encode()), 422); d.says("all that is open") {
		t.Error("it speaks of everything")
	}
}

// TestAPlaceSaysHowFarOneIs in a list that is worked through.
func TestAPlaceSaysHowFarOneIs(t *testing.T) {
	w := newWorld(t, now)
	w.locked(4)
	s := open(t, w)
	rows := s.page("/dead-letters?team=ti").rowLinks()
	to, _, _ := strings.Cut(attr(rows[2], "href"), "#")
	if got := text(s.page(to).id("claim-head")); !strings.HasPrefix(got, "Dead letters 3 of 4 Next dead letter") {
		t.Errorf("it says %q", got)
	}
}

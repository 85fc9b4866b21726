package console_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// letterOf is a subject's latest dead letter.
func (w world) letterOf(t *testing.T, id string) deadletter.Item {
	for _, item := range w.items() {
		if item.Subject.ID == id {
			return item
		}
	}
	t.Fatal("no dead letter of ", id)
	return deadletter.Item{}
}

// reviewing is a site with a claim below its limit and one at it, whose processes wait.
func reviewing(t *testing.T) (s *site, below, at deadletter.Item) {
	w := newWorld(t, now)
	w.fails("tiss-submission", "CLM-T-1", "INVALID_PATIENT_DATA: carteira")
	w.failsUntilDead("tiss-submission", "CLM-T-2", "HTTP 503")
	below, at = w.letterOf(t, "CLM-T-1"), w.letterOf(t, "CLM-T-2")
	w.Await(below.ID)
	w.Await(at.ID)
	return open(t, w), w.letterOf(t, "CLM-T-1"), w.letterOf(t, "CLM-T-2")
}

func words(reason, how, when string) url.Values {
	return url.Values{"reason": {reason}, "how": {how}, "when": {when}}
}

func (s *site) follow(from string, form url.Values) *doc {
	s.t.Helper()
	w := s.post(from, form)
	to := w.Header().Get("Location")
	if w.Code != http.StatusSeeOther || !strings.HasSuffix(to, "#decision") {
		s.t.Fatalf("%s: got %d to %q, want 303 to the decision: %.500s", from, w.Code, to, text(s.doc(w, w.Code).tags("main")[0]))
	}
	to, _, _ = strings.Cut(to, "#")
	return s.page(to)
}

// later has what can be undone carried out.
func (s *site) later() {
	s.t.Helper()
	s.world.Advance(journal.UndoFor)
	testkit.Must(s.t, s.world.DeadLetters.DecideDue(s.t.Context(), s.world.Memory))
}

// TestADecisionCanBeUndone has it carried out after half a minute only, by one of two replicas, and not where it was undone;
// until then nobody else decides.
func TestADecisionCanBeUndone(t *testing.T) {
	for _, c := range []struct {
		verb, says, then string
		form             url.Values
		want             journal.DeadLetterState
	}{
		{"discard", "ana.souza is discarding it", "Discarded by ana.souza", words("paciente particular, CPF 529.982.247-25", "", ""), journal.DeadLetterDiscarded},
		{"retry", "ana.souza sends it again", "Sent again, with all retries again, by ana.souza", words("CPF 529.982.247-25 corrigido", "fresh", "now"), journal.DeadLetterReprocessing},
	} {
		for _, undo := range []bool{false, true} {
			s, below, _ := reviewing(t)
			s.as(access.Admin).follow("/dead-letters/"+below.ID+"/"+c.verb, c.form)
			d := s.page(subjectAddress("tiss-submission", "CLM-T-1"))
			if !d.says(c.says) || d.says("529.982") || d.id("retry") != nil {
				t.Errorf("it says %s", text(d.id("decision")))
			}
			_, err := s.world.DeadLetters.Decide(t.Context(), deadletter.Command{Action: journal.BulkDiscard, ID: below.ID, Reason: "eu também", By: "bia"})
			if why := journal.RefusalOf(err); why == nil || why.By != "ana.souza" {
				t.Errorf("another decides meanwhile: %v", err)
			}
			want := c.want
			if undo {
				want = journal.DeadLetterOpen
				s.follow("/dead-letters/"+below.ID+"/undo", nil)
			}
			for _, at := range []struct {
				after time.Duration
				want  journal.DeadLetterState
			}{{29 * time.Second, journal.DeadLetterOpen}, {time.Second, want}, {0, want}} {
				s.world.Advance(at.after)
				for range 2 {
					testkit.Must(t, s.world.DeadLetters.DecideDue(t.Context(), s.world.Memory))
				}
				if got := s.world.letterOf(t, "CLM-T-1"); got.State != at.want {
					t.Errorf("%s, undone %t: it is %s after %s more, want %s", c.verb, undo, got.State, at.after, at.want)
				}
			}
			if got := s.page(subjectAddress("tiss-submission", "CLM-T-1")); got.says(c.then) == undo || (got.id("retry") == nil) == undo {
				t.Errorf("%s, undone %t: then it says %s", c.verb, undo, text(got.id("decision")))
			}
			if waiting, _ := s.world.Memory.Backlog(t.Context()); waiting[journal.LaterQueue] != 0 {
				t.Errorf("the %s still waits", c.verb)
			}
		}
	}
}

// TestAnOldPageUndoesNobodyElse: a page that shows a decision which was undone since leaves what another decided then.
func TestAnOldPageUndoesNobodyElse(t *testing.T) {
	s, below, _ := reviewing(t)
	shown := func() url.Values {
		d := s.page(subjectAddress("tiss-submission", "CLM-T-1"))
		beside := s.page(subjectAddress("tiss-submission", "CLM-T-2") + "?list=state%3Dopen&after=" + below.ID)
		record := attr(d.field("record"), "value")
		if by := s.world.letterOf(t, "CLM-T-1").Later.By; by != "bia" && attr(beside.field("record"), "value") != record {
			t.Errorf("the page of the next claim undoes another record than %s", record)
		}
		return url.Values{"record": {record}}
	}
	s.follow("/dead-letters/"+below.ID+"/discard", words("engano", "", ""))
	old := shown()
	s.follow("/dead-letters/"+below.ID+"/undo", old)
	_, err := s.world.DeadLetters.Note(t.Context(), deadletter.Command{ID: below.ID, Reason: "corrigi", By: "bia"}, journal.RetryLater)
	testkit.Must(t, err)
	for _, c := range []struct {
		by   string
		form url.Values
	}{{"bia", old}, {"", shown()}} {
		s.follow("/dead-letters/"+below.ID+"/undo", c.form)
		if by := s.world.letterOf(t, "CLM-T-1").Later.By; by != c.by {
			t.Errorf("after undoing %v the decision is of %q, want %q", c.form, by, c.by)
		}
	}
}

// TestWhatCannotBeCarriedOutIsUndone: a retry that was in time when it was asked for, and is not when it is carried out.
func TestWhatCannotBeCarriedOutIsUndone(t *testing.T) {
	w := newWorld(t, now)
	w.Due = now.Add(time.Minute)
	w.fails("tiss-submission", "CLM-T-1", "INVALID_PATIENT_DATA: carteira")
	item := w.letterOf(t, "CLM-T-1")
	w.Await(item.ID)
	s := open(t, w)
	s.follow("/dead-letters/"+item.ID+"/retry", words("ok", "next", "now"))
	s.world.Advance(2 * time.Minute) // nobody runs
	s.later()
	if d := s.page(subjectAddress("tiss-submission", "CLM-T-1")); d.id("retry") == nil || d.id("later") != nil {
		t.Errorf("it says %s", text(d.id("decision")))
	}
	s.page(subjectAddress("tiss-submission", "CLM-T-1")).mustSay("The decision was undone.", "deadline")
}

// TestAcceptedAlready: a person closes what the insurer has, with its number there, where the process takes that (R33).
func TestAcceptedAlready(t *testing.T) {
	s, below, _ := reviewing(t)
	s.as(access.Operator)
	accept := "/dead-letters/" + below.ID + "/accept"
	s.doc(s.post(accept, url.Values{"reason": {"consta"}, "protocolNumber": {"de Maria"}}), http.StatusUnprocessableEntity).mustSay("at most 40 characters")
	s.doc(s.post(accept, url.Values{"protocolNumber": {"2026/7"}}), http.StatusUnprocessableEntity).mustSay("write the reason")
	s.follow(accept, url.Values{"reason": {"consta no portal"}, "protocolNumber": {" 2026/7 "}})
	d := s.page(subjectAddress("tiss-submission", "CLM-T-1"))
	d.mustSay("Closed as accepted already", "2026/7", "consta no portal", "The insurer had it already")
	s.doc(s.post("/dead-letters/"+below.ID+"/discard", url.Values{"reason": {"x"}}), http.StatusUnprocessableEntity).mustSay("closed it as accepted already")

	w := newWorld(t, now)
	w.fails("tiss-submission", "CLM-T-3", "DUPLICATE_CLAIM")
	item := w.letterOf(t, "CLM-T-3")
	_, err := w.Journal.ReviewSeen(t.Context(), &journal.ReviewJob{Subject: item.Subject, DeadLetter: item.ID, JobKey: 9}) // an older model
	testkit.Must(t, err)
	s = open(t, w).as(access.Operator)
	if d := s.page(subjectAddress("tiss-submission", "CLM-T-3")); d.id("accept") != nil || !d.says("no such way out") {
		t.Errorf("a process that does not take it is offered it: %s", text(d.id("decision")))
	}
}

// TestSentLate: what can no longer be sent in time goes where the box is ticked, or with a new deadline (R29).
func TestSentLate(t *testing.T) {
	for sent, want := range map[string]string{"": "only be sent after its deadline", "deadline=soon": "as a day and a time",
		"deadline=2026-03-01T08:00": "only be sent after its deadline", "how=fresh": "only be sent after its deadline", "late=true": "",
		"late=true&deadline=2026-03-05T18:00": "New deadline 5 Mar 2026 18:00"} {
		w := newWorld(t, now)
		w.Due = now.Add(-time.Minute)
		w.fails("tiss-submission", "CLM-T-1", "INVALID_PATIENT_DATA: carteira")
		item := w.letterOf(t, "CLM-T-1")
		w.Await(item.ID)
		s, form := open(t, w), words("ok", "next", "now")
		extra, _ := url.ParseQuery(sent)
		maps.Copy(form, extra)
		to := "/dead-letters/" + item.ID + "/retry"
		if want != "" && !strings.HasPrefix(want, "New") {
			s.doc(s.post(to, form), 422).mustSay(want, "The deadline has passed", "Deadline overdue by 1 min")
			continue
		}
		s.follow(to, form)
		s.later()
		s.page(subjectAddress("tiss-submission", "CLM-T-1")).mustSay(want)
		if w.letterOf(t, "CLM-T-1").Review.Force != (want == "") {
			t.Errorf("%s is not forced, or is in time", sent)
		}
	}
}

// TestPeopleTakeAndGive: who has a claim, and until when, is seen on its page, in the list and on the overview; it ends with
// the decision, and is told in the story.
func TestPeopleTakeAndGive(t *testing.T) {
	s, below, _ := reviewing(t)
	viewer, to, claim := s.as(access.Viewer), "/dead-letters/"+below.ID, subjectAddress("tiss-submission", "CLM-T-1")
	viewer.who.Name = "rui"
	if d := viewer.page(claim); d.id("take") != nil || d.id("assign") != nil || d.id("comment") != nil || d.id("retry") != nil {
		t.Error("a viewer may more than read")
	}
	s.page(claim).mustSay("Nobody has taken it", "Take it")
	s.follow(to+"/assignment", url.Values{"assignee": {"me"}, "was": {""}}).mustSay("You have it", "Give it back")
	viewer.page(claim).mustSay("ana.souza has it")
	s.page("/").mustSay("Mine 1", "Nobody’s 1")
	s.follow(to+"/comment", url.Values{"text": {"liguei para a operadora"}}).mustSay("liguei para a operadora")
	s.doc(s.post(to+"/assignment", url.Values{"assignee": {"nobody"}, "was": {""}}), 409).mustSay("meanwhile somebody took it")
	s.doc(s.post(to+"/assignment", url.Values{"assignee": {"me"}, "was": {"ana.souza"}, "followUp": {"amanhã"}}), 422).mustSay("give the day")
	s.follow(to+"/assignment", url.Values{"assignee": {"bia"}, "was": {"ana.souza"}, "followUp": {"2026-03-01"}, "text": {"CPF 529.982.247-25"}}).
		mustSay("bia has it", "Given by ana.souza", "Follow up on 1 Mar 2026", "CPF [CPF]", "Who has it now: bia")
	for address, rows := range map[string]int{"assignee=me": 0, "assignee=bia": 1, "assignee=nobody": 1, "followUp=today": 1, "assignee=bia&followUp=2026-02-28": 0} {
		if d := s.page("/dead-letters?" + address); len(d.rowLinks()) != rows {
			t.Errorf("%s lists %d", address, len(d.rowLinks()))
		}
	}
	s.page("/dead-letters").mustSay("Mine 0", "Nobody’s 1", "For today 1", "with bia · follow up on 1 Mar")
	s.follow(to+"/assignment", url.Values{"assignee": {"me"}, "was": {"bia"}}).mustSay("You have it", "Follow up on 1 Mar 2026")
	if has := s.world.Item(below.ID).Assigned; has.Text != "CPF [CPF]" {
		t.Errorf("who takes it loses the note: %+v", has)
	}
	s.doc(s.post(to+"/comment", url.Values{"text": {" "}}), 422).mustSay("write the reason")
	s.follow(to+"/retry", words("ok", "next", "now"))
	s.later()
	s.page(claim).mustNotSay("You have it")
	if has := s.world.Item(below.ID).Assigned; has != (journal.Assignment{}) {
		t.Errorf("what is decided is with %+v", has)
	}
}

func TestTheFormIsWhatTheRoleMay(t *testing.T) {
	s, _, _ := reviewing(t)
	for _, c := range []struct {
		id             string
		role           access.Role
		teams          access.Teams
		retry, discard bool
		hows           []string
		words          string
	}{
		{"CLM-T-1", access.Viewer, "", false, false, nil, "is read-only"},
		{"CLM-T-1", access.Operator, "", true, true, []string{"next"}, "Go on: retry 1 of 5"},
		{"CLM-T-1", access.Operator, "ti", false, false, nil, "You belong to the team IT (ti)"},
		{"CLM-T-1", access.Operator, "ti,cadastro", true, true, []string{"next"}, "Try again"},
		{"CLM-T-1", access.Admin, "", true, true, []string{"next", "fresh"}, "Start over"},
		{"CLM-T-1", access.Admin, "ti", false, false, nil, "You belong to the team IT (ti)"},
		{"CLM-T-2", access.Viewer, "", false, false, nil, "is read-only"},
		{"CLM-T-2", access.Operator, "", true, true, []string{"force"}, "Try once more"},
		{"CLM-T-2", access.Admin, "", true, true, []string{"force", "fresh"}, "One more retry, beyond the 5 planned"},
	} {
		s.who.Teams = c.teams
		d := s.as(c.role).page(subjectAddress("tiss-submission", c.id))
		if who := text(d.tags("header")[0]); !strings.Contains(who, "ana.souza") || !strings.Contains(who, c.role.String()) {
			t.Errorf("the header says %q, want who is logged in, and as what", who)
		}
		if (d.id("retry") != nil) != c.retry || (d.id("discard") != nil) != c.discard || !d.says(c.words) {
			t.Errorf("%s for a %s: has not the forms or words it should", c.id, c.role)
		}
		var hows []string
		for _, n := range d.all(func(n *html.Node) bool { return attr(n, "name") == "how" }) {
			hows = append(hows, attr(n, "value"))
		}
		if strings.Join(hows, " ") != strings.Join(c.hows, " ") {
			t.Errorf("%s for a %s: ways %v, want %v", c.id, c.role, hows, c.hows)
		}
	}
}

func TestWhatIsWrongIsSaidAndNothingIsDone(t *testing.T) {
	s, below, at := reviewing(t)
	for _, c := range []struct {
		what  string
		role  access.Role
		id    string
		form  url.Values
		words string
		field string
	}{
		{"no reason", access.Admin, below.ID, words(" \r\n", "next", "now"), "write the reason", "reason"},
		{"a long reason", access.Admin, below.ID, words(strings.Repeat("é", 501), "next", "now"), "up to 500", "reason"},
		{"no way beyond the limit", access.Admin, at.ID, words("keep this", "", "now"), "choose how to go on", "how"},
		{"the limit", access.Admin, at.ID, words("keep this", "next", "now"), "choose how to go on", "how"},
		{"no time", access.Admin, below.ID, words("keep this", "next", "later"), "choose when", "when"},
	} {
		d := s.as(c.role).doc(s.as(c.role).post("/dead-letters/"+c.id+"/retry", c.form), http.StatusUnprocessableEntity)
		wrong := d.id("wrong")
		if wrong == nil || attr(wrong, "role") != "alert" || !strings.Contains(text(wrong), c.words) || !strings.Contains(text(wrong), "Nothing was done") {
			t.Errorf("%s: it does not say %q", c.what, c.words)
		}
		marked := d.all(func(n *html.Node) bool { return attr(n, "aria-invalid") == "true" })
		if len(marked) != 1 || !strings.Contains(attr(marked[0], "aria-describedby"), "wrong") ||
			(marked[0] != d.field(c.field) && !within(d.field(c.field), marked[0])) || !has(wrong, "autofocus") {
			t.Errorf("%s: not the field %q is marked, or what is wrong has not the focus", c.what, c.field)
		}
		if strings.Contains(c.form.Get("reason"), "keep") && d.id("retry") != nil && text(d.field("reason")) != "keep this" {
			t.Errorf("%s: what was written is gone", c.what)
		}
	}
	for _, id := range []string{"CLM-T-1", "CLM-T-2"} {
		if s.world.letterOf(t, id).State != journal.DeadLetterOpen {
			t.Errorf("%s was decided on", id)
		}
	}
	viewer := s.as(access.Viewer)
	forbidden := viewer.post("/dead-letters/"+below.ID+"/discard", words("x", "", ""))
	viewer.doc(forbidden, http.StatusForbidden).mustSay("does not allow that")
	s.doc(s.post("/dead-letters/none/retry", words("x", "next", "now")), http.StatusNotFound)
}

func TestTheSecondOfTwoIsToldWhoWasFirst(t *testing.T) {
	s, below, _ := reviewing(t)
	s.follow("/dead-letters/"+below.ID+"/retry", words("first", "next", "now"))
	second := s.as(access.Operator)
	second.who.Name = "bruno"
	d := second.doc(second.post("/dead-letters/"+below.ID+"/discard", words("second", "", "")), http.StatusUnprocessableEntity)
	if got := text(d.id("wrong")); !strings.Contains(got, "ana.souza has sent it again already (today 14:") && !strings.Contains(got, "ana.souza has sent it again already") {
		t.Errorf("it says %q", got)
	}
	if s.later(); s.world.letterOf(t, "CLM-T-1").State != journal.DeadLetterReprocessing {
		t.Error("the second one won")
	}
}

func TestWithoutAProcessItCanOnlyBeDiscarded(t *testing.T) {
	w := newWorld(t, now)
	w.fails("tiss-submission", "CLM-T-1", "INVALID_PATIENT_DATA")
	id := w.letterOf(t, "CLM-T-1").ID
	s := open(t, w)
	if d := s.page(subjectAddress("tiss-submission", "CLM-T-1")); !d.says("process on its way") || d.id("retry") == nil {
		t.Error("within a minute the process may come")
	}
	w.Advance(2 * 60e9)
	d := s.page(subjectAddress("tiss-submission", "CLM-T-1"))
	if !d.says("No process waits") || d.id("retry") != nil || d.id("discard") == nil {
		t.Error("it does not say that nobody waits, or offers a retry")
	}
	if d := s.doc(s.post("/dead-letters/"+id+"/retry", words("x", "next", "now")), 422); !strings.Contains(text(d.id("wrong")), "no process waits") {
		t.Error("a retry for nobody is not refused")
	}
}

func TestARetryThatFoundNobodyIsOpenAgain(t *testing.T) {
	s, below, _ := reviewing(t)
	s.follow("/dead-letters/"+below.ID+"/retry", words("tentativa", "next", "now"))
	s.later()
	s.world.Deliver(false)
	d := s.page(subjectAddress("tiss-submission", "CLM-T-1"))
	if !d.says("nothing was sent again") || !d.says("tentativa") || d.id("discard") == nil || d.id("retry") != nil {
		t.Errorf("it says %s", text(d.id("decision")))
	}
}

// failing is a service of which it is not known whether it recorded.
type failing struct{ *deadletter.Service }

var errUnwritable = errors.New("the journal cannot be written: secret detail")

func (failing) Note(context.Context, deadletter.Command, journal.NoteVerb) (deadletter.Item, error) {
	return deadletter.Item{}, errUnwritable
}

func (failing) Steer(context.Context, string, journal.BulkVerb, string) (journal.BulkRun, error) {
	return journal.BulkRun{}, errUnwritable
}

func (s *site) failing() *guard.Guard {
	to := s.world.Services()
	to.DeadLetters = failing{s.world.DeadLetters}
	return guard.New(to)
}

func TestADecisionThatMayNotBeRecordedSaysSo(t *testing.T) {
	s, below, _ := reviewing(t)
	s.pages.Open(s.world.Memory, s.failing())
	d := s.doc(s.post("/dead-letters/"+below.ID+"/retry", words("x", "next", "now")), http.StatusServiceUnavailable)
	d.mustSay("The decision may not be recorded")
	d.mustNotSay("secret detail")
}

package console_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/calendar"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/console"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// TestStories plays the files of testdata/stories, whose README.md has the commands. Each page that they open must be sound.
func TestStories(t *testing.T) {
	golden.Stories(t, "testdata/stories", func(t *testing.T, file string) { golden.Story(t, file, (&story{t: t}).play) })
}

// story is a site that one person after the other looks at.
type story struct {
	t *testing.T
	*site
	browsers map[string]http.Header // with their cookies, by person
	page     *doc                   // the last one
	named    map[string]string      // what names in braces stand for
	portals  map[string]*testkit.Portal
}

type arguments = golden.Arguments

func (s *story) play(command string) string {
	if s.site != nil {
		s.name()
		command = s.fill(command)
	}
	verb, rest, _ := strings.Cut(command, " ")
	if slices.Contains([]string{"GET", "FOLLOW", "PAGES", "POST", "PRESS"}, verb) {
		return s.hide(s.visit(verb, rest))
	}
	return golden.Play(command, map[string]func(*arguments) (string, error){
		"world": s.begin, "as": s.as, "lang": s.speak, "after": s.after, "fails": s.fails, "succeeds": s.succeeds, "waits": s.waits, "delivers": s.delivers,
		"erases": s.erases, "breaks": s.breaks, "catalogue": s.catalogued, "portal": s.portal, "runs": s.runs, "becomes": s.becomes, "learns": s.learns,
		"links": s.leads,
	})
}

// name names the dead letters that there are now.
func (s *story) name() {
	items, _, _ := s.world.Memory.DeadLetterPage(s.t.Context(), journal.DeadLetterFilter{State: deadletter.AllStates}, "", 200) // the store may be down
	for _, item := range slices.Backward(items) {
		s.named["{"+item.Subject.ID+"}"] = item.ID
		s.named["{cause of "+item.Subject.ID+"}"] = item.Fingerprint
	}
}

// fill puts what names in braces stand for in their place.
func (s *story) fill(text string) string {
	for name, is := range s.named {
		text = strings.ReplaceAll(text, name, is)
	}
	return text
}

var (
	// lastRecorded is an age that depends on when the journal came to mark its last answer.
	lastRecorded = regexp.MustCompile(`(registros; o último) .*`)
	// aUUID is one that nothing names.
	aUUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}`)
)

// hide puts names in the place of what is another in every run.
func (s *story) hide(text string) string {
	for name, is := range s.named {
		if len(is) == 36 { // the id of a dead letter or a run
			text = strings.ReplaceAll(text, is, name)
		}
	}
	text = aUUID.ReplaceAllString(text, "ID")
	text = strings.ReplaceAll(text, s.catalogue.Version, "VERSION")
	return lastRecorded.ReplaceAllString(text, "$1 AGO")
}

// visit opens an address, or sends a form, follows where that leads, and returns what the selectors find there.
func (s *story) visit(verb, rest string) string {
	if s.pages == nil { // what happens to portals later they would learn later, too
		s.links("", "")
	}
	words := selectors.FindAllString(rest, -1)
	address, words := words[0], words[1:]
	var answer *httptest.ResponseRecorder
	said := ""
	switch verb {
	case "GET":
		answer = s.get(address)
	case "FOLLOW":
		links := s.page.pick(address)
		if len(links) == 0 {
			return "there is no such link\n"
		}
		address, _, _ = strings.Cut(attr(links[0], "href"), "#")
		answer = s.get(address)
	case "PAGES":
		found, pages := map[string]bool{}, 0
		for ; address != ""; pages++ {
			s.page = s.doc(s.get(address), http.StatusOK)
			for _, n := range s.page.pick(words[0]) {
				found[text(n)] = true
			}
			address, _, _ = strings.Cut(s.page.show("[rel=next]@href"), "#")
		}
		return fmt.Sprintf("%d on %d pages\n", len(found), pages)
	default:
		form := url.Values{}
		method := http.MethodPost
		if verb == "PRESS" {
			found := s.page.pick(address)
			if len(found) != 1 {
				return fmt.Sprintf("%d such forms or buttons\n", len(found))
			}
			form, method, address = s.page.form(found[0])
		}
		sent, err := url.ParseQuery(repeated.ReplaceAllStringFunc(words[0], func(of string) string {
			letter, times, _ := strings.Cut(of, "*")
			n, _ := strconv.Atoi(times) // digits
			return strings.Repeat(letter, n)
		}))
		testkit.Must(s.t, err)
		for name, values := range sent {
			form[name] = values
		}
		if words = words[1:]; method == http.MethodPost {
			answer = s.send(address, form)
		} else {
			answer = s.get(address + "?" + form.Encode())
		}
	}
	for {
		s.cookies(answer.Header())
		to := answer.Header().Get("Location")
		if to == "" {
			break
		}
		said += fmt.Sprintln(answer.Code, to)
		to, _, _ = strings.Cut(to, "#")
		answer = s.get(to)
	}
	if answer.Code != http.StatusOK {
		said += fmt.Sprintln(answer.Code)
	}
	body, isPage := answer.Body.String(), strings.HasPrefix(answer.Header().Get("Content-Type"), "text/html")
	if isPage {
		s.page = s.doc(answer, answer.Code)
		body = text(s.page.root)
	}
	for _, selector := range words {
		shown := "none"
		if quoted, err := strconv.Unquote(selector); err == nil {
			shown = fmt.Sprint(strings.Count(body, quoted))
		} else if header, is := strings.CutPrefix(selector, "$"); is {
			shown = cmp.Or(answer.Header().Get(header), shown)
		} else if !isPage {
			shown = "\n  " + strings.ReplaceAll(strings.TrimSpace(strings.ReplaceAll(body, "\r", "")), "\n", "\n  ")
		} else if found := s.page.show(selector); found != "" {
			shown = found
		}
		said += strings.ReplaceAll(selector+": "+shown, ": \n", ":\n") + "\n"
	}
	return said
}

// repeated is a letter that stands so many times: x*501.
var repeated = regexp.MustCompile(`\pL\*\d+`)

// cookies keeps those that an answer set in the person's browser.
func (s *story) cookies(h http.Header) {
	r := http.Response{Header: h}
	for _, c := range r.Cookies() {
		kept := slices.DeleteFunc(s.header["Cookie"], func(have string) bool { return strings.HasPrefix(have, c.Name+"=") })
		if s.header["Cookie"] = kept; c.MaxAge >= 0 {
			s.header["Cookie"] = append(kept, c.Name+"="+c.Value)
		}
	}
}

// begin has a world of its own for what follows.
func (s *story) begin(a *arguments) (string, error) {
	s.browsers, s.named, s.portals = map[string]http.Header{}, map[string]string{}, map[string]*testkit.Portal{}
	w := world{}
	if a.First == "sample" {
		w = sample(s.t)
	} else {
		w = newWorld(s.t, now)
	}
	if hours := a.Named["hours"]; hours != "" {
		var err error
		w.Calendar, err = calendar.New(time.UTC, []calendar.Window{{Hours: hours}}, nil)
		testkit.Must(s.t, err)
	}
	s.site = unopened(s.t, w)
	if a.First == "starting" {
		s.pages = console.New(console.Options{Now: s.world.Now, Zone: brasilia, Health: func() console.Health { return console.Health{} }, Catalogue: catalogue.Default, Log: zap.NewNop()})
	}
	_, err := s.as(&arguments{Named: map[string]string{"name": "ana.souza", "role": "admin"}})
	return "", err
}

// as has somebody else look, in a browser of their own or another's.
func (s *story) as(a *arguments) (_ string, err error) {
	s.who = access.Identity{Name: cmp.Or(a.Named["name"], a.First), Teams: access.Teams(a.Named["teams"])}
	if role := a.Named["role"]; role != "nobody" {
		s.who.Role, err = access.ParseRole(cmp.Or(role, "operator"))
	}
	browser := cmp.Or(a.Named["browser"], s.who.Name)
	if s.browsers[browser] == nil {
		s.browsers[browser] = http.Header{}
	}
	s.header = s.browsers[browser]
	return "", err
}

func (s *story) speak(a *arguments) (string, error) {
	s.lang = a.First
	return "", nil
}

// after has time pass, and two replicas carry out what can no longer be undone.
func (s *story) after(a *arguments) (string, error) {
	d, err := time.ParseDuration(a.First)
	s.world.Advance(d)
	for range 2 {
		err = errors.Join(err, s.world.DeadLetters.DecideDue(s.t.Context(), s.world.Memory))
	}
	return "", err
}

// fails has a claim fail once or as often as times says, or until it is given up; or as many claims, * being the number of each.
func (s *story) fails(a *arguments) (string, error) {
	count := int64(-1) // the process does not say
	if a.Named["count"] != "" {
		count = a.Number("count")
	}
	for i := range max(1, a.Number("claims")) {
		numbered := func(text string) string { return strings.ReplaceAll(text, "*", fmt.Sprintf("%03d", i)) }
		for n := int64(1); ; n++ {
			f := s.world.Analysis(cmp.Or(a.Named["policy"], decision.DefaultPolicy), numbered(a.First), numbered(a.Named["error"]), int(count))
			f.Failure.Destination = a.Named["portal"]
			if due := a.Named["due"]; due != "" {
				left, err := time.ParseDuration(due)
				if f.Failure.Deadline = s.world.Now().Add(left); err != nil {
					return "", err
				}
			}
			for part := range strings.SplitSeq(a.Named["context"], "|") {
				if name, value, is := strings.Cut(part, ":"); is {
					name, kind, _ := strings.Cut(name, "/")
					f.Failure.Context = append(f.Failure.Context, decision.ContextValue{Variable: name, Type: decision.ContextType(cmp.Or(kind, "text")), Value: value})
				}
			}
			analyzed, err := s.world.Journal.Analyze(s.t.Context(), f)
			if err != nil {
				return "", err
			}
			s.world.Journal.Answered(&analyzed)
			at := analyzed.Attempt
			if a.Words["waits"] && at.DeadLetter != "" {
				s.world.Await(at.DeadLetter)
			}
			s.named["{process of "+f.Subject.ID+"}"], s.named["{cause}"] = fmt.Sprint(at.ProcessInstanceKey), at.Fingerprint
			if !a.Words["dead"] && n >= a.Number("times") || a.Words["dead"] && !at.Decision.ShouldRetry() {
				break
			}
			if a.Words["dead"] {
				s.world.Set(at.Decision.NextRetryTime.Add(4 * time.Second))
			} else {
				s.world.Advance(50 * time.Hour) // so that each begins anew
			}
		}
	}
	return "", nil
}

func (s *story) succeeds(a *arguments) (string, error) {
	s.world.Succeed(decision.DefaultPolicy, a.First)
	return "", nil
}

// waits has the process of a dead letter wait, by a model that takes every answer or by an older one.
func (s *story) waits(a *arguments) (string, error) {
	item := s.world.Item(s.named["{"+a.First+"}"])
	_, err := s.world.Journal.ReviewSeen(s.t.Context(), &journal.ReviewJob{Subject: item.Subject, DeadLetter: item.ID, JobKey: 9, Accepts: !a.Words["older"]})
	return "", err
}

func (s *story) delivers(a *arguments) (string, error) {
	s.world.Deliver(!a.Words["nobody"])
	return "", nil
}

func (s *story) erases(a *arguments) (string, error) {
	e := journal.Erasure{Subject: testkit.Subject(decision.DefaultPolicy, a.First), Reason: a.Named["reason"], By: s.who.Name}
	_, err := s.world.Journal.Erase(s.t.Context(), s.world.Memory, e)
	return "", err
}

// breaks has the store, the engine or what records decisions fail from now on, or work again.
func (s *story) breaks(a *arguments) (string, error) {
	switch s.world.Memory.SetDown(a.Words["store"]); {
	case a.Words["engine"]:
		s.down = true
		s.world.SetEngineUp(time.Time{})
	case a.Words["decisions"]:
		to := s.world.Services()
		to.DeadLetters = failing{s.world.DeadLetters}
		s.pages.Open(s.world.Memory, guard.New(to))
	case a.Words["nothing"]:
		s.down = false
		s.world.SetEngineUp(s.world.Now())
	case a.Words["mail"]:
		s.untold = nil
		for i := range a.Number("times") {
			s.untold = append(s.untold, notify.Waiting{Team: []decision.Team{"cadastro", "faturamento", "ti", "atendimento"}[i%4], Channel: notify.Email,
				Since: s.world.Now().Add(-20 * time.Minute), Failure: "mail.hospital.example:25: connection refused <b>"})
		}
	}
	return "", nil
}

// catalogued puts a catalogue that extends the built-in one in force.
func (s *story) catalogued(a *arguments) (string, error) {
	c, err := catalogue.Parse("policies.yaml", []byte("extends: built-in\n"+a.Named["file"]))
	s.catalogue = c
	return "", err
}

// leads has the pages lead to other programs.
func (s *story) leads(a *arguments) (string, error) {
	s.claim = a.Named["claim"]
	s.links(a.Named["operate"], a.Named["grafana"])
	return "", nil
}

// portal has things happen to a destination some time ago.
func (s *story) portal(a *arguments) (string, error) {
	ago, err := time.ParseDuration(cmp.Or(a.Named["ago"], "0s"))
	at := s.world.Now().Add(-ago)
	p := s.portals[a.First]
	if p == nil {
		p = testkit.NewPortal(a.First, s.world.Journal, at.Add(-9*time.Hour))
		s.portals[a.First] = p
		if a.Words["known"] {
			p.Recovers(s.t, at.Add(-8*time.Hour), 5)
		}
	}
	for word, events := range map[string][]destination.Event{
		"up": {testkit.Answered(0)}, "fails": testkit.Failures(), "probed": {destination.Probed{}, destination.Probed{}}, "canary": {destination.Turn{Waiting: 2, Canary: 1}},
		"slow": {destination.Order{Verb: destination.ReleaseAt, PerMinute: 0.5}}, "trusted": {destination.Order{Verb: destination.TreatAsUp, Until: at.Add(time.Hour)}},
		"held": {destination.Order{Verb: destination.HoldClaims, Until: at.Add(26 * time.Hour)}},
	} {
		if a.Words[word] {
			p.Happens(s.t, at, events...)
		}
	}
	for i := range a.Number("holds") {
		p.Hold(s.t, fmt.Sprintf("CLM-%s-%d", a.First, i+1), int64(100*len(s.portals))+10*i, s.world.Now().Add(30*time.Hour))
	}
	return "", err
}

// runs begins a bulk run on what a filter lets through.
func (s *story) runs(a *arguments) (string, error) {
	f := journal.DeadLetterFilter{Fingerprint: a.Named["fingerprint"], Reason: decision.Reason(a.Named["reason"]), Team: decision.Team(a.Named["team"])}
	for range max(1, a.Number("times")) {
		s.named["{run}"] = s.world.StartBulk(journal.BulkCommand{Action: journal.BulkRetry, Filter: f, PerMinute: cmp.Or(a.Number("perMinute"), 60),
			When: deadletter.Now, Reason: cmp.Or(a.Named["why"], "x"), By: "marta.lima"})
		if a.Words["cancelled"] {
			if _, err := s.world.DeadLetters.Steer(s.t.Context(), s.named["{run}"], journal.BulkCancel, "marta.lima"); err != nil {
				return "", err
			}
		}
	}
	for n := int64(0); n < a.Number("refused"); n++ {
		testkit.Must(s.t, s.world.Journal.RefuseBulkItem(s.t.Context(), s.named["{run}"], a.Number("from")+n, string(journal.InvalidRetryState)))
	}
	return "", nil
}

// becomes has the next so many of the run come to an outcome, and ends it where none is left.
func (s *story) becomes(a *arguments) (string, error) {
	run, outcome := s.named["{run}"], journal.BulkOutcome(a.Named["outcome"])
	n, err := strconv.Atoi(a.First)
	items := s.world.DecideBulk(run, n)
	if outcome != journal.BulkDecided {
		s.world.Deliver(outcome != journal.BulkNobody)
	}
	for _, i := range items {
		switch outcome {
		case journal.BulkRecovered:
			s.world.Succeed(i.Subject.Policy, i.Subject.ID)
		case journal.BulkDeadAgain:
			s.world.Fail(i.Subject.Policy, i.Subject.ID, "LoginInvalido: usuário 7 bloqueado", -1)
		}
	}
	if r, _ := s.world.DeadLetters.Run(s.t.Context(), run); r.Counts[journal.BulkPlanned] == 0 {
		s.world.FinishBulk(run)
	}
	return "", err
}

// learns has the worker learn from outcomes, and look for new causes.
func (s *story) learns(*arguments) (string, error) {
	_, err := statistics.FindNew(s.t.Context(), s.world.Memory, s.world.Now())
	return "", errors.Join(err, s.world.Learner.Refresh(s.t.Context(), s.world.Now()))
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

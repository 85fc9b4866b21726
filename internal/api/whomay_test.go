package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/console"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// request is a call, and what it takes.
type request struct {
	takes string
	call
}

// whoMay is all of R31, as testdata/who-may.txt has it: the verdict on each kind of person by what a request takes, the
// kinds themselves behind "what"; and the requests.
func whoMay(t *testing.T) (verdicts map[string][]string, requests []request) {
	t.Helper()
	verdicts = map[string][]string{}
	table, list, _ := strings.Cut(testkit.Read(t, "testdata/who-may.txt"), "\n\n")
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); f[0] != "#" {
			verdicts[f[0]] = f[1:]
		}
	}
	for line := range strings.Lines(list) {
		if f := append(strings.Fields(line), ""); len(f) > 3 && f[0] != "#" {
			requests = append(requests, request{f[0], call{f[1], f[2], f[3]}})
		}
	}
	return verdicts, requests
}

// reached counts the decisions that come through, and takes none, so that every state stays.
type reached struct {
	guard.DeadLetters
	guard.Gates
	guard.Recorder
	n  int
	by string // whose the last one is
}

func (r *reached) refuse(by string) error {
	r.n++
	r.by = by
	return &journal.Refusal{Code: deadletter.InvalidWhen, Message: "reached"}
}

func (r *reached) Decide(_ context.Context, c deadletter.Command) (deadletter.Item, error) {
	return deadletter.Item{}, r.refuse(c.By)
}
func (r *reached) Note(_ context.Context, c deadletter.Command, _ journal.NoteVerb) (deadletter.Item, error) {
	return deadletter.Item{}, r.refuse(c.By)
}
func (r *reached) Assign(_ context.Context, _ string, a journal.Assignment) (deadletter.Item, error) {
	return deadletter.Item{}, r.refuse(a.By)
}
func (r *reached) Erase(_ context.Context, _ journal.Expunger, e journal.Erasure) (journal.Erased, error) {
	return journal.Erased{}, r.refuse(e.By)
}
func (r *reached) Prospects(*journal.Cause) (p journal.Prospects) { return p }
func (r *reached) Teams() []decision.Team                         { return nil }
func (r *reached) Process(*journal.DeadLetter) deadletter.Process { return deadletter.Waiting }
func (r *reached) Start(_ context.Context, c journal.BulkCommand, _ string) (journal.BulkRun, bool, error) {
	return journal.BulkRun{}, false, r.refuse(c.By)
}
func (r *reached) Steer(_ context.Context, _ string, _ journal.BulkVerb, by string) (journal.BulkRun, error) {
	return journal.BulkRun{}, r.refuse(by)
}
func (r *reached) Teach(_ context.Context, _ string, t journal.Teaching) (journal.Cause, error) {
	return journal.Cause{}, r.refuse(t.By)
}
func (r *reached) Command(_ context.Context, _ string, o destination.Order) error {
	return r.refuse(o.By)
}

// TestWhoMayWhat asks for every route, in every state of dead letters and runs, by every role, bound to every kind of team.
func TestWhoMayWhat(t *testing.T) {
	c := open(t)
	letters, runs := c.everyState()
	c.portal(aPortal)
	handler, through := c.everything()
	verdicts, requests := whoMay(t)
	who := verdicts["what"]
	c.publish(who)
	for _, r := range requests {
		ids := map[string]string{"": r.takes}
		switch {
		case strings.Contains(r.path+r.body, "LETTER"):
			ids = letters
		case strings.Contains(r.path, "RUN"), strings.Contains(r.path, "PAUSED"):
			ids = runs
		}
		for id, what := range ids {
			if r.takes != "run" {
				what = r.takes
			}
			for i, name := range who {
				fill := strings.NewReplacer("LETTER", id, "RUN", id, "PAUSED", id, "CLAIM", "CLM-999-9")
				l := call{r.method, fill.Replace(r.path), fill.Replace(r.body)}
				through.n = 0
				token := strings.ReplaceAll(name, "/", "-")
				got := verdict(l.by(t, handler, c.Tokens.Secret(token)))
				if want := verdicts[what][i]; got != want {
					t.Errorf("%s asks %s %s %s (%s): %s, want %s", name, l.method, l.path, l.body, what, got, want)
				}
				decides := r.method == http.MethodPost && what != "read" && what != "report" && strings.HasPrefix(l.path, "/api/")
				if got != "in" && through.n != 0 || decides && got == "in" && through.n == 0 {
					t.Errorf("%s asks %s %s %s: %s, and %d decisions come through", name, l.method, l.path, l.body, got, through.n)
				}
				if through.n > 0 && through.by != token {
					t.Errorf("%s asks %s %s %s, and %q would have done it", name, l.method, l.path, l.body, through.by)
				}
			}
		}
	}
}

// TestNobodyFillsTheAudit: what can be asked for again and again, each time a record, is taken from one person as often as
// people do it; others go on meanwhile.
func TestNobodyFillsTheAudit(t *testing.T) {
	c := open(t)
	id := c.permanent("CLM-001-1")
	c.portal(aPortal)
	for _, again := range []call{
		{http.MethodPost, "/dead-letters/" + id + "/comment", "text=x"},
		{http.MethodPut, "/api/v1/dead-letters/" + id + "/assignment", "{}"},
		{http.MethodPost, "/dead-letters/" + id + "/undo", "x="},
		{http.MethodPost, "/api/v1/destinations/unimed-sp/hold", `{"until":"2026-03-02T12:00:00Z","reason":"x"}`},
		{http.MethodPost, "/destinations/unimed-sp/probe", "reason=x"},
	} {
		handler, through := c.everything()
		ask := func(who string, n int) (status int) {
			for range n {
				status = again.by(t, handler, c.Tokens.Secret(who)).Code
			}
			return status
		}
		if status := ask("otto", 1000); status != http.StatusTooManyRequests || through.n < 60 || through.n > 120 {
			t.Errorf("%s: %d of 1000 come through, the last is answered %d", again.path, through.n, status)
		}
		before := through.n
		if status := ask("ada", 1); status == http.StatusTooManyRequests {
			t.Errorf("%s: another person is answered %d", again.path, status)
		}
		c.Advance(2 * time.Second)
		if ask("otto", 2); through.n != before+2 {
			t.Errorf("%s: %d more come through in two seconds, want one of each", again.path, through.n-before)
		}
	}
}

// everyState are dead letters of the team faturamento in each state, and bulk runs with what it takes to steer them.
func (c *fixture) everyState() (letters, runs map[string]string) {
	letters = map[string]string{c.permanent("CLM-001-1"): "", c.exhausted("CLM-002-1"): ""}
	for claim, action := range map[string]journal.BulkAction{"CLM-003-1": journal.BulkRetry, "CLM-004-1": journal.BulkDiscard} {
		id := c.permanent(claim)
		_, err := c.DeadLetters.Decide(c.t.Context(), deadletter.Command{ID: id, Action: action, Reason: "x", By: "ana"})
		testkit.Must(c.t, err)
		letters[id] = ""
	}
	runs = map[string]string{}
	for what, command := range map[string]journal.BulkCommand{
		"bulk": {Filter: journal.DeadLetterFilter{Team: "faturamento"}}, "bulk/all": {},
		"restart": {Filter: journal.DeadLetterFilter{Team: "faturamento"}, Force: true, Fresh: true}, "restart/all": {Force: true, Fresh: true},
	} {
		command.Action, command.Reason, command.By = journal.BulkRetry, "x", "ana"
		runs[c.StartBulk(command)] = what
	}
	return letters, runs
}

// everything is API and pages over the fixture, and what counts the decisions that come through.
func (c *fixture) everything() (http.Handler, *reached) {
	through := &reached{DeadLetters: c.DeadLetters, Gates: c.Gates(), Recorder: c.Journal}
	people := guard.New(guard.Services{DeadLetters: through, Gates: through, Journal: through, Store: c.Memory, Log: zap.NewNop()})
	p := console.New(console.Options{Now: c.Now, Zone: time.UTC, Health: func() console.Health { return console.Health{} }, Catalogue: catalogue.Default, Log: zap.NewNop()})
	p.Open(c.Memory, people)
	gate := access.Options{Now: c.Now, Tokens: c.Tokens.Load, Public: []string{console.AssetsPrefix}, LoginPage: p.Login, Refuse: p.Refuse}
	served := api.New(api.Options{Gate: gate, Policies: c.Policies, Log: zap.NewNop(), Pages: p})
	served.Open(api.Journal{Reader: c.Memory, Guard: people, Sessions: c.Memory})
	return served.Handler(), through
}

// publish tokens for all of those: role, or role/own, or role/other.
func (c *fixture) publish(who []string) {
	roles := map[string]access.Role{}
	c.Tokens.Teams = map[string]access.Teams{}
	for _, name := range who[1:] { // nobody is the first
		role, bound, _ := strings.Cut(name, "/")
		parsed, err := access.ParseRole(role)
		testkit.Must(c.t, err)
		roles[strings.ReplaceAll(name, "/", "-")] = parsed
		c.Tokens.Teams[strings.ReplaceAll(name, "/", "-")] = map[string]access.Teams{"": "", "own": "ti,faturamento", "other": "ti,cadastro"}[bound]
	}
	c.Tokens.Publish(roles, time.Time{})
}

// by asks with a token; none is nobody.
func (l call) by(t *testing.T, handler http.Handler, secret string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(l.method, l.path, strings.NewReader(l.body))
	r.Header.Set("Accept-Language", "en")
	r.Header.Set("Content-Type", "application/json")
	if !strings.HasPrefix(l.path, "/api/") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	a := answer{status: w.Code, text: w.Body.String()}
	_ = json.Unmarshal(w.Body.Bytes(), &a.body) // pages are none
	described(t).hold(t, r, l.body, &a)
	return w
}

func verdict(w *httptest.ResponseRecorder) string {
	body := w.Body.String()
	switch {
	case w.Code == http.StatusUnauthorized:
		return "login"
	case w.Code != http.StatusForbidden:
		return "in"
	case strings.Contains(body, "forbidden_role"), strings.Contains(body, "Your role does not allow that"):
		return "role"
	case strings.Contains(body, "forbidden_team"), strings.Contains(body, "This belongs to another team"):
		return "team"
	}
	return body
}

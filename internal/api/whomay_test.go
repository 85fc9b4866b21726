package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
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
	"retry-worker/internal/journal"
)

// whoMay is all of R31: what each request takes, and who is allowed (in), or refused for nobody's name (login), the role or
// the team. own and other are bound to the team that it is about, or to another; free and none are bound to no team, and
// none does it without naming a team. Where a request has no team, own is bound to the one of its filter.
const whoMay = `
what     nobody  viewer  viewer/own  operator  operator/own  operator/other  admin  admin/own  admin/other
read     login   in      in          in        in            in              in     in         in
report   login   role    role        in        in            in              in     in         in
review   login   role    role        in        in            team            in     in         team
bulk     login   role    role        role      in            team            in     in         team
bulk/all login   role    role        role      team          team            in     team       team
restart  login   role    role        role      role          role            in     in         team
restart/all login role   role        role      role          role            in     team       team
order    login   role    role        in        in            in             in     in         in
erase    login   role    role        role      role          role            in     in         in
`

// requests of every route, by what they take. LETTER and RUN stand for ids; page forms have a body without {.
const requests = `
read    GET  /api/v1/openapi.yaml
read    POST /api/v1/decisions {"id":"CLM-001-1","error":"TIMEOUT"}
read    GET  /api/v1/subjects/tiss-submission/CLM-001-1
read    GET  /api/v1/subjects/tiss-submission/CLM-001-1/audit
erase   POST /api/v1/subjects/tiss-submission/CLM-002-1/erase {"reason":"x"}
report  POST /api/v1/outcomes {"id":"CLM-999-9"}
read    GET  /api/v1/kpis
read    GET  /api/v1/dead-letters
read    GET  /api/v1/dead-letters/groups
read    GET  /api/v1/dead-letters/LETTER
review  POST /api/v1/dead-letters/LETTER/retry {"reason":"x"}
review  POST /api/v1/dead-letters/LETTER/retry {"reason":"x","forceRetry":true,"when":"now"}
restart POST /api/v1/dead-letters/LETTER/retry {"reason":"x","forceRetry":true,"fresh":true}
review  POST /api/v1/dead-letters/LETTER/discard {"reason":"x"}
review  POST /api/v1/jobs/retry {"jobId":"LETTER","reason":"x"}
review  POST /api/v1/jobs/retry {"jobId":"LETTER","reason":"x","forceRetry":true}
read    POST /api/v1/bulk-runs/plan {"action":"discard","filter":{}}
bulk    POST /api/v1/bulk-runs {"action":"discard","filter":{"team":"faturamento"},"reason":"x","token":"x"}
bulk    POST /api/v1/bulk-runs {"action":"retry","filter":{"team":"faturamento"},"forceRetry":true,"reason":"x","token":"x"}
restart POST /api/v1/bulk-runs {"action":"retry","filter":{"team":"faturamento"},"forceRetry":true,"fresh":true,"reason":"x","token":"x"}
bulk/all    POST /api/v1/bulk-runs {"action":"retry","filter":{},"reason":"x","token":"x"}
restart/all POST /api/v1/bulk-runs {"action":"retry","filter":{},"forceRetry":true,"fresh":true,"reason":"x","token":"x"}
read    GET  /api/v1/bulk-runs
read    GET  /api/v1/bulk-runs/RUN
read    GET  /api/v1/bulk-runs/RUN/items
run     POST /api/v1/bulk-runs/RUN/pause {}
run     POST /api/v1/bulk-runs/RUN/resume {}
run     POST /api/v1/bulk-runs/RUN/cancel {}
read    GET  /api/v1/causes
read    GET  /api/v1/causes/CAUSE
erase   POST /api/v1/causes/CAUSE/teach {"classification":"TRANSIENT","reason":"x"}
erase   DELETE /api/v1/causes/CAUSE/teach {"reason":"x"}
read    GET  /api/v1/destinations
read    GET  /api/v1/destinations/unimed-sp
order   POST /api/v1/destinations/unimed-sp/hold {"until":"2026-03-02T12:00:00Z","reason":"x"}
order   POST /api/v1/destinations/unimed-sp/probe {"reason":"x"}
order   POST /api/v1/destinations/unimed-sp/release {"perMinute":20,"reason":"x"}
read    GET  /
read    GET  /kpis
read    GET  /dead-letters
read    GET  /dead-letters/groups
read    GET  /dead-letters/LETTER
review  POST /dead-letters/LETTER/retry reason=x&how=next&when=now
review  POST /dead-letters/LETTER/retry reason=x&how=force&when=now
restart POST /dead-letters/LETTER/retry reason=x&how=fresh&when=now
review  POST /dead-letters/LETTER/discard reason=x
review  POST /dead-letters/LETTER/undo x=
review  POST /dead-letters/LETTER/look x=
review  POST /dead-letters/LETTER/comment text=x
read    POST /dead-letters/LETTER/ask text=x
read    GET  /subjects/tiss-submission/CLM-001-1
read    GET  /bulk-runs
read    GET  /bulk-runs/new?action=retry
read    GET  /bulk-runs/RUN
bulk    POST /bulk-runs action=discard&team=faturamento&why=x
bulk    POST /bulk-runs action=retry&team=faturamento&how=force&why=x
restart POST /bulk-runs action=retry&team=faturamento&how=fresh&why=x
bulk/all    POST /bulk-runs action=retry&everything=yes&why=x
restart/all POST /bulk-runs action=retry&how=fresh&everything=yes&why=x
run     POST /bulk-runs/RUN/pause x=
run     POST /bulk-runs/RUN/resume x=
run     POST /bulk-runs/RUN/cancel x=
read    GET  /causes/CAUSE
read    GET  /learning
erase   POST /causes/CAUSE/teach classification=TRANSIENT&reason=x
erase   POST /causes/CAUSE/forget reason=x
read    GET  /destinations
read    GET  /destinations/unimed-sp
order   POST /destinations/unimed-sp/hold reason=x&until=2026-03-02T12:00
order   POST /destinations/unimed-sp/probe reason=x
order   POST /destinations/unimed-sp/release reason=x&perMinute=20
order   POST /destinations/unimed-sp/up reason=x&until=2026-03-02T12:00
read    GET  /policies
read    POST /policies policy=tiss-submission&error=x
read    GET  /policies/tiss-submission/ladder.svg
read    GET  /audit
read    GET  /audit/export
`

// reached counts the decisions that come through, and takes none, so that every state stays.
type reached struct {
	api.DeadLetters
	api.Bulk
	api.Gates
	n int
}

func (r *reached) refuse() error {
	r.n++
	return &deadletter.Refusal{Code: deadletter.InvalidWhen, Message: "reached"}
}

func (r *reached) Retry(context.Context, deadletter.Command) (deadletter.Item, error) {
	return deadletter.Item{}, r.refuse()
}
func (r *reached) Discard(context.Context, deadletter.Command) (deadletter.Item, error) {
	return deadletter.Item{}, r.refuse()
}
func (r *reached) Note(context.Context, deadletter.Command, journal.NoteVerb) (deadletter.Item, error) {
	return deadletter.Item{}, r.refuse()
}
func (r *reached) Erase(context.Context, journal.Subject, func(journal.Head, *journal.Erasing) *journal.Changes) error {
	return r.refuse()
}
func (r *reached) Prospects(*journal.Cause) (closed, recovered int64, hopeless bool) {
	return 0, 0, false
}
func (r *reached) Teams() []decision.Team                         { return nil }
func (r *reached) Process(*journal.DeadLetter) deadletter.Process { return deadletter.Waiting }
func (r *reached) Start(context.Context, deadletter.BulkCommand, string) (journal.BulkRun, bool, error) {
	return journal.BulkRun{}, false, r.refuse()
}
func (r *reached) Steer(context.Context, string, journal.BulkVerb, string) (journal.BulkRun, error) {
	return journal.BulkRun{}, r.refuse()
}
func (r *reached) Teach(context.Context, deadletter.Teaching) (journal.Cause, error) {
	return journal.Cause{}, r.refuse()
}
func (r *reached) Command(context.Context, string, journal.DestinationCommand) error {
	return r.refuse()
}

// TestWhoMayWhat asks for every route, in every state of dead letters and runs, by every role, bound to every kind of team.
func TestWhoMayWhat(t *testing.T) {
	c := open(t)
	letters, runs := c.everyState()
	c.portal(aPortal)
	handler, through := c.everything()
	lines := strings.Split(strings.TrimSpace(whoMay), "\n")
	who := strings.Fields(lines[0])[1:]
	c.publish(who)
	verdicts := map[string][]string{}
	for _, line := range lines[1:] {
		verdicts[strings.Fields(line)[0]] = strings.Fields(line)[1:]
	}
	for line := range strings.Lines(strings.TrimSpace(requests)) {
		f := append(strings.Fields(line), "")
		ids := map[string]string{"": f[0]}
		switch {
		case strings.Contains(line, "LETTER"):
			ids = letters
		case strings.Contains(line, "RUN"):
			ids = runs
		}
		for id, what := range ids {
			if f[0] != "run" {
				what = f[0]
			}
			for i, name := range who {
				l := call{f[1], fill(f[2], id), fill(f[3], id)}
				through.n = 0
				got := verdict(l.by(handler, c.Tokens.Secret(strings.ReplaceAll(name, "/", "-"))))
				if want := verdicts[what][i]; got != want {
					t.Errorf("%s asks %s %s %s (%s): %s, want %s", name, l.method, l.path, l.body, what, got, want)
				}
				decides := f[1] == http.MethodPost && what != "read" && what != "report" && strings.HasPrefix(l.path, "/api/")
				if got != "in" && through.n != 0 || decides && got == "in" && through.n == 0 {
					t.Errorf("%s asks %s %s %s: %s, and %d decisions come through", name, l.method, l.path, l.body, got, through.n)
				}
			}
		}
	}
	c.everyRoute()
}

func fill(text, id string) string { return strings.NewReplacer("LETTER", id, "RUN", id).Replace(text) }

// everyState are dead letters of the team faturamento in each state, and bulk runs with what it takes to steer them.
func (c *fixture) everyState() (letters, runs map[string]string) {
	letters = map[string]string{c.permanent("CLM-001-1"): "", c.exhausted("CLM-002-1"): ""}
	for claim, decide := range map[string]func(context.Context, deadletter.Command) (deadletter.Item, error){"CLM-003-1": c.DeadLetters.Retry, "CLM-004-1": c.DeadLetters.Discard} {
		id := c.permanent(claim)
		_, err := decide(c.t.Context(), deadletter.Command{ID: id, Reason: "x", By: "ana", When: deadletter.Now})
		if err != nil {
			c.t.Fatal(err)
		}
		letters[id] = ""
	}
	runs = map[string]string{}
	for what, command := range map[string]deadletter.BulkCommand{
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
	through := &reached{DeadLetters: c.DeadLetters, Bulk: c.DeadLetters, Gates: c.Gates()}
	p := console.New(console.Options{Now: c.Now, Catalogue: catalogue.Default, Log: zap.NewNop()})
	p.Open(c.Memory, through, through, through)
	served := api.New(api.Options{Now: c.Now, Policies: c.Policies, Log: zap.NewNop(), Tokens: c.Tokens.Load,
		Pages: api.Site{Handler: p, Public: []string{console.AssetsPrefix}, Login: p.Login, Refuse: p.Refuse}})
	served.Open(api.Journal{Reader: c.Memory, Recorder: c.Journal, Store: through, DeadLetters: through, Bulk: through, Gates: through, Sessions: c.Memory})
	return served.Handler(), through
}

// publish tokens for all of those: role, or role/own, or role/other.
func (c *fixture) publish(who []string) {
	roles := map[string]access.Role{}
	c.Tokens.Teams = map[string]access.Teams{}
	for _, name := range who[1:] { // nobody is the first
		role, bound, _ := strings.Cut(name, "/")
		parsed, err := access.ParseRole(role)
		if err != nil {
			c.t.Fatal(err)
		}
		roles[strings.ReplaceAll(name, "/", "-")] = parsed
		c.Tokens.Teams[strings.ReplaceAll(name, "/", "-")] = map[string]access.Teams{"": "", "own": "ti,faturamento", "other": "ti,cadastro"}[bound]
	}
	c.Tokens.Publish(roles, time.Time{})
}

// by asks with a token; none is nobody.
func (l call) by(handler http.Handler, secret string) *httptest.ResponseRecorder {
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

// everyRoute fails unless each operation that is described stands in requests.
func (c *fixture) everyRoute() {
	asked := strings.Split(requests, "\n")
	for name, l := range calls(known{dead: "LETTER", running: "RUN", paused: "RUN", cause: "CAUSE"}) {
		if !slices.ContainsFunc(asked, func(line string) bool {
			f := append(strings.Fields(line), "", "", "")
			return f[1] == l.method && f[2] == "/api/v1"+l.path
		}) {
			c.t.Errorf("%s stands in no request", name)
		}
	}
}

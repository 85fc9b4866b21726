package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// The names under which the engine knows the two versions.
const (
	nameBefore = "before"
	nameAfter  = "after"
)

// fixture is one journal with the programs that come and go on it.
type fixture struct {
	t         *testing.T
	url       string // of the journal
	folder    string
	processes *processes
	receiver  *receiver
	programs  []*program
}

func newFixture(t *testing.T, url string) *fixture {
	t.Helper()
	s := &fixture{t: t, url: url, folder: t.TempDir(), processes: startProcesses(t), receiver: openReceiver(t)}
	testkit.Must(t, os.WriteFile(s.path("secret"), []byte(secret), 0o600))
	testkit.Must(t, os.WriteFile(s.path("policies.yaml"), []byte(harness.Teams(t, string(catalogue.Default().YAML()), map[string][]string{
		teamOfStays: {"webhook: {url: " + s.receiver.URL + ", secretFile: " + s.path("secret") + "}"},
	})), 0o600))
	return s
}

func (s *fixture) path(name string) string { return filepath.Join(s.folder, name) }

// program is one life of one version.
type program struct {
	*harness.Worker
	s    *fixture
	name string
	path string
}

// ordinary events, of which there is one for each case.
var ordinary = []string{"review_waiting", "permanent_error_detected", "retry_scheduled", "retry_outcome_recorded", "input_rejected", "review_delivered",
	"decision_replayed", "nobody_told"}

// begin a life of a version.
func (s *fixture) begin(name string) *program {
	s.t.Helper()
	p := &program{s: s, name: name, path: harness.Binary(s.t)}
	settings := harness.Settings(s.processes.Addr(), s.folder, "RETRY_WORKER_WORKER_NAME="+name, "RETRY_WORKER_DATABASE_URL="+s.url)
	if name == nameAfter {
		settings = append(settings, "RETRY_WORKER_POLICIES_FILE="+s.path("policies.yaml"), "RETRY_WORKER_WEBHOOK_ALLOW=127.0.0.1", "RETRY_WORKER_NOTIFY_INTERVAL=1s")
	}
	p.Worker = harness.StartWorker(s.t, p.path, settings)
	s.programs = append(s.programs, p)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("%s said: %s", name, p.Log.Without(ordinary...))
		}
	})
	return p
}

// end the program in order, and hold that it had nothing to complain of in all its life.
func (p *program) end() {
	p.s.t.Helper()
	if err := p.Stop(context.Background(), wait.Limit); err != nil {
		p.s.t.Fatal(err)
	}
	if err := p.Err(); err != nil {
		p.s.t.Errorf("%s ended with %v, want success", p.name, err)
	}
	p.s.quiet(p)
}

// quiet holds that a program complained of nothing.
func (s *fixture) quiet(p *program) {
	s.t.Helper()
	for line := range bytes.Lines([]byte(p.Log.Text())) {
		var l struct{ Level, Event string }
		if json.Unmarshal(line, &l) != nil || l.Level != "info" && !slices.Contains(ordinary, l.Event) {
			s.t.Errorf("%s said %s", p.name, bytes.TrimSpace(line))
		}
	}
}

// once runs a command of a version on the journal, and returns what it prints.
func (s *fixture) once(path string, args ...string) (output string, code int) {
	s.t.Helper()
	return harness.RunCommand(s.t, path, []string{"RETRY_WORKER_DATABASE_URL=" + s.url}, args...)
}

// prints is once for a command that has to succeed.
func (s *fixture) prints(path string, args ...string) string {
	s.t.Helper()
	out, code := s.once(path, args...)
	if code != 0 {
		s.t.Errorf("%s %v: exit status %d: %s", filepath.Base(path), args, code, out)
	}
	return out
}

var client = &http.Client{Timeout: 20 * time.Second}

// What the API shows, as far as the tests look at it.
type (
	deadLetter struct {
		ID, State, Delivery string
		BulkRun             *string
		Subject             struct{ ID string }
	}
	filter struct {
		Query string `json:"q,omitempty"`
	}
	command struct {
		Action    string `json:"action"`
		Filter    filter `json:"filter"`
		When      string `json:"when,omitempty"`
		PerMinute int    `json:"perMinute,omitempty"`
		Reason    string `json:"reason,omitempty"`
		Token     string `json:"token,omitempty"`
	}
	plan struct {
		Token        string
		Total, Ready int
	}
	bulkRun struct {
		ID, State string
		Total     int
		Counts    map[string]int
	}
	bulkItem struct {
		Number        int
		DeadLetterID  string
		Subject       struct{ ID string }
		Outcome, Code string
	}
)

// ask sends a request to a program's API, by POST where there is a body, and reads the answer.
func (p *program) ask(path string, body, into any) error {
	method, content := http.MethodGet, []byte(nil)
	if body != nil {
		method = http.MethodPost
		content, _ = json.Marshal(body) // texts and numbers
	}
	request, err := http.NewRequest(method, "http://"+p.API+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(response.Body); err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s of %s: %s: %s", path, p.name, response.Status, text.String())
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text.Bytes(), into)
}

// asks is ask for what has to be answered well.
func (p *program) asks(path string, body, into any) {
	p.s.t.Helper()
	testkit.Must(p.s.t, p.ask(path, body, into))
}

// decide on a claim's dead letter: retry or discard.
func (p *program) decide(what string, claims ...string) {
	p.s.t.Helper()
	for _, id := range claims {
		p.asks("/api/v1/dead-letters/"+p.s.processes.letter(id)+"/"+what, map[string]string{"reason": "decidido por uma pessoa"}, nil)
	}
}

// letters are all dead letters that a program shows, by their ids.
func (p *program) letters() map[string]deadLetter {
	p.s.t.Helper()
	all := map[string]deadLetter{}
	for cursor := ""; ; {
		var page struct {
			Items []deadLetter
			Next  *string
		}
		p.asks("/api/v1/dead-letters?state=all&limit=100&cursor="+cursor, nil, &page)
		for _, l := range page.Items {
			all[l.ID] = l
		}
		if page.Next == nil {
			return all
		}
		cursor = *page.Next
	}
}

// perMinute is the pace of bulk runs: some that a test can follow.
const perMinute = 240

// plans a retry of the wave's dead letters, once n of them can be sent again.
func (p *program) plans(wave string, n int) (command, plan) {
	p.s.t.Helper()
	c, planned := command{Action: "retry", Filter: filter{Query: "CLM-" + wave + "-"}, When: "now", PerMinute: perMinute}, plan{}
	wait.Until(p.s.t, fmt.Sprintf("%d of %s to be ready", n, wave), func() bool {
		p.asks("/api/v1/bulk-runs/plan", c, &planned)
		return planned.Ready == n
	}, func() string { return fmt.Sprintf("%+v", planned) })
	return c, planned
}

// starts a run that sends a wave's n dead letters again, and returns when it is under way.
func (p *program) starts(wave string, n int) (r bulkRun) {
	p.s.t.Helper()
	c, planned := p.plans(wave, n)
	c.Token, c.Reason = planned.Token, "a causa foi corrigida"
	p.asks("/api/v1/bulk-runs", c, &r)
	return p.awaits(r.ID, fmt.Sprintf("%d dead letters to be in the run, and some decided", n), func(r *bulkRun) bool { return r.Total == n && r.decided() >= 2 })
}

// decided is how many of a run are decided, whatever became of them.
func (r *bulkRun) decided() int { return r.Total - r.Counts["planned"] - r.Counts["refused"] }

// awaits a run to be as it should.
func (p *program) awaits(id, what string, so func(*bulkRun) bool) (r bulkRun) {
	p.s.t.Helper()
	wait.Until(p.s.t, what, func() bool {
		r = bulkRun{}
		p.asks("/api/v1/bulk-runs/"+id, nil, &r)
		return so(&r)
	}, func() string { return fmt.Sprintf("%+v", r) })
	return r
}

// items of a run.
func (p *program) items(id string) (all []bulkItem) {
	p.s.t.Helper()
	var page struct{ Items []bulkItem }
	p.asks("/api/v1/bulk-runs/"+id+"/items?limit=100", nil, &page)
	return page.Items
}

// finished waits for the end of a run, and holds what became of each claim in it.
func (p *program) finished(id string, want map[string]string) {
	p.s.t.Helper()
	p.awaits(id, "the run to end", func(r *bulkRun) bool {
		return r.State == "done" && r.Counts["planned"]+r.Counts["decided"]+r.Counts["taken"] == 0
	})
	items := p.items(id)
	if len(items) != len(want) {
		p.s.t.Errorf("the run has %d items, want %d", len(items), len(want))
	}
	for _, i := range items {
		got := i.Outcome
		if i.Code != "" {
			got += " " + i.Code
		}
		if got != want[i.Subject.ID] {
			p.s.t.Errorf("item %d, of %s, is %q, want %q", i.Number, i.Subject.ID, got, want[i.Subject.ID])
		}
	}
}

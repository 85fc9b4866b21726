package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	"retry-worker/internal/testkit/wait"
)

// person works at the API of the worker that lives now.
type person struct {
	s    *bulkRuns
	name string
}

func (s *bulkRuns) by(name string) person { return person{s, name} }

// api is the API of the worker that lives now, with the person's token.
func (d person) api() api { return api{&process{d.s.life, ""}, d.s.tokens[d.name]} }

// What the API shows, as far as the tests look at it.
type (
	filter struct {
		Fingerprint string `json:"fingerprint,omitempty"`
	}
	command struct {
		Action    string `json:"action"`
		Filter    filter `json:"filter"`
		When      string `json:"when,omitempty"`
		PerMinute int    `json:"perMinute,omitempty"`
		Reason    string `json:"reason,omitempty"`
		Token     string `json:"token,omitempty"`
	}
	group struct {
		Fingerprint, Policy, Reason, MatchedRule, Pattern string
		Count                                             int
		FirstSeen, LastSeen                               time.Time
		Teams                                             []string
		Sample                                            deadLetter
	}
	plan struct {
		Token        string
		Total, Ready int
		Causes       []group
	}
	run struct {
		ID, Action, State, By, Reason string
		Hold, ChangedBy               string
		PerMinute, Total              int
		Counts                        map[string]int
		CreatedAt                     time.Time
		HeldAt, StartedAt, EndedAt    *time.Time
	}
	item struct {
		Number       int
		DeadLetterID string
		Subject      struct{ ID string }
		Outcome      string
		Code         string
		DecidedAt    *time.Time
	}
	refusal struct{ Error, Message string }
)

// ask sends a request, and reads the answer into answer where it has that status; it returns what was said otherwise. body
// nil asks by GET.
func (d person) ask(path string, body any, status int, answer any) (refusal, error) {
	var raw json.RawMessage
	got, err := d.api().ask(d.s.t.Context(), path, body, &raw)
	if err != nil {
		return refusal{}, err
	}
	if got == status {
		return refusal{}, json.Unmarshal(raw, answer)
	}
	said := refusal{}
	_ = json.Unmarshal(raw, &said) // a status says enough
	return said, fmt.Errorf("%s: %d, %s: %s; expected %d", path, got, said.Error, said.Message, status)
}

// get reads what must be there.
func (d person) get(path string, answer any) {
	d.s.t.Helper()
	if _, err := d.ask(path, nil, http.StatusOK, answer); err != nil {
		d.s.t.Fatal(err)
	}
}

// groups of the open dead letters.
func (d person) groups() []group {
	d.s.t.Helper()
	var page struct{ Items []group }
	d.get("/dead-letters/groups?limit=200", &page)
	return page.Items
}

// plan says what a command would do.
func (d person) plan(c command) (p plan) {
	d.s.t.Helper()
	c.Reason, c.Token = "", "" // which a plan has not
	if _, err := d.ask("/bulk-runs/plan", c, http.StatusOK, &p); err != nil {
		d.s.t.Fatal(err)
	}
	return p
}

// start a run of a plan.
func (d person) start(c command, p plan) (r run) {
	d.s.t.Helper()
	c.Token = p.Token
	if _, err := d.ask("/bulk-runs", c, http.StatusCreated, &r); err != nil {
		d.s.t.Fatal(err)
	}
	return r
}

// step is pause, resume or cancel.
func (d person) step(id, verb string) (r run) {
	d.s.t.Helper()
	if _, err := d.ask("/bulk-runs/"+id+"/"+verb, struct{}{}, http.StatusOK, &r); err != nil {
		d.s.t.Fatal(err)
	}
	return r
}

// run as it stands now.
func (d person) run(id string) (r run) {
	d.s.t.Helper()
	d.get("/bulk-runs/"+id, &r)
	return r
}

// awaitRun waits until a run is as it should be.
func (d person) awaitRun(id, what string, so func(*run) bool) run {
	d.s.t.Helper()
	var r run
	wait.Until(d.s.t, what, func() bool {
		r = d.run(id)
		return so(&r)
	}, func() string { return fmt.Sprintf("%+v", r) })
	return r
}

// items of a run, all of them.
func (d person) items(id string) []item {
	d.s.t.Helper()
	var all []item
	for after := 0; ; {
		var page struct {
			Items []item
			Next  *int
		}
		d.get(fmt.Sprintf("/bulk-runs/%s/items?limit=200&after=%d", id, after), &page)
		all = append(all, page.Items...)
		if page.Next == nil {
			return all
		}
		after = *page.Next
	}
}

// decided is how many of a run are decided, whatever became of them.
func (r run) decided() int {
	n := 0
	for outcome, count := range r.Counts {
		if outcome != "planned" && outcome != "refused" {
			n += count
		}
	}
	return n
}

// has holds a run's counts; those that are not named are 0.
func (r run) has(want map[string]int) bool {
	got := maps.Clone(r.Counts)
	maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
	return maps.Equal(got, want)
}

package bulk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// desk is where one of the people works: the worker's API.
type desk struct {
	s    *site
	name string
}

func (s *site) desk(name string) desk { return desk{s, name} }

// deskTime bounds a request.
const deskTime = 20 * time.Second

var client = &http.Client{Timeout: deskTime}

// What the API shows, as far as the tests look at it.
type (
	filter struct {
		Policy      string `json:"policy,omitempty"`
		Team        string `json:"team,omitempty"`
		Reason      string `json:"reason,omitempty"`
		Fingerprint string `json:"fingerprint,omitempty"`
		Query       string `json:"q,omitempty"`
	}
	command struct {
		Action    string `json:"action"`
		Filter    filter `json:"filter"`
		When      string `json:"when,omitempty"`
		PerMinute int    `json:"perMinute,omitempty"`
		Reason    string `json:"reason,omitempty"`
		Token     string `json:"token,omitempty"`
	}
	deadLetter struct {
		ID, State, Process, Delivery, BulkRun, Fingerprint, Reason string
		Subject                                                    struct{ ID string }
		Review                                                     *struct{ Decision, Reason, By string }
	}
	group struct {
		Fingerprint, Policy, Reason, MatchedRule, Pattern string
		Count                                             int
		FirstSeen, LastSeen                               time.Time
		Teams                                             []string
		Sample                                            deadLetter
	}
	plan struct {
		Token          string
		Total, Ready   int
		Refused        []refused
		Oldest, Newest *time.Time
		Tallies        []struct {
			Policy, Team, Reason string
			Count                int
		}
		Causes  []group
		Seconds int
	}
	refused struct {
		Code, Message string
		Count         int
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
func (d desk) ask(path string, body any, status int, answer any) (refusal, error) {
	method, content := http.MethodGet, ""
	if body != nil {
		method, content = http.MethodPost, jsonOf(body)
	}
	r, err := http.NewRequest(method, "http://"+d.s.worker.API+"/api/v1"+path, bytes.NewBufferString(content))
	if err != nil {
		return refusal{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+d.s.secrets[d.name])
	response, err := client.Do(r)
	if err != nil {
		return refusal{}, err
	}
	defer response.Body.Close()
	if response.StatusCode == status {
		return refusal{}, json.NewDecoder(response.Body).Decode(answer)
	}
	said := refusal{}
	_ = json.NewDecoder(response.Body).Decode(&said) // a status says enough
	return said, fmt.Errorf("%s %s: %s, %s: %s; expected %d", method, path, response.Status, said.Error, said.Message, status)
}

// get reads what must be there.
func (d desk) get(path string, answer any) {
	d.s.t.Helper()
	if _, err := d.ask(path, nil, http.StatusOK, answer); err != nil {
		d.s.t.Fatal(err)
	}
}

// groups of the open dead letters.
func (d desk) groups() []group {
	d.s.t.Helper()
	var page struct{ Items []group }
	d.get("/dead-letters/groups?limit=200", &page)
	return page.Items
}

// plan says what a command would do.
func (d desk) plan(c command) (p plan) {
	d.s.t.Helper()
	c.Reason, c.Token = "", "" // which a plan has not
	if _, err := d.ask("/bulk-runs/plan", c, http.StatusOK, &p); err != nil {
		d.s.t.Fatal(err)
	}
	return p
}

// start a run of a plan.
func (d desk) start(c command, p plan) (r run) {
	d.s.t.Helper()
	c.Token = p.Token
	if _, err := d.ask("/bulk-runs", c, http.StatusCreated, &r); err != nil {
		d.s.t.Fatal(err)
	}
	return r
}

// step is pause, resume or cancel.
func (d desk) step(id, verb string) (r run) {
	d.s.t.Helper()
	if _, err := d.ask("/bulk-runs/"+id+"/"+verb, struct{}{}, http.StatusOK, &r); err != nil {
		d.s.t.Fatal(err)
	}
	return r
}

// refuses holds that a command is refused with a code, and returns what is said.
func (d desk) refuses(path string, body any, status int, code string) string {
	d.s.t.Helper()
	var whatever json.RawMessage
	said, err := d.ask(path, body, status, &whatever)
	if err == nil { // the body of that status is the refusal itself
		err = json.Unmarshal(whatever, &said)
	}
	if err != nil || said.Error != code {
		d.s.t.Errorf("%s %s: %+v (%v), expected %d %s", d.name, path, said, err, status, code)
	}
	return said.Message
}

// run as it stands now.
func (d desk) run(id string) (r run) {
	d.s.t.Helper()
	d.get("/bulk-runs/"+id, &r)
	return r
}

// lookEvery is how often a run is looked at.
const lookEvery = 20 * time.Millisecond

// awaitRun waits until a run is as it should be.
func (d desk) awaitRun(id, what string, so func(*run) bool) run {
	d.s.t.Helper()
	var r run
	eventually(d.s.t, func() string { return fmt.Sprintf("%s; the run is %+v", what, r) }, func() bool {
		r = d.run(id)
		return so(&r)
	})
	return r
}

// items of a run, all of them.
func (d desk) items(id string) []item {
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

// letters are all dead letters of a state.
func (d desk) letters(state string) []deadLetter {
	d.s.t.Helper()
	var all []deadLetter
	for cursor := ""; ; {
		var page struct {
			Items []deadLetter
			Next  string
		}
		d.get("/dead-letters?limit=200&state="+state+cursor, &page)
		all = append(all, page.Items...)
		if page.Next == "" {
			return all
		}
		cursor = "&cursor=" + url.QueryEscape(page.Next)
	}
}

// eventually waits until something is so; what says what is waited for.
func eventually(t *testing.T, what func() string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for deadline := time.After(enough); !so(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited %v for %s", enough, what())
		}
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

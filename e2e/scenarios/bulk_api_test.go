package scenarios

import (
	"maps"

	views "retry-worker/internal/api"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// person works at the API of the worker that lives now.
type person struct {
	s    *bulkRuns
	name string
}

func (s *bulkRuns) by(name string) person { return person{s, name} }

// api is the API of the worker that lives now, with the person's token.
func (d person) api() api { return api{d.s.worker, d.s.tokens[d.name]} }

// command is one of a bulk run; a plan has neither reason nor token.
type command struct {
	views.BulkCommand
	Reason string `json:"reason,omitempty"`
	Token  string `json:"token,omitempty"`
}

type run struct{ views.BulkRun }

// text of a field that may be null.
func text(of *string) string {
	if of == nil {
		return ""
	}
	return *of
}

// ask sends a request, which must be carried out; body nil asks by GET.
func (d person) ask(path string, body, answer any) {
	d.s.t.Helper()
	testkit.Must(d.s.t, d.api().ask(d.s.t.Context(), path, body, answer))
}

// groups of the open dead letters.
func (d person) groups() []views.DeadLetterGroup {
	d.s.t.Helper()
	var page views.Page[views.DeadLetterGroup]
	d.ask("/dead-letters/groups?limit=200", nil, &page)
	return page.Items
}

// plan says what a command would do.
func (d person) plan(c command) (p views.BulkPlan) {
	d.s.t.Helper()
	d.ask("/bulk-runs/plan", c.BulkCommand, &p)
	return p
}

// start a run of a plan.
func (d person) start(c command, p views.BulkPlan) (r run) {
	d.s.t.Helper()
	c.Token = p.Token
	d.ask("/bulk-runs", c, &r)
	return r
}

// step is pause, resume or cancel.
func (d person) step(id, verb string) (r run) {
	d.s.t.Helper()
	d.ask("/bulk-runs/"+id+"/"+verb, struct{}{}, &r)
	return r
}

// run as it stands now.
func (d person) run(id string) (r run) {
	d.s.t.Helper()
	d.ask("/bulk-runs/"+id, nil, &r)
	return r
}

// items of a run, all of them.
func (d person) items(id string) (all []views.BulkItem) {
	d.s.t.Helper()
	for cursor := ""; ; {
		var page views.Page[views.BulkItem]
		d.ask("/bulk-runs/"+id+"/items?limit=200&cursor="+cursor, nil, &page)
		all = append(all, page.Items...)
		if page.Next == nil {
			return all
		}
		cursor = *page.Next
	}
}

// decided is how many of a run are decided, whatever became of them.
func (r run) decided() (n int64) {
	for outcome, count := range r.Counts {
		if outcome != journal.BulkPlanned && outcome != journal.BulkRefused {
			n += count
		}
	}
	return n
}

// has holds a run's counts; those that are not named are 0.
func (r run) has(want map[journal.BulkOutcome]int64) bool {
	got := maps.Clone(r.Counts)
	maps.DeleteFunc(got, func(_ journal.BulkOutcome, n int64) bool { return n == 0 })
	return maps.Equal(got, want)
}

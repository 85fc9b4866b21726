package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// planForm is the form of a plan as it was sent.
type planForm struct {
	Action, How, When, PerMinute string
	Reason                       string
	Ticked                       bool // that all open ones are meant
	filter                       journal.DeadLetterFilter
}

// replan answers POST /bulk-runs/new with the plan for other settings. It leads to the plan's own address, which can be
// sent to others, unless a person has begun to fill in the start: no address holds a reason.
func (p *Pages) replan(v *visit) *page {
	f, wrong := v.planForm(v.r.PostForm)
	if f.Reason != "" || f.Ticked || wrong != "" {
		return p.planRun(v)
	}
	return v.to(f.address() + "#result")
}

// address returns the address of the plan.
func (f *planForm) address() string {
	settings := []field{{"action", f.Action}, {"how", f.How}, {"when", f.When}, {"perMinute", f.PerMinute}}
	return address("/bulk-runs/new", append(fieldsOf(&f.filter), settings...)...)
}

// planRun answers GET /bulk-runs/new with a plan, which changes nothing.
func (p *Pages) planRun(v *visit) *page {
	_ = v.r.ParseForm() // the gate has refused a form that cannot be read; of an address what can be read counts
	f, unread := v.planForm(v.r.Form)
	d := view{"Form": f, "Filter": &f.filter, "Fields": fieldsOf(&f.filter), "Change": listURL(f.filter),
		"Most": journal.MaxPerMinute, "MayNot": v.mayNotStart(f), "Plan": nil, "Everything": false, "Changed": ""}
	pg := &page{name: "plan", data: d, fixed: true}
	wrong, field := "", ""
	plan, err := v.o.Plan(v.r.Context(), f.command())
	switch code := journal.CodeOf(err); {
	case unread != "":
		wrong, field = v.wrongFilter(unread, v.r.Form), "filter"
	case code != "":
		wrong, field = v.Or("plan.wrong."+string(code), v.T("plan.wrong.filter")), fieldOf[code]
	default:
		check(err)
		v.plan(d, &plan)
		// Everything is a plan for all open ones, which a person must confirm: f excludes none, or there are no others.
		all := journal.DeadLetterFilter{}
		d["Everything"] = plan.Total > 0 && !narrowed(f.filter) || plan.Total > 1 && plan.Total >= sumOf(v.counts(all), &all).N
	}
	if wrong != "" {
		pg.status = http.StatusUnprocessableEntity
	}
	if s := &v.Sent; s.Verb != "" { // of a run that was not started
		pg.status, wrong, field = s.status, cmp.Or(s.Wrong, wrong), cmp.Or(s.Field, field)
		if d["Plan"] != nil {
			d["Changed"] = v.changed(&plan, s.form, wrong == "")
		}
	}
	d["Wrong"], d["WrongField"] = wrong, field
	return pg
}

// changed says how a plan differs from the one that was to be started. If others are planned in place of as many, it
// says so only if nothing else was wrong.
func (v *visit) changed(p *deadletter.Plan, then url.Values, others bool) string {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(then.Get(name), 10, 64) // the page's own field; without it 0
		return n
	}
	total, ready := number("total"), number("ready")
	switch {
	case p.Total != total || p.Ready != ready:
		return v.T("plan.changed", v.Number(total), v.Number(ready), v.Number(p.Total), v.Number(p.Ready))
	case others:
		return v.T("plan.changed.others", v.Number(total))
	}
	return ""
}

// plan adds a plan in words to d: how many would not be decided and why, and its causes, if there are more than those.
func (v *visit) plan(d view, p *deadletter.Plan) {
	var why []deadletter.RefusedCount // by what the page says, which is the same for several messages
	for _, r := range p.Refused {
		r.Message = v.Or("refused."+string(r.Code), r.Message)
		same := func(of deadletter.RefusedCount) bool { return of.Message == r.Message }
		if at := slices.IndexFunc(why, same); at >= 0 {
			why[at].Count += r.Count
		} else {
			why = append(why, r)
		}
	}
	named := int64(0)
	for i := range p.Causes {
		named += p.Causes[i].N
	}
	d["Plan"], d["LeftOut"], d["Why"] = p, p.Total-p.Ready, why
	d["MoreCauses"] = named < p.Total
}

// reasonOf returns a text of several lines, trimmed, with \n for the line breaks that browsers send.
func reasonOf(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }

// planForm reads a form; wrong names a field of the filter that cannot be read.
func (v *visit) planForm(q url.Values) (f *planForm, wrong string) {
	choice := func(name string, known ...string) string {
		if value := q.Get(name); slices.Contains(known, value) {
			return value
		}
		return known[0]
	}
	f = &planForm{
		Action:    choice("action", string(journal.BulkRetry), string(journal.BulkDiscard), string(journal.BulkAccept)),
		How:       choice("how", "next", "force", "fresh"),
		When:      choice("when", deadletter.Backoff, deadletter.Now),
		PerMinute: cmp.Or(plain(q.Get("perMinute"), maxQueryBytes), strconv.Itoa(deadletter.DefaultPerMinute)),
		Reason:    reasonOf(q.Get("why")), Ticked: q.Get("everything") == "yes",
	}
	if f.filter, wrong = v.filterOf(q); wrong == "state" {
		wrong = "" // a plan is always of open ones
	}
	f.filter.State = ""
	if v.r.Method == http.MethodPost {
		v.at, _ = url.Parse(f.address()) // it can be parsed
	}
	return f, wrong
}

func (f *planForm) command() journal.BulkCommand {
	pace, err := strconv.ParseInt(f.PerMinute, 10, 64)
	if err != nil || pace == 0 {
		pace = -1 // this is refused; 0 would mean the default
	}
	c := journal.BulkCommand{Action: journal.BulkAction(f.Action), Filter: f.filter, Reason: f.Reason, PerMinute: pace}
	if c.Action == journal.BulkRetry {
		c.Force, c.Fresh, c.When = f.How != "next", f.How == "fresh", f.When
	}
	return c
}

// mayNotStart says why the reader may not start what f asks for; empty if he may.
func (v *visit) mayNotStart(f *planForm) string {
	switch start := access.Bulk.Anew(f.command().Fresh); {
	case v.who.May(start, string(f.filter.Team)):
		return ""
	case !v.who.Role.May(start), v.who.Teams == "", v.who.Teams == access.NoTeam:
		return v.T("plan.may_not", v.Role())
	default:
		return v.T("plan.may_not.team", v.ownTeams())
	}
}

// startRun answers POST /bulk-runs: it starts what was planned, or shows a new plan that says what is wrong.
func (p *Pages) startRun(v *visit) *page {
	form := v.r.PostForm
	f, wrong := v.planForm(form)
	if wrong != "" {
		check(&problem{status: http.StatusBadRequest, key: "refused.invalid_form"})
	}
	if (form.Get("all") == "yes" || !narrowed(f.filter)) && !f.Ticked {
		return v.again(sent{Wrong: v.T("plan.wrong.everything"), Field: "everything"}, p.planRun)
	}
	run, _, err := v.o.Start(v.r.Context(), f.command(), form.Get("token"))
	if journal.CodeOf(err) == deadletter.PlanOutdated {
		return v.again(sent{status: http.StatusConflict}, p.planRun)
	}
	return v.answer(err, runURL(run.ID)+"#result", "plan.wrong.", "unstarted", p.planRun)
}

const (
	runPage    = 25 // bulk runs on a page
	recentRuns = 50 // the newest, which are searched for those that have not ended
)

func runURL(id string) string { return "/bulk-runs/" + segment(id) }

func (p *Pages) runs(v *visit) *page {
	all, next, err := v.o.Runs(v.r.Context(), v.r.URL.Query().Get("cursor"), runPage)
	check(err)
	return &page{name: "runs",
		data:    view{"Rows": all, "Outcomes": outcomeOrder[:cameTo], "Pages": v.pager("cursor", next, "")},
		summary: v.Count("runs.active", int64(len(active(all))))}
}

// active returns the runs that have not ended.
func active(all []journal.BulkRun) []journal.BulkRun {
	return slices.DeleteFunc(slices.Clone(all), func(r journal.BulkRun) bool { return r.State.Ended() })
}

// Through returns how many of a run's dead letters are no longer planned.
func (v *visit) Through(r journal.BulkRun) int64 { return r.Total - r.Counts[journal.BulkPlanned] }

// outcomeOrder is the order in which pages show outcomes: ended well, ended otherwise, on the way, still planned.
var outcomeOrder = []journal.BulkOutcome{
	journal.BulkRecovered, journal.BulkAccepted, journal.BulkDiscarded, journal.BulkDeadAgain, journal.BulkNobody, journal.BulkSuperseded,
	journal.BulkRefused,
	journal.BulkTaken, journal.BulkDecided, journal.BulkPlanned,
}

// cameTo is how many outcomes, at the front of outcomeOrder, are final.
const cameTo = 7

// lasting returns a duration rounded as people say it: 45 s, 6 min, 2 h 40 min.
func (l Lang) lasting(d time.Duration) string {
	if d > 10*time.Minute {
		d = d.Round(time.Minute)
	}
	return l.fine(d.Round(time.Second))
}

// run answers GET /bulk-runs/{id}?outcome=&after=: how far it is, what became of each, and what can be done.
func (p *Pages) run(v *visit) *page {
	r := must(v.o.Run(v.r.Context(), v.r.PathValue("id")))
	q := v.r.URL.Query()
	outcome := journal.BulkOutcome(q.Get("outcome")) // which the items are filtered by
	if !slices.Contains(journal.BulkOutcomes(), outcome) {
		outcome = ""
	}
	after, _ := strconv.ParseInt(q.Get("after"), 10, 64) // without a number: the first page
	items, next := must(v.o.Items(v.r.Context(), r.ID, outcome, max(after, 0), pageRows+1)), int64(0)
	if len(items) > pageRows {
		items = items[:pageRows]
		next = items[pageRows-1].Number
	}
	left := r.Counts[journal.BulkPlanned]
	lasts, ends := v.pacing(&r, left)
	return &page{name: "bulk-run", title: v.Say("run.what", &r), summary: v.Say("run.summary", &r),
		data: view{"Run": &r, "Left": left, "Lasts": lasts, "Ends": ends,
			"Outcomes": outcomeOrder, "Outcome": outcome, "Items": items, "Pages": v.pager("after", key(next), "#items"),
			"MayNot": v.mayNot(access.Bulk.Anew(r.Fresh), r.Filter.Team, "run.may_not")}}
}

// pacing says how long the deciding of those that are left takes at the run's pace, and when it ends; empty if none are
// left or the end is not known.
func (v *visit) pacing(r *journal.BulkRun, left int64) (lasts, ends string) {
	if left < 1 || r.PerMinute < 1 || r.State.Ended() {
		return "", ""
	}
	lasting := takes(float64(left), float64(r.PerMinute))
	if r.State == journal.BulkRunning && !r.Held {
		// To the minute: a page that changed every second would be sent every second.
		ends = v.Brief(v.Now.Add(lasting).Add(30 * time.Second).Truncate(time.Minute))
	}
	return v.lasting(lasting), ends
}

// Share returns the share of n in a total.
func (v *visit) Share(n, total int64) string {
	return v.Decimal(100*float64(n)/float64(total), 1) + " %"
}

// steer answers POST /bulk-runs/{id}/pause, …/resume and …/cancel, and leads back to the run's page.
func (p *Pages) steer(v *visit) *page {
	id := v.r.PathValue("id")
	_, err := v.o.Steer(v.r.Context(), id, journal.BulkVerb(v.verb()))
	return v.answer(err, runURL(id)+"#result", "run.wrong.", "unsteered", p.run)
}

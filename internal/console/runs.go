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

// planData is what would happen to many dead letters, and the forms that change and start the plan.
type planData struct {
	planForm
	// Filter is in words; Fields hold it for the forms. Change is the address of its list.
	Filter []fact
	Fields []field
	Change string
	// Everything reports whether the plan is for all open dead letters, which a person must confirm.
	Everything bool
	Plan       *planShown
	// Wrong is why nothing was started or planned; Changed is how the plan differs from the one shown before.
	Wrong, WrongField, Changed string
	// MayNot says why the reader may not start it; empty if he may.
	MayNot string
	V      *visit
	Most   int64 // per minute
}

// planForm is the form of a plan as it was sent.
type planForm struct {
	Action, How, When, PerMinute string
	Reason                       string
	// Asked reports whether the form asked to confirm that all is meant, Ticked whether the person confirmed it.
	Asked, Ticked bool
	// Sealed is the token of the plan to start; empty before the first.
	Sealed string
	filter journal.DeadLetterFilter
}

// planShown is a plan in words.
type planShown struct {
	*deadletter.Plan
	Why    []refusedRow
	Causes []causeRow
	// MoreCauses reports whether there are others.
	MoreCauses bool
}

// refusedRow is one reason why dead letters would not be decided.
type refusedRow struct {
	Text string
	N    int64
}

// LeftOut returns how many would not be decided.
func (p *planShown) LeftOut() int64 { return p.Total - p.Ready }

// planRun answers GET and POST /bulk-runs/new with a plan, which changes nothing.
func (p *Pages) planRun(v *visit) *page {
	check(v.r.ParseForm()) // which the gate has done for a POST
	f, wrong := v.planForm(v.r.Form)
	d := &planData{planForm: *f, Fields: fieldsOf(&f.filter), Change: listURL(f.filter), V: v, Most: journal.MaxPerMinute,
		MayNot: v.mayNotStart(f), Filter: v.filterFacts(&f.filter)}
	plan, err := v.o.Plan(v.r.Context(), f.command())
	switch code := journal.CodeOf(err); {
	case wrong != "":
		d.Wrong, d.WrongField = v.wrongFilter(wrong, v.r.Form), "filter"
	case code != "":
		d.Wrong, d.WrongField = v.Or("plan.wrong."+string(code), v.T("plan.wrong.filter")), deadletter.FieldOf(code)
	default:
		check(err)
		d.Plan, d.Everything = v.plan(&plan), v.everything(&f.filter, plan.Total)
	}
	pg := &page{name: "plan", section: "bulk-runs", title: v.T("plan.title"), data: d, fixed: true}
	if d.Wrong != "" {
		pg.status = http.StatusUnprocessableEntity
	}
	if s := &v.Sent; s.Verb != "" { // of a run that was not started
		pg.status, d.Wrong, d.WrongField = s.status, cmp.Or(s.Wrong, d.Wrong), cmp.Or(s.Field, d.WrongField)
		v.changes(d, s.form)
	}
	return pg
}

// changes says how a plan differs from the one that was to be started.
func (v *visit) changes(d *planData, then url.Values) {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(then.Get(name), 10, 64) // the page's own field; without it 0
		return n
	}
	total, ready := number("total"), number("ready")
	switch {
	case d.Plan == nil:
	case d.Plan.Total != total || d.Plan.Ready != ready:
		d.Changed = v.T("plan.changed", v.Number(total), v.Number(ready), v.Number(d.Plan.Total), v.Number(d.Plan.Ready))
	case d.Wrong == "":
		d.Changed = v.T("plan.changed.others", v.Number(total))
	}
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
		Reason:    reasonOf(q.Get("why")), Asked: q.Get("all") == "yes", Ticked: q.Get("everything") == "yes",
		Sealed: q.Get("token"),
	}
	if f.filter, wrong = v.filterOf(q); wrong == "state" {
		wrong = "" // a plan is always of open ones
	}
	f.filter.State = ""
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

// everything reports whether a plan of total dead letters is for all open ones: f excludes none, or no others exist.
func (v *visit) everything(f *journal.DeadLetterFilter, total int64) bool {
	all := journal.DeadLetterFilter{}
	return total > 0 && !narrowed(*f) || total > 1 && total >= sumOf(v.counts(all), &all).N
}

func (v *visit) plan(p *deadletter.Plan) *planShown {
	s, named := &planShown{Plan: p}, int64(0)
	for _, r := range p.Refused {
		text := v.Or("refused."+string(r.Code), r.Message)
		row := rowOf(&s.Why, func(row *refusedRow) bool { return row.Text == text })
		row.Text, row.N = text, row.N+r.Count
	}
	for i := range p.Causes {
		named += p.Causes[i].N
	}
	s.Causes = v.causeRows(p.Causes, p.Command.Filter)
	s.MoreCauses = named < p.Total
	return s
}

// startRun answers POST /bulk-runs: it starts what was planned, or shows a new plan that says what is wrong.
func (p *Pages) startRun(v *visit) *page {
	f, wrong := v.planForm(v.r.PostForm)
	if wrong != "" {
		check(&problem{status: http.StatusBadRequest, key: "refused.invalid_form"})
	}
	if (f.Asked || !narrowed(f.filter)) && !f.Ticked {
		return v.again(sent{Wrong: v.T("plan.wrong.everything"), Field: "everything"}, p.planRun)
	}
	run, _, err := v.o.Start(v.r.Context(), f.command(), f.Sealed)
	if journal.CodeOf(err) == deadletter.PlanOutdated {
		return v.again(sent{status: http.StatusConflict}, p.planRun)
	}
	return v.answer(err, runURL(run.ID)+"#result", "plan.wrong.", "unstarted", p.planRun)
}

const (
	runPage = 25 // bulk runs on a page
	// recentRuns is how many of the newest runs are searched for those that have not ended.
	recentRuns = 50
)

type runsData struct {
	V    *visit
	Rows []runRow
	pager
}

type runRow struct {
	journal.BulkRun
	// What says what is done, and to how many; Filter says to which.
	What, Filter string
	State        Badge
	// Progress is in words; Through is how many of Total are no longer planned.
	Progress string
	Through  int64
	// Came says what became of those that have a final outcome.
	Came string
}

func runURL(id string) string { return "/bulk-runs/" + segment(id) }

func (p *Pages) runs(v *visit) *page {
	all, next, err := v.o.Runs(v.r.Context(), v.r.URL.Query().Get("cursor"), runPage)
	check(err)
	d := &runsData{v, each(all, v.runRow), v.pager("cursor", next, "")}
	return &page{name: "bulk-runs", section: "bulk-runs", title: v.T("runs.title"), data: d,
		summary: v.Count("runs.active", int64(len(active(all))))}
}

// active returns the runs that have not ended.
func active(all []journal.BulkRun) []journal.BulkRun {
	return slices.DeleteFunc(slices.Clone(all), func(r journal.BulkRun) bool { return r.State.Ended() })
}

func (v *visit) runRow(r *journal.BulkRun) runRow {
	row := runRow{BulkRun: *r, What: v.Count("run.what."+string(r.Action), r.Total), State: v.badge("run.state", r.State),
		Through: r.Total - r.Counts[journal.BulkPlanned], Came: v.came(r, outcomeOrder[:cameTo])}
	row.Progress = v.T("run.progress", v.Number(row.Through), v.Number(r.Total))
	if r.Held {
		row.State = Badge{"warn", v.T("run.state.held")}
	}
	words := each(v.filterFacts(&r.Filter), func(f *fact) string { return f.Name + ": " + f.Value })
	row.Filter = cmp.Or(strings.Join(words, " · "), v.T("runs.everything"))
	return row
}

// came says how many dead letters of a run have each of the outcomes.
func (v *visit) came(r *journal.BulkRun, outcomes []journal.BulkOutcome) string {
	var words []string
	for _, outcome := range outcomes {
		if n := r.Counts[outcome]; n > 0 {
			words = append(words, v.T("outcome."+string(outcome))+": "+v.Number(n))
		}
	}
	return strings.Join(words, ", ")
}

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

// runData is one bulk run: how far it is, what became of each, and what can be done.
type runData struct {
	runRow
	V     *visit
	Facts []fact // of its filter
	// Left is the number of dead letters that are not decided yet. Lasts is how long they take at the run's pace, and Ends
	// when that will be; empty if none are left or the end is not known.
	Left        int64
	Lasts, Ends string
	Outcomes    []journal.BulkOutcome
	Items       []journal.BulkItem
	// Outcome is the one that the items are filtered by; empty for all.
	Outcome journal.BulkOutcome
	pager
	// MayNot says why the reader may not steer it; empty if he may.
	MayNot string
}

// run answers GET /bulk-runs/{id}?outcome=&after=.
func (p *Pages) run(v *visit) *page {
	r := must(v.o.Run(v.r.Context(), v.r.PathValue("id")))
	d := &runData{V: v, runRow: v.runRow(&r), Facts: v.filterFacts(&r.Filter),
		MayNot: v.mayNot(access.Bulk.Anew(r.Fresh), r.Filter.Team, "run.may_not"),
		Left:   r.Counts[journal.BulkPlanned], Outcomes: outcomeOrder}
	v.pacing(d, &r)
	v.items(d, &r)
	return &page{name: "bulk-run", section: "bulk-runs", title: d.What, data: d,
		summary: d.State.Word + ". " + d.Progress}
}

// pacing fills in how long the deciding takes, and when it ends.
func (v *visit) pacing(d *runData, r *journal.BulkRun) {
	if d.Left < 1 || r.PerMinute < 1 || r.State.Ended() {
		return
	}
	lasts := time.Duration(float64(d.Left) / float64(r.PerMinute) * float64(time.Minute))
	d.Lasts = v.lasting(lasts)
	if r.State == journal.BulkRunning && !r.Held {
		// To the minute: a page that changed every second would be sent every second.
		d.Ends = v.Brief(v.Now.Add(lasts).Add(30 * time.Second).Truncate(time.Minute))
	}
}

// Share returns the share of n in a total.
func (v *visit) Share(n, total int64) string {
	return v.Decimal(100*float64(n)/float64(total), 1) + " %"
}

// items fills in the page of the run's items that the address asks for.
func (v *visit) items(d *runData, r *journal.BulkRun) {
	q := v.r.URL.Query()
	if outcome := journal.BulkOutcome(q.Get("outcome")); slices.Contains(journal.BulkOutcomes(), outcome) {
		d.Outcome = outcome
	}
	after, _ := strconv.ParseInt(q.Get("after"), 10, 64) // without a number: the first page
	d.Items = must(v.o.Items(v.r.Context(), r.ID, d.Outcome, max(after, 0), pageRows+1))
	next := int64(0)
	if len(d.Items) > pageRows {
		d.Items = d.Items[:pageRows]
		next = d.Items[pageRows-1].Number
	}
	d.pager = v.pager("after", key(next), "#items")
}

// steer answers POST /bulk-runs/{id}/pause, …/resume and …/cancel, and leads back to the run's page.
func (p *Pages) steer(v *visit) *page {
	id := v.r.PathValue("id")
	_, err := v.o.Steer(v.r.Context(), id, journal.BulkVerb(v.verb()))
	return v.answer(err, runURL(id)+"#result", "run.wrong.", "unsteered", p.run)
}

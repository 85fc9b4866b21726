package console

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/journal"
)

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

func (p *Pages) runs(v *visit, o *open) (*page, error) {
	all, next, err := o.Runs(v.r.Context(), v.r.URL.Query().Get("cursor"), runPage)
	check(err)
	row := func(r *journal.BulkRun) runRow { return v.runRow(o, r) }
	d := &runsData{v, each(all, row), v.pager("cursor", next, "")}
	return &page{name: "bulk-runs", section: "bulk-runs", title: v.T("runs.title"), data: d,
		summary: v.Count("runs.active", int64(len(active(all))))}, nil
}

// active returns the runs that have not ended.
func active(all []journal.BulkRun) []journal.BulkRun {
	return slices.DeleteFunc(slices.Clone(all), func(r journal.BulkRun) bool { return r.State.Ended() })
}

func (v *visit) runRow(o *open, r *journal.BulkRun) runRow {
	row := runRow{BulkRun: *r, What: v.Count("run.what."+string(r.Action), r.Total), State: v.badge("run.state", r.State),
		Through: r.Total - r.Counts[journal.BulkPlanned], Came: v.came(r, outcomeOrder[:cameTo])}
	row.Progress = v.T("run.progress", v.Number(row.Through), v.Number(r.Total))
	if r.Held {
		row.State = Badge{"warn", v.T("run.state.held")}
	}
	words := each(v.filterFacts(o, &r.Filter), func(f *fact) string { return f.Name + ": " + f.Value })
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

const itemPage = 50 // dead letters of a run on a page

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
func (p *Pages) run(v *visit, o *open) (*page, error) {
	r := must(o.Run(v.r.Context(), v.r.PathValue("id")))
	d := &runData{V: v, runRow: v.runRow(o, &r), Facts: v.filterFacts(o, &r.Filter),
		MayNot: v.mayNot(access.Bulk.Anew(r.Fresh), r.Filter.Team, "run.may_not"),
		Left:   r.Counts[journal.BulkPlanned], Outcomes: outcomeOrder}
	v.pacing(d, &r)
	v.items(o, d, &r)
	return &page{name: "bulk-run", section: "bulk-runs", title: d.What, data: d,
		summary: d.State.Word + ". " + d.Progress}, nil
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
		d.Ends = v.Brief(v.now.Add(lasts).Add(30 * time.Second).Truncate(time.Minute))
	}
}

// Share returns the share of n in a total.
func (v *visit) Share(n, total int64) string {
	return v.Decimal(100*float64(n)/float64(total), 1) + " %"
}

// items fills in the page of the run's items that the address asks for.
func (v *visit) items(o *open, d *runData, r *journal.BulkRun) {
	q := v.r.URL.Query()
	if outcome := journal.BulkOutcome(q.Get("outcome")); slices.Contains(journal.BulkOutcomes(), outcome) {
		d.Outcome = outcome
	}
	after, _ := strconv.ParseInt(q.Get("after"), 10, 64) // without a number: the first page
	d.Items = must(o.Items(v.r.Context(), r.ID, d.Outcome, max(after, 0), itemPage+1))
	next := int64(0)
	if len(d.Items) > itemPage {
		d.Items = d.Items[:itemPage]
		next = d.Items[itemPage-1].Number
	}
	d.pager = v.pager("after", key(next), "#items")
}

// steer answers POST /bulk-runs/{id}/pause, …/resume and …/cancel, and leads back to the run's page.
func (p *Pages) steer(verb journal.BulkVerb) http.HandlerFunc {
	return p.reading(func(v *visit, o *open) (*page, error) {
		id := v.r.PathValue("id")
		_, err := o.Steer(v.r.Context(), id, verb)
		if err == nil {
			return &page{redirect: runURL(id) + "#result"}, nil
		}
		return v.refused(err, runURL(id)+"#result", "run.wrong.", "unsteered")
	})
}

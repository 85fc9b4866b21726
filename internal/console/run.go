package console

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// itemPage is how many dead letters of a run one page lists.
const itemPage = 50

// runData is one bulk run: how far it is, what became of each, and what can be done.
type runData struct {
	runRow
	// Means is what the state means, as a sentence.
	Means string
	// HeldFor is why nothing is decided for the moment, since HeldAt; empty where that is not so.
	HeldFor string
	HeldAt  Moment
	Facts   []fact
	// Changed is who paused, resumed or cancelled it, at ChangedAt.
	Changed, ChangedBy string
	ChangedAt, Ended   Moment
	Left, Pace         string
	// Lasts is how long the deciding takes yet at its pace, until about Ends; empty where nothing is left to decide.
	Lasts    string
	Ends     string
	Outcomes []outcomeRow
	Items    []journal.BulkItem
	V        *visit
	// Outcome that the items are filtered by, in words; empty for all.
	Outcome          string
	All, Next, First string
	// CanCancel reports whether its state allows to change it yet; CanResume, that it is paused.
	CanResume, CanCancel bool
	// MayNot says why the reader may not steer it; empty where he may.
	MayNot, Token, Done, Wrong string
}

// outcomeRow is how many of a run came to one end, or are on the way.
type outcomeRow struct {
	Key, Share, URL, Text string
	N                     int64
	Current               bool
}

// run answers GET /bulk-runs/{id}?outcome=&after=.
func (p *Pages) run(v *visit, o *open) (*page, error) {
	return v.runPage(o, "")
}

// runPage shows a run; wrong is why what was asked for was not done.
func (v *visit) runPage(o *open, wrong string) (*page, error) {
	run, err := o.Run(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	r := &run
	row, err := v.runRow(o, r)
	if err != nil {
		return nil, err
	}
	d := &runData{V: v, runRow: row, Wrong: wrong, Token: access.FormToken(v.r.Context()),
		CanResume: r.State == journal.BulkPaused, CanCancel: !r.State.Ended()}
	if v.forbidden(access.Bulk.Anew(r.Fresh), r.Filter.Team) != nil {
		d.MayNot = v.T("run.may_not", v.role())
	}
	if err := v.runFacts(o, d, r); err != nil {
		return nil, err
	}
	v.pacing(d, r)
	d.Outcomes = v.outcomes(r)
	if err := v.items(o, d, r); err != nil {
		return nil, err
	}
	d.Done = v.done(r)
	pg := &page{name: "bulk-run", section: "bulk-runs", title: d.What, data: d, summary: d.State.Word + ". " + d.Progress}
	if wrong != "" {
		pg.status = http.StatusConflict
	}
	return pg, nil
}

// runFacts say what was asked for, and by whom.
func (v *visit) runFacts(o *open, d *runData, r *journal.BulkRun) error {
	var err error
	if d.Facts, err = v.filterFacts(o, &r.Filter); err != nil {
		return err
	}
	if len(d.Facts) == 0 {
		d.Facts = []fact{{v.T("run.filter"), v.T("runs.everything")}}
	}
	if r.Action == journal.BulkRetry {
		d.Facts = append(d.Facts, fact{v.T("form.how"), v.howOf(r)})
	}
	d.Means = v.Or("run.means."+string(r.State), "")
	if held(r) {
		d.Means = "" // the hold says how it goes on
		d.HeldFor, d.HeldAt = v.Or("run.hold."+r.Hold, r.Hold), v.Ago(r.HeldAt)
	}
	if r.ChangedBy != "" {
		key := "run.changed.resumed"
		switch r.State {
		case journal.BulkPaused:
			key = "run.changed.paused"
		case journal.BulkCancelled:
			key = "run.changed.cancelled"
		}
		d.Changed, d.ChangedBy, d.ChangedAt = v.T(key), r.ChangedBy, v.At(r.ChangedAt)
	}
	d.At, d.Ended = v.At(r.CreatedAt), v.At(r.EndedAt)
	return nil
}

// pacing says how fast it goes, and when the deciding ends.
func (v *visit) pacing(d *runData, r *journal.BulkRun) {
	left := r.Counts[journal.BulkPlanned]
	d.Pace, d.Left = v.Number(r.PerMinute), v.Number(left)
	if left < 1 || r.PerMinute < 1 || r.State.Ended() {
		return
	}
	lasts := time.Duration(float64(left) / float64(r.PerMinute) * float64(time.Minute))
	d.Lasts = v.lasting(lasts)
	if r.State == journal.BulkRunning && !held(r) {
		// To the minute: a page that changes with each second would be sent again with each.
		ends := v.now.Add(lasts).Add(30 * time.Second).Truncate(time.Minute)
		if d.Ends = ends.In(v.zone).Format("15:04"); v.day(ends) != v.day(v.now) {
			d.Ends = v.day(ends) + " " + d.Ends
		}
	}
}

// outcomes of a run, by where its dead letters stand; those that no run of its action has are left out.
func (v *visit) outcomes(r *journal.BulkRun) []outcomeRow {
	current := journal.BulkOutcome(v.r.URL.Query().Get("outcome"))
	var rows []outcomeRow
	for _, outcome := range barOrder {
		n := r.Counts[outcome]
		if n == 0 && !slices.Contains(expected[r.Action], outcome) {
			continue
		}
		row := outcomeRow{Key: string(outcome), N: n,
			Text: v.T("outcome." + string(outcome) + ".text"),
			URL:  address(runURL(r.ID), field{"outcome", string(outcome)}) + "#items", Current: outcome == current}
		if outcome == journal.BulkPlanned && r.State == journal.BulkCancelled {
			row.Text = v.T("outcome.planned.cancelled")
		}
		if r.Total > 0 {
			row.Share = v.Decimal(100*float64(n)/float64(r.Total), 1) + " %"
		}
		rows = append(rows, row)
	}
	return rows
}

// expected outcomes of an action are shown also while there are none.
var expected = map[journal.BulkAction][]journal.BulkOutcome{
	journal.BulkRetry: {journal.BulkPlanned, journal.BulkDecided, journal.BulkRefused, journal.BulkTaken,
		journal.BulkRecovered, journal.BulkDeadAgain},
	journal.BulkDiscard: {journal.BulkPlanned, journal.BulkDecided, journal.BulkRefused, journal.BulkDiscarded},
}

// items of the run that the address asks for.
func (v *visit) items(o *open, d *runData, r *journal.BulkRun) error {
	q := v.r.URL.Query()
	outcome := journal.BulkOutcome(q.Get("outcome"))
	if !slices.Contains(journal.BulkOutcomes(), outcome) {
		outcome = "" // which is all
	}
	after, _ := strconv.ParseInt(q.Get("after"), 10, 64) // what is no number is the first page
	after = max(after, 0)
	items, err := o.Items(v.r.Context(), r.ID, outcome, after, itemPage+1)
	if err != nil {
		return err
	}
	by := field{"outcome", string(outcome)}
	if len(items) > itemPage {
		items = items[:itemPage]
		d.Next = address(runURL(r.ID), by, field{"after", strconv.FormatInt(items[itemPage-1].Number, 10)}) + "#items"
	}
	if after > 0 {
		d.First = address(runURL(r.ID), by) + "#items"
	}
	if outcome != "" {
		d.Outcome, d.All = v.T("outcome."+string(outcome)), runURL(r.ID)+"#items"
	}
	d.Items = items
	return nil
}

// done says what the reader's own action came to, for as long as that is still so.
func (v *visit) done(r *journal.BulkRun) string {
	done := v.r.URL.Query().Get("done")
	still := map[string]bool{
		"start": r.ChangedBy == "" && !r.State.Ended(), "pause": r.State == journal.BulkPaused,
		"resume": !r.State.Ended() && r.State != journal.BulkPaused, "cancel": r.State == journal.BulkCancelled,
	}
	if !still[done] {
		return ""
	}
	return v.T("run.done." + done)
}

// steer answers POST /bulk-runs/{id}/pause, …/resume and …/cancel: it changes a run as a whole, and leads back to its
// page.
func (p *Pages) steer(verb journal.BulkVerb) http.HandlerFunc {
	return p.reading(func(v *visit, o *open) (*page, error) {
		if !v.who.Role.May(access.Bulk) {
			return nil, v.forbidden(access.Bulk, "")
		}
		id := v.r.PathValue("id")
		run, err := o.Run(v.r.Context(), id)
		if err != nil {
			return nil, err
		}
		if err := v.forbidden(access.Bulk.Anew(run.Fresh), run.Filter.Team); err != nil {
			return nil, err
		}
		_, err = o.Steer(v.r.Context(), id, verb, v.who.Name)
		if err == nil {
			return &page{redirect: address(runURL(id), field{"done", string(verb)}) + "#result"}, nil
		}
		refusal := deadletter.RefusalOf(err)
		switch {
		case refusal == nil:
			return nil, &problem{status: http.StatusServiceUnavailable, key: "unsteered", cause: err}
		case refusal.Code == deadletter.RunNotFound:
			return nil, err
		default:
			return v.runPage(o, v.Or("run.wrong."+string(refusal.Code), refusal.Message))
		}
	})
}

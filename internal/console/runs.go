package console

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

const (
	// runPage is how many bulk runs one page lists.
	runPage = 25
	// recentRuns are looked through for those that have not ended.
	recentRuns = 50
)

// runsData is one page of bulk runs.
type runsData struct {
	Rows []runRow
	pager
}

// runRow is one bulk run among others.
type runRow struct {
	ID, URL string
	// What is done, to how many; Filter chose them.
	What   string
	Filter string
	Reason string
	By     string
	State  Badge
	At     Moment
	// Progress in words, and how many of Total are through.
	Progress       string
	Through, Total int64
	// Came is what became of those that were decided, as far as it is verified.
	Came string
	Held bool
}

// runURL is a bulk run's page.
func runURL(id string) string { return "/bulk-runs/" + segment(id) }

// runBadge of a run; one that is held says so.
func (l Lang) runBadge(r *journal.BulkRun) Badge {
	if held(r) {
		return Badge{"warn", l.T("run.state.held")}
	}
	return l.badge("run.state", r.State)
}

// held reports whether a run that goes on decides nothing for the moment.
func held(r *journal.BulkRun) bool {
	return r.Hold != "" && r.State == journal.BulkRunning
}

func (p *Pages) runs(v *visit, o *open) (*page, error) {
	cursor := v.r.URL.Query().Get("cursor")
	all, next, err := o.Runs(v.r.Context(), cursor, runPage)
	if errors.Is(err, deadletter.ErrBadCursor) {
		return &page{redirect: "/bulk-runs"}, nil
	}
	if err != nil {
		return nil, err
	}
	d := &runsData{}
	if d.Rows, err = v.runRows(o, all); err != nil {
		return nil, err
	}
	d.pager = pagerOf(cursor, next, func(cursor string) string { return address("/bulk-runs", field{"cursor", cursor}) })
	return &page{name: "bulk-runs", section: "bulk-runs", title: v.T("runs.title"), data: d,
		summary: v.Count("runs.active", int64(len(active(all))))}, nil
}

// active are the runs that have not ended.
func active(all []journal.BulkRun) []journal.BulkRun {
	return slices.DeleteFunc(slices.Clone(all), func(r journal.BulkRun) bool { return r.State.Ended() })
}

func (v *visit) runRows(o *open, all []journal.BulkRun) (rows []runRow, err error) {
	for i := range all {
		row, err := v.runRow(o, &all[i])
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (v *visit) runRow(o *open, r *journal.BulkRun) (runRow, error) {
	row := runRow{
		ID: r.ID, URL: runURL(r.ID), What: v.what(r), Reason: r.Reason, By: r.By, State: v.runBadge(r),
		At: v.Ago(r.CreatedAt), Progress: v.progress(r), Total: r.Total,
		Through: r.Total - r.Counts[journal.BulkPlanned], Held: held(r), Came: v.counts(r, outcomeOrder[:cameTo]),
	}
	facts, err := v.filterFacts(o, &r.Filter)
	var words []string
	for _, f := range facts {
		words = append(words, f.Name+": "+f.Value)
	}
	if row.Filter = strings.Join(words, " · "); row.Filter == "" {
		row.Filter = v.T("runs.everything")
	}
	return row, err
}

// counts say how many dead letters of a run came to each of the outcomes.
func (v *visit) counts(r *journal.BulkRun, outcomes []journal.BulkOutcome) string {
	var words []string
	for _, outcome := range outcomes {
		if n := r.Counts[outcome]; n > 0 {
			words = append(words, v.T("outcome."+string(outcome))+": "+v.Number(n))
		}
	}
	return strings.Join(words, ", ")
}

// what a run does, to how many.
func (v *visit) what(r *journal.BulkRun) string {
	return v.Count("run.what."+string(r.Action), r.Total)
}

// progress is how many of a run are decided or refused: the others wait for their turn.
func (v *visit) progress(r *journal.BulkRun) string {
	return v.T("run.progress", v.Number(r.Total-r.Counts[journal.BulkPlanned]), v.Number(r.Total))
}

// activeRuns are those that have not ended, the newest first.
func (v *visit) activeRuns(o *open) ([]runRow, error) {
	all, _, err := o.Runs(v.r.Context(), "", recentRuns)
	if err != nil {
		return nil, err
	}
	return v.runRows(o, active(all))
}

// outcomeOrder is the order of outcomes: what has ended well, what has not, what is on its way, what is to come.
var outcomeOrder = []journal.BulkOutcome{
	journal.BulkRecovered, journal.BulkAccepted, journal.BulkDiscarded, journal.BulkDeadAgain, journal.BulkNobody, journal.BulkSuperseded,
	journal.BulkRefused,
	journal.BulkTaken, journal.BulkDecided, journal.BulkPlanned,
}

// cameTo of outcomeOrder are outcomes that do not change any more.
const cameTo = 7

// lasting is how long something takes, rounded as people say it: 45 s, 6 min, 2 h 40 min.
func (l Lang) lasting(d time.Duration) string {
	if d > 10*time.Minute {
		d = d.Round(time.Minute)
	}
	return l.fine(d.Round(time.Second))
}

// howOf says how the retries of a run are made.
func (l Lang) howOf(r *journal.BulkRun) string {
	how, when := "run.how.next", "run.when.backoff"
	switch {
	case r.Fresh:
		how = "run.how.fresh"
	case r.Force:
		how = "run.how.force"
	}
	if r.When == deadletter.Now {
		when = "run.when.now"
	}
	return l.T(how) + " " + l.T(when)
}

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
	Outcome, All string
	pager
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
	sent := v.sent()
	run, err := o.Run(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	r := &run
	row, err := v.runRow(o, r)
	if err != nil {
		return nil, err
	}
	d := &runData{V: v, runRow: row, Wrong: sent.Wrong, Token: access.FormToken(v.r.Context()),
		CanResume: r.State == journal.BulkPaused, CanCancel: !r.State.Ended()}
	if !v.who.May(access.Bulk.Anew(r.Fresh), string(r.Filter.Team)) {
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
	return &page{name: "bulk-run", section: "bulk-runs", title: d.What, data: d, status: sent.Status,
		summary: d.State.Word + ". " + d.Progress}, nil
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
	for _, outcome := range outcomeOrder {
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
	journal.BulkAccept:  {journal.BulkPlanned, journal.BulkDecided, journal.BulkRefused, journal.BulkAccepted},
}

// items of the run that the address asks for.
func (v *visit) items(o *open, d *runData, r *journal.BulkRun) error {
	q := v.r.URL.Query()
	outcome := journal.BulkOutcome(q.Get("outcome"))
	if !slices.Contains(journal.BulkOutcomes(), outcome) {
		outcome = "" // which is all
	}
	after, _ := strconv.ParseInt(q.Get("after"), 10, 64) // what is no number is the first page
	items, err := o.Items(v.r.Context(), r.ID, outcome, max(after, 0), itemPage+1)
	if err != nil {
		return err
	}
	next := int64(0)
	if len(items) > itemPage {
		items = items[:itemPage]
		next = items[itemPage-1].Number
	}
	d.pager = pagerOf(key(max(after, 0)), key(next), func(after string) string {
		return address(runURL(r.ID), field{"outcome", string(outcome)}, field{"after", after}) + "#items"
	})
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
		id := v.r.PathValue("id")
		_, err := o.Steer(v.r.Context(), id, verb)
		if err == nil {
			return &page{redirect: address(runURL(id), field{"done", string(verb)}) + "#result"}, nil
		}
		refusal := deadletter.RefusalOf(err)
		switch {
		case refusal == nil:
			return nil, unsure("unsteered", err)
		case refusal.Code == deadletter.RunNotFound:
			return nil, err
		default:
			says := v.Or("run.wrong."+string(refusal.Code), refusal.Message)
			return v.again(runURL(id)+"#result", sent{Wrong: says, Status: http.StatusConflict}), nil
		}
	})
}

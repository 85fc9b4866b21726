package console

import (
	"errors"
	"slices"
	"strings"
	"time"

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
	Rows        []runRow
	Next, First string
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
	// Progress in words, and as a picture.
	Progress string
	Bar      *bar
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
	return r.Hold != "" && (r.State == journal.BulkRunning || r.State == journal.BulkPreparing)
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
	if next != "" {
		d.Next = address("/bulk-runs", field{"cursor", next})
	}
	if cursor != "" {
		d.First = "/bulk-runs"
	}
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
		At: v.Ago(r.CreatedAt), Progress: v.progress(r), Bar: v.bar(r), Held: held(r), Came: v.counts(r, barOrder[:cameTo]),
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

// what a run does, to how many once that is known.
func (v *visit) what(r *journal.BulkRun) string {
	if r.StartedAt.IsZero() {
		return v.T("run.what." + string(r.Action))
	}
	return v.Count("run.what."+string(r.Action), r.Total)
}

// progress is how many of a run are decided or refused: the others wait for their turn.
func (v *visit) progress(r *journal.BulkRun) string {
	if r.StartedAt.IsZero() {
		return v.Count("run.gathered", r.Total)
	}
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

// barOrder is the order of a bar's parts: what has ended well, what has not, what is on its way, what is to come.
var barOrder = []journal.BulkOutcome{
	journal.BulkRecovered, journal.BulkDiscarded, journal.BulkDeadAgain, journal.BulkNobody, journal.BulkSuperseded,
	journal.BulkRefused,
	journal.BulkTaken, journal.BulkDecided, journal.BulkPlanned,
}

const (
	// cameTo of barOrder are outcomes that do not change any more.
	cameTo   = 6
	barWidth = 1000.0
	// leastPart is what a part is wide at least, so that one in a thousand is seen.
	leastPart = 6.0
)

// bar is a run to scale.
type bar struct {
	ID, Title string
	Parts     []rect
}

// rect is a part of a picture, in the colour of its kind.
type rect struct {
	Kind                string
	X, Y, Width, Height float64
}

// bar of a run's outcomes, to scale but for parts that would not be seen; nil for a run with nothing in it.
func (v *visit) bar(r *journal.BulkRun) *bar {
	if r.Total < 1 {
		return nil
	}
	b := &bar{ID: "bar-" + r.ID}
	share, extra := map[journal.BulkOutcome]float64{}, 0.0
	for _, outcome := range barOrder {
		if n := r.Counts[outcome]; n > 0 {
			share[outcome] = max(barWidth*float64(n)/float64(r.Total), leastPart)
			extra += share[outcome]
		}
	}
	x := 0.0
	for _, outcome := range barOrder {
		if w := share[outcome] * barWidth / max(extra, 1); w > 0 {
			b.Parts = append(b.Parts, rect{Kind: string(outcome), X: x, Width: w})
			x += w
		}
	}
	b.Title = v.T("run.bar", v.Number(r.Total), v.counts(r, barOrder))
	return b
}

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
	if r.Now {
		when = "run.when.now"
	}
	return l.T(how) + " " + l.T(when)
}

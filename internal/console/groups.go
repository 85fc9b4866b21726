package console

import (
	"errors"
	"net/http"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

const (
	// groupPage is how many causes one page lists.
	groupPage = 50
	// mostCauses that the overview names.
	mostCauses = 5
)

// groupsData is one page of the list by its causes.
type groupsData struct {
	listData
	Causes []causeRow
}

// causeRow is one cause, with what died of it.
type causeRow struct {
	Group *deadletter.Group
	// Name is the reason in words.
	Name, Teams, Worth string
	First, Last        Moment
	// Due today of them.
	Due link
	// Show lists them, Act plans for all that are open.
	Show, Act string
}

func (p *Pages) groups(v *visit, o *open) (*page, error) {
	q := v.r.URL.Query()
	f, wrong := v.filterOf(q)
	if wrong == "" && f.State != states[0] { // causes are of what is open
		return &page{redirect: groupsURL(f, "")}, nil
	}
	// And they have no age of their own.
	f.State, f.Fingerprint = states[0], ""
	f.Since, f.Until = time.Time{}, time.Time{}
	cursor := q.Get("cursor")
	var groups []deadletter.Group
	var next string
	var err error
	if wrong != "state" {
		groups, next, err = o.Groups(v.r.Context(), f, cursor, groupPage)
	}
	if errors.Is(err, deadletter.ErrBadCursor) {
		return &page{redirect: groupsURL(f, "")}, nil
	}
	if err != nil && deadletter.RefusalOf(err) == nil { // what no dead letter could be fits none
		return nil, err
	}
	counts, err := o.DeadLetterCounts(v.r.Context())
	if err != nil {
		return nil, err
	}
	d := &groupsData{listData: listData{Filter: f, Filtered: narrowed(f), Views: v.views("groups", f),
		Reset: groupsURL(journal.DeadLetterFilter{}, "")}}
	today, err := v.dueToday(o, f.Context)
	if err != nil {
		return nil, err
	}
	v.choices(&d.listData, counts)
	for i := range groups {
		row := v.causeRow(&groups[i], f)
		one := f
		one.Fingerprint = groups[i].Cause.ID
		row.Due = today.of(v, one)
		d.Causes = append(d.Causes, row)
	}
	if next != "" {
		d.Next = groupsURL(f, next)
	}
	if cursor != "" {
		d.First = groupsURL(f, "")
	}
	pg := &page{name: "groups", section: "dead-letters", title: v.T("groups.title"), data: d,
		summary: v.Count("groups.summary", int64(len(groups)))}
	if wrong == "state" {
		d.Wrong = v.T("groups.wrong.state", plain(q.Get("state"), maxQueryBytes))
		pg.status = http.StatusUnprocessableEntity
	}
	return pg, nil
}

// causeRow of a group; f is the filter that it was found by, which its links keep.
func (v *visit) causeRow(g *deadletter.Group, f journal.DeadLetterFilter) causeRow {
	f.Fingerprint = g.Cause.ID
	return causeRow{
		Group: g, Name: v.causeName(g), Teams: v.teams(g.Teams), Worth: v.Money(g.Cents), First: v.Ago(g.First),
		Last: v.Ago(g.Last), Show: listURL(f, ""), Act: planURL(f),
	}
}

// causeName is a cause's reason in words: that of the rule that matched, otherwise what its dead letters were given up
// for, unless that is only that their retries were used up.
func (v *visit) causeName(g *deadletter.Group) string {
	reason, given := g.Cause.Reason, g.Sample.Reason
	if v.Or("reason."+string(reason), "") == "" && given != "" &&
		given != decision.ReasonMaxRetries && given != decision.ReasonTimeLimit {
		reason = given
	}
	return v.reason(reason)
}

// cause that a fingerprint stands for, whatever became of its dead letters; nil where nothing is known of it.
func (v *visit) cause(o *open, fingerprint string) (*causeRow, error) {
	f := journal.DeadLetterFilter{State: deadletter.AllStates, Fingerprint: fingerprint}
	group, err := v.group(o, f)
	if group == nil {
		return nil, err
	}
	return new(v.causeRow(group, f)), nil
}

// group of what f, which names a fingerprint, lets through; nil where that is nothing, or no dead letter could be so.
func (v *visit) group(o *open, f journal.DeadLetterFilter) (*deadletter.Group, error) {
	groups, _, err := o.Groups(v.r.Context(), f, "", 1)
	switch {
	case err != nil && deadletter.RefusalOf(err) == nil:
		return nil, err
	case len(groups) == 0:
		return nil, nil
	}
	return &groups[0], nil
}

// pattern of a fingerprint; empty where nothing is known of it.
func (v *visit) pattern(o *open, fingerprint string) (string, error) {
	known, ok := v.patterns[fingerprint]
	if ok || fingerprint == "" {
		return known, nil
	}
	cause, err := v.cause(o, fingerprint)
	if err != nil {
		return "", err
	}
	if cause != nil {
		known = cause.Group.Cause.Pattern
	}
	v.patterns[fingerprint] = known
	return known, nil
}

// causeCount is how many open dead letters f, which names a fingerprint, lets through.
func (v *visit) causeCount(o *open, f journal.DeadLetterFilter) (int64, error) {
	group, err := v.group(o, f)
	if group == nil {
		return 0, err
	}
	return group.N, nil
}

// biggestCauses of what is open.
func (v *visit) biggestCauses(o *open) ([]causeRow, error) {
	groups, _, err := o.Groups(v.r.Context(), journal.DeadLetterFilter{}, "", mostCauses)
	rows := make([]causeRow, 0, len(groups))
	for i := range groups {
		rows = append(rows, v.causeRow(&groups[i], journal.DeadLetterFilter{}))
	}
	return rows, err
}

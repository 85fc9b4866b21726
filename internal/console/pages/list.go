package pages

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

const (
	// listPage is how many dead letters one page lists.
	listPage = 50
	// maxQueryBytes of a search.
	maxQueryBytes = 200
)

// listData is one page of dead letters.
type listData struct {
	Filter                   journal.DeadLetterFilter
	States                   []stateLink
	Policies, Teams, Reasons []option
	Rows                     []letterRow
	// Next is the page behind this one, First the first; empty where there is none or this is it.
	Next, First string
	Filtered    bool
	// Matching is how many there are by the filter without its search.
	Matching int64
	// Reset is the list in this state with no other filter.
	Reset string
	Show  bool // the state column, where states differ
}

type stateLink struct {
	Name, URL string
	N         int64
	Current   bool
}

type option struct {
	Value, Name string
	Selected    bool
}

// letterRow is one dead letter in the list.
type letterRow struct {
	ID, URL, Policy string
	State           Badge
	Reason          decision.Reason
	MatchedRule     string
	Error           string
	Team            string
	Retries         string
	Created         Moment
	Process         *Badge
}

// states of the list, in the order of its links.
var states = []string{"open", "reprocessing", "recovered", "discarded", "all"}

// filterOf a request. What is no state is open.
func filterOf(q url.Values) journal.DeadLetterFilter {
	clean := func(name string) string { return plain(q.Get(name), maxQueryBytes) }
	f := journal.DeadLetterFilter{
		State: clean("state"), Policy: clean("policy"), Team: decision.Team(clean("team")), Reason: decision.Reason(clean("reason")),
		Query: clean("q"),
	}
	if !slices.Contains(states, f.State) {
		f.State = states[0]
	}
	return f
}

// plain is what somebody wrote into a field of one line: without characters that would act or not be seen, and cut.
func plain(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	s = strings.TrimSpace(s)
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

func (p *Pages) deadLetters(v *visit, o *open) (*page, error) {
	q := v.r.URL.Query()
	f := filterOf(q)
	cursor := q.Get("cursor")
	items, next, err := someOf(v.r.Context(), o, f, cursor)
	if errors.Is(err, journal.ErrBadCursor) {
		return &page{redirect: listURL(f, "")}, nil // it was not ours, or of another filter
	}
	if err != nil {
		return nil, unreadable(err)
	}
	counts, err := o.DeadLetterCounts(v.r.Context())
	if err != nil {
		return nil, unreadable(err)
	}
	d := &listData{Filter: f, Filtered: f.Policy != "" || f.Team != "" || f.Reason != "" || f.Query != "", Show: f.State == "all"}
	p.choices(v, d, counts)
	for i := range items {
		d.Rows = append(d.Rows, v.letterRow(&items[i], o))
	}
	if next != "" {
		d.Next = listURL(f, next)
	}
	if cursor != "" {
		d.First = listURL(f, "")
	}
	d.Reset = listURL(journal.DeadLetterFilter{State: f.State}, "")
	return &page{name: "dead-letters", section: "dead-letters", title: v.lang.T("list.title"), data: d,
		summary: v.lang.Count("letters."+f.State, d.Matching)}, nil
}

// mostLooks at what a search may have to skip, before the reader is asked whether to go on.
const mostLooks = 5

// someOf is the next page that has anything on it: a search may give pages with nothing, and more behind them.
func someOf(ctx context.Context, o *open, f journal.DeadLetterFilter, cursor string) (items []journal.DeadLetterItem, next string, err error) {
	for range mostLooks {
		items, next, err = o.DeadLetterPage(ctx, f, cursor, listPage)
		if err != nil || len(items) > 0 || next == "" {
			break
		}
		cursor = next
	}
	return items, next, err
}

// choices are the states with their numbers, and what the other filters may be: what there is.
func (p *Pages) choices(v *visit, d *listData, counts []journal.DeadLetterCount) {
	f := &d.Filter
	numbers := map[string]int64{}
	policies, teams, reasons := []string{f.Policy}, []string{string(f.Team)}, []string{string(f.Reason)}
	for i := range counts {
		c := &counts[i]
		policies, teams, reasons = append(policies, c.Policy), append(teams, string(c.Team)), append(reasons, string(c.Reason))
		if (f.Policy == "" || f.Policy == c.Policy) && (f.Team == "" || f.Team == c.Team) && (f.Reason == "" || f.Reason == c.Reason) {
			numbers[string(c.State)] += c.N
			numbers["all"] += c.N
		}
	}
	d.Matching = numbers[f.State]
	for _, s := range states {
		there := *f
		there.State = s
		d.States = append(d.States, stateLink{v.lang.T("list.state." + s), listURL(there, ""), numbers[s], s == f.State})
	}
	same := func(s string) string { return s }
	d.Policies = options(append(policies, p.Catalogue().Policies.Names()...), f.Policy, same)
	d.Teams = options(teams, string(f.Team), func(s string) string { return v.lang.team(decision.Team(s)) })
	d.Reasons = options(reasons, string(f.Reason), func(s string) string { return v.lang.reason(decision.Reason(s)) })
}

// options are the values, each once, by their names.
func options(values []string, selected string, name func(string) string) []option {
	slices.Sort(values)
	var all []option
	for _, value := range slices.Compact(values) {
		if value != "" {
			all = append(all, option{value, name(value), value == selected})
		}
	}
	slices.SortStableFunc(all, func(a, b option) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return all
}

func (v *visit) letterRow(item *journal.DeadLetterItem, o *open) letterRow {
	row := letterRow{
		ID: item.Subject.ID, URL: subjectURL(item.Subject), Policy: item.Subject.Policy, State: v.lang.deadLetterBadge(item.State),
		Reason: item.Reason, MatchedRule: item.MatchedRule, Error: item.Error, Team: v.lang.team(item.Team), Created: v.ago(item.CreatedAt),
		Retries: v.lang.T("list.retries", v.lang.Number(item.RetryCount), v.lang.Number(item.MaxRetries)),
	}
	switch {
	case item.State == journal.DeadLetterOpen:
		b := v.lang.processBadge(o.Process(item))
		row.Process = &b
	case item.Delivery != journal.DeliveryNone:
		b := v.lang.deliveryBadge(item.Delivery)
		row.Process = &b
	}
	return row
}

// deadLetter leads from a dead letter's id to its subject's page.
func (p *Pages) deadLetter(v *visit, o *open) (*page, error) {
	item, found, err := o.DeadLetter(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return nil, unreadable(err)
	}
	if !found {
		return nil, &problem{status: 404, key: "letter_unknown"}
	}
	return &page{redirect: subjectURL(item.Subject) + "#decision"}, nil
}

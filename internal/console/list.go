package console

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/audit"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
)

const (
	pageRows = 50 // dead letters, causes or records on a page
	// maxQueryBytes bounds a search and the other fields of the filter.
	maxQueryBytes = 200
)

// listData is one page of dead letters.
type listData struct {
	Filter                   journal.DeadLetterFilter
	States                   []viewLink
	Policies, Teams, Reasons []option
	Rows                     []deadletter.Item
	V                        *visit
	// Here is this page, for the links of its rows to carry.
	Here place
	pager
	Filtered bool
	// Elsewhere holds the claims in any state that the search finds, if there are no Rows.
	Elsewhere []found
	// Matching is how many the filter selects, its search aside.
	Matching int64
	// Reset is the address of the list in this state without any other filter.
	Reset   string
	Views   []viewLink
	Context contextFilter
	Chips   []factLink
	// Pick reports whether the reader may choose dead letters to act on together.
	Pick bool
	// Since and Until are as their fields hold them.
	Since, Until      string
	Wrong, WrongField string
	// Act plans an action on all that the filter selects; nil if that is not possible.
	Act *link
	// Sorts are links to the orders. Why reports whether a row has a deadline or an amount, Processes whether one has a
	// Process badge, Who whether rows differ in their teams, Mixed whether they differ in their policies.
	Sorts                      []viewLink
	Why, Processes, Who, Mixed bool
	// Worth is the amount of all counted; Due links to the open ones that are late, and those due today.
	Worth string
	Due   []link
	// File is the address of the list as a spreadsheet.
	File string
	// Shortcuts lead to the reader's dead letters, to nobody's, and to those whose follow-up is today. Handover holds the
	// accounts that can take all of the filter's assignee; nil if it names no other person, or the reader may not do it.
	Shortcuts []viewLink
	Handover  *guard.Colleagues
}

// viewLink leads to a view of the dead letters. N is how many it shows, if that is Known.
type viewLink struct {
	Name, URL      string
	Current, Known bool
	N              int64
}

func (v *visit) views(current string, f journal.DeadLetterFilter) []viewLink {
	return []viewLink{
		{Name: v.T("view.list"), URL: listURL(f), Current: current == "list"},
		{Name: v.T("view.groups"), URL: groupsURL(f), Current: current == "groups"},
	}
}

// pager holds the addresses of the next page, empty if there is none, and of the first, empty if this is it.
type pager struct{ Next, First string }

// pager returns the pager of a page whose beginning is in the address's field of that name; the next page begins at
// next.
func (v *visit) pager(name, next, fragment string) (p pager) {
	if next != "" {
		p.Next = v.here(field{name, next}) + fragment
	}
	if v.r.URL.Query().Get(name) != "" {
		p.First = v.here(field{name, ""}) + fragment
	}
	return p
}

// here returns this page's address with other values of those fields; an empty value removes its field.
func (v *visit) here(others ...field) string {
	to, q := *v.r.URL, v.r.URL.Query()
	q.Del("lang")
	q.Del("done")
	if v.r.Method == http.MethodPost { // of a form, whose page is above its address
		to = *to.JoinPath("..")
	}
	for _, x := range others {
		if q.Set(x.Name, x.Value); x.Value == "" {
			q.Del(x.Name)
		}
	}
	to.RawQuery = q.Encode()
	return to.RequestURI()
}

type option struct {
	Value, Name string
	Selected    bool
}

// states holds the states of the list, in the order of its links.
var states = []string{"open", "reprocessing", "recovered", "discarded", "accepted", "all"}

func (p *Pages) deadLetters(v *visit) *page {
	q := v.r.URL.Query()
	f, wrong := v.filterOf(q)
	d := v.listed(f)
	pg := &page{name: "dead-letters", section: "dead-letters", title: v.T("list.title"), data: d}
	if wrong != "" {
		d.Since, d.Until, d.Act = plain(q.Get("since"), maxQueryBytes), plain(q.Get("until"), maxQueryBytes), nil
		d.WrongField, d.Wrong = wrong, v.wrongFilter(wrong, q)
		pg.status = http.StatusUnprocessableEntity
		return pg
	}
	items, next, err := v.o.List(v.r.Context(), f, q.Get("cursor"), pageRows)
	check(unlessInvalid(err))
	d.Rows = items
	d.Why = slices.ContainsFunc(items, func(i deadletter.Item) bool { return i.Cents > 0 || !i.Deadline.IsZero() })
	d.Processes = slices.ContainsFunc(items, func(i deadletter.Item) bool { return v.Process(&i) != nil })
	d.Who = slices.ContainsFunc(items, func(i deadletter.Item) bool { return i.Team != items[0].Team })
	d.Mixed = slices.ContainsFunc(items, func(i deadletter.Item) bool { return i.Subject.Policy != items[0].Subject.Policy })
	if len(items) == 0 && f.Query != "" {
		d.Elsewhere = v.find(f.Query)
	}
	d.Pick = f.State == states[0] && len(items) > 0 && v.who.May(access.Bulk, string(f.Team))
	d.pager = v.pager("cursor", next, "")
	if d.States[0].Known {
		pg.summary = v.Count("letters."+f.State, d.Matching)
	}
	return pg
}

// unlessInvalid returns err, unless it says that the filter is invalid: such a filter matches nothing.
func unlessInvalid(err error) error {
	if journal.RefusalOf(err) != nil && !errors.Is(err, deadletter.ErrBadCursor) {
		return nil
	}
	return err
}

// found is a claim that a search finds, in any state.
type found struct {
	Subject journal.Subject
	standing
}

const mostFound = 20 // claims that a search names

// find returns the claims whose id contains part.
func (v *visit) find(part string) (all []found) {
	for _, s := range must(v.o.Named(v.r.Context(), part, mostFound)) {
		story, known, err := v.o.Story(v.r.Context(), s)
		check(err)
		if known {
			all = append(all, found{s, v.standing(&story)})
		}
	}
	return all
}

// search answers GET /search?q= with the page of the one claim found, or with a list of those found.
func (p *Pages) search(v *visit) *page {
	q := plain(v.r.URL.Query().Get("q"), maxQueryBytes)
	if q == "" {
		return v.to("/dead-letters")
	}
	all := v.find(q)
	if len(all) == 1 {
		return v.to(subjectURL(all[0].Subject))
	}
	f := journal.DeadLetterFilter{State: deadletter.AllStates, Query: q}
	return &page{name: "search", section: "dead-letters", title: v.T("find.title"), data: map[string]any{
		"Query": q, "Found": all, "More": len(all) == mostFound, "Words": listURL(f)}}
}

// listed returns the list's page with its filter, without rows.
func (v *visit) listed(f journal.DeadLetterFilter) *listData {
	d := &listData{V: v, Filter: f, Filtered: narrowed(f), Since: v.local(f.Since), Until: v.local(f.Until),
		Here: v.listPlace(), Views: v.views("list", f), Chips: v.chips(&f),
		File:  strings.Replace(listURL(f), "/dead-letters", "/dead-letters.csv", 1),
		Reset: listURL(journal.DeadLetterFilter{State: f.State})}
	v.choices(d)
	if (f.Context != "" || f.Fingerprint != "") && f.State == states[0] && !searched(&f) {
		of := sumOf(v.counts(journal.DeadLetterFilter{Context: f.Context}), &f)
		d.Matching, d.Worth = of.N, v.Money(of.Cents)
		d.States[0].N, d.States[0].Known = of.N, true
	}
	for _, sort := range append([]string{deadletter.Urgent}, deadletter.Sorts()...) {
		sorted := f
		if sorted.Sort = sort; deadletter.SortOf(&sorted) == sort {
			d.Sorts = append(d.Sorts, viewLink{Name: v.T("list.sort." + cmp.Or(sort, "urgent")), URL: listURL(sorted),
				Current: sort == deadletter.SortOf(&f)})
		}
	}
	if f.State == states[0] {
		d.Shortcuts = v.shortcuts(f)
		d.Due = v.due(&f).of(v, f)
	}
	if f.Assignee != "" && f.Assignee != journal.Nobody && f.Assignee != v.who.Name && v.who.May(access.Handover, "") {
		d.Handover = new(v.o.Colleagues(f.Team))
	}
	d.Act = v.act(&f, d.Matching)
	return d
}

// Sorted returns the aria-sort of a column that orders sort by; empty if the list has another order.
func (d *listData) Sorted(orders ...string) string {
	switch sort := deadletter.SortOf(&d.Filter); {
	case !slices.Contains(orders, sort):
		return ""
	case sort == deadletter.ByDeadline || sort == deadletter.Newest:
		return "ascending"
	default:
		return "descending"
	}
}

// act returns a link that plans an action on all that f selects; nil if that is not possible. Their number is matching,
// unless f searches.
func (v *visit) act(f *journal.DeadLetterFilter, matching int64) *link {
	switch {
	case f.State != states[0] || !narrowed(*f) || !v.who.May(access.Bulk, string(f.Team)):
		return nil
	case searched(f): // the plan counts them
		return &link{URL: planURL(*f), Text: v.T("list.act")}
	case matching == 0:
		return nil
	}
	return &link{URL: planURL(*f), Text: v.Count("list.act", matching)}
}

// counts counts the dead letters that a filter selects.
func (v *visit) counts(f journal.DeadLetterFilter) []deadletter.Count {
	return must(v.o.DeadLetterCounts(v.r.Context(), f))
}

// sumOf adds up those of the counts that have f's state, policy, team, reason and fingerprint.
func sumOf(all []deadletter.Count, f *journal.DeadLetterFilter) (sum deadletter.Count) {
	for i := range all {
		c := &all[i]
		if (f.State == "" || f.State == deadletter.AllStates || f.State == string(c.State)) &&
			(f.Policy == "" || f.Policy == c.Policy) && (f.Team == "" || f.Team == c.Team) &&
			(f.Reason == "" || f.Reason == c.Reason) && (f.Fingerprint == "" || f.Fingerprint == c.Fingerprint) {
			sum.Add(c)
		}
	}
	return sum
}

// choices fills in the states with their numbers, and the values that the filter's other fields may have.
func (v *visit) choices(d *listData) {
	f, all := &d.Filter, v.counts(journal.DeadLetterFilter{State: deadletter.AllStates})
	policies, teams, reasons := []string{f.Policy}, []string{string(f.Team)}, []string{string(f.Reason)}
	for i := range all {
		policies, teams = append(policies, all[i].Policy), append(teams, string(all[i].Team))
		reasons = append(reasons, string(all[i].Reason))
	}
	bounded := f.Fingerprint != "" || f.Context != "" || searched(f)
	for _, s := range states {
		there := *f
		there.State = s
		of := sumOf(all, &there)
		d.States = append(d.States, viewLink{v.T("list.state." + s), listURL(there), s == f.State, !bounded, of.N})
		if s == f.State {
			d.Matching = of.N
			if !bounded {
				d.Worth = v.Money(of.Cents)
			}
		}
	}
	d.Context = v.contextFilter(f)
	d.Policies = options(append(policies, v.Catalogue.Policies.Names()...), f.Policy, v.policy)
	d.Teams = options(teams, string(f.Team), func(s string) string { return v.team(decision.Team(s)) })
	d.Reasons = options(reasons, string(f.Reason), func(s string) string { return v.reason(decision.Reason(s)) })
}

// options returns each value once, sorted by name.
func options(values []string, selected string, name func(string) string) []option {
	slices.Sort(values)
	var all []option
	for _, value := range slices.Compact(values) {
		if value != "" {
			all = append(all, option{value, name(value), value == selected})
		}
	}
	slices.SortStableFunc(all, func(a, b option) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return all
}

// Process returns the badge of an open dead letter for which no process waits, or of a decision's delivery; nil for
// neither.
func (v *visit) Process(d *deadletter.Item) *Badge {
	switch {
	case d.State == journal.DeadLetterOpen && d.Process != deadletter.Waiting:
		return new(v.badge("process", d.Process))
	case d.State != journal.DeadLetterOpen && d.Delivery != journal.DeliveryNone:
		return new(v.badge("delivery", d.Delivery))
	}
	return nil
}

// deadLetter answers GET /dead-letters/{id} by leading to its subject's page.
func (p *Pages) deadLetter(v *visit) *page {
	item := must(v.o.Show(v.r.Context(), v.r.PathValue("id")))
	return v.to(subjectURL(item.Subject) + "#decision")
}

// mostExported bounds the dead letters in one file: nobody looks through more.
const mostExported = 20_000

// exportLetters answers GET /dead-letters.csv with the dead letters that the list's fields select, written for a
// spreadsheet in the reader's language.
func (p *Pages) exportLetters(v *visit) *page {
	f, wrong := v.filterOf(v.r.URL.Query())
	if wrong != "" {
		check(&problem{status: http.StatusUnprocessableEntity, key: "export"})
	}
	name := v.T("list.file") + "-" + v.Now.In(v.zone).Format("20060102-1504") + ".csv"
	return p.download(v, "dead letters", "text/csv; charset=utf-8", name,
		func(to io.Writer) error { return v.writeLetters(f, to) })
}

func (v *visit) writeLetters(f journal.DeadLetterFilter, to io.Writer) error {
	items, next, err := v.o.List(v.r.Context(), f, "", deadletter.MostItems)
	if unlessInvalid(err) != nil {
		return err
	}
	out, fields := audit.NewCSV(to), v.otherFields(f.Policy)
	head := []string{"col.subject", "col.policy", "col.state", "col.reason", "col.who_acts",
		"col.deadline", "col.amount", "col.since", "col.possibly", "col.assignee", "assigned.follow_up"}
	row := make([]string, 0, len(head)+len(fields)+1)
	for _, key := range head {
		row = append(row, v.T(key))
	}
	for _, field := range fields {
		row = append(row, audit.Inert(v.Says(field.Label)))
	}
	_ = out.Write(append(row, v.T("col.error"))) // Error reports it
	for n := 0; ; {
		for i := range items {
			_ = out.Write(v.letterCells(&items[i], fields))
		}
		if out.Flush(); out.Error() != nil {
			return out.Error()
		}
		if n += len(items); next == "" {
			return nil
		} else if n >= mostExported {
			_ = out.Write([]string{v.T("list.file.more", v.Number(int64(n)))}) // Error reports it
			out.Flush()
			return out.Error()
		}
		if items, next, err = v.o.List(v.r.Context(), f, next, deadletter.MostItems); err != nil {
			return err
		}
	}
}

func (v *visit) letterCells(i *deadletter.Item, fields []decision.ContextField) []string {
	amount := ""
	if i.Cents > 0 {
		amount = v.point(decision.Amount(i.Cents))
	}
	row := []string{audit.Inert(i.Subject.ID), audit.Inert(v.policy(i.Subject.Policy)),
		v.Or("state.word."+string(i.State), string(i.State)), v.reason(i.Reason),
		audit.Inert(v.team(i.Team)), v.cellTime(i.Deadline), amount, v.cellTime(i.CreatedAt), map[bool]string{true: v.T("cell.yes")}[i.PossiblyAccepted],
		audit.Inert(i.Assigned.Assignee), v.cellTime(i.Assigned.FollowUpAt)}
	for _, f := range fields {
		row = append(row, v.contextCell(i.Context, f.Variable))
	}
	return append(row, audit.Inert(i.Error))
}

func (v *visit) contextCell(of decision.Context, variable string) string {
	n := slices.IndexFunc(of, func(c decision.ContextValue) bool { return c.Variable == variable })
	if n < 0 {
		return ""
	}
	if t, ok := of[n].Time(); ok {
		return v.cellTime(t)
	}
	if of[n].Type == decision.ContextText {
		return audit.Inert(of[n].Value)
	}
	return v.point(of[n].Value)
}

// cellTime returns t in the hospital's zone as a spreadsheet in the reader's language reads it; empty for the zero
// time.
func (v *visit) cellTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return v.format(t, "02/01/2006 15:04", "2006-01-02 15:04")
}

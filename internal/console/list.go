package console

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/guard"
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
	States                   []viewLink
	Policies, Teams, Reasons []option
	Rows                     []deadletter.Item
	V                        *visit
	// Here is the page that its rows lead back to.
	Here place
	pager
	Filtered bool
	// Elsewhere are claims in any state that the search finds, where it finds none in the filter's.
	Elsewhere []found
	// Matching is how many there are by the filter without its search.
	Matching int64
	// Reset is the list in this state with no other filter.
	Reset   string
	Views   []viewLink
	Context contextFilter
	Chips   []factLink
	// Pick tells that the reader may choose dead letters to act on together.
	Pick bool
	// Since and Until as the fields have them.
	Since, Until      string
	Wrong, WrongField string
	// Act on all that the filter lets through; nil where that cannot be.
	Act *link
	// Sorts are links to the orders. Why reports whether a row has a deadline or an amount, Processes whether one has a
	// Process badge, Who whether rows differ in their teams, Mixed whether they differ in their policies.
	Sorts                      []viewLink
	Why, Processes, Who, Mixed bool
	// Worth of all that is counted, and what of the open ones is late or due today.
	Worth string
	Due   []link
	// File is the list as a spreadsheet.
	File string
	// Shortcuts lead to the reader's dead letters, to nobody's, and to those whose follow-up is today. Handover holds the
	// accounts that can take all of the filter's assignee; nil if it names no other person, or the reader may not do it.
	Shortcuts []viewLink
	Handover  *guard.Colleagues
}

// viewLink is one way to look at dead letters; N is how many it shows, where that is Known.
type viewLink struct {
	Name, URL      string
	Current, Known bool
	N              int64
}

// views of the dead letters: one by one, and by cause.
func (v *visit) views(current string, f journal.DeadLetterFilter) []viewLink {
	return []viewLink{
		{Name: v.T("view.list"), URL: listURL(f), Current: current == "list"},
		{Name: v.T("view.groups"), URL: groupsURL(f), Current: current == "groups"},
	}
}

// pager leads to the page behind this one, and to the first; empty where there is none or this is it.
type pager struct{ Next, First string }

// pager of a page of which that field of the address says where it begins, and that goes on at next.
func (v *visit) pager(name, next, fragment string) (p pager) {
	if next != "" {
		p.Next = v.here(field{name, next}) + fragment
	}
	if v.r.URL.Query().Get(name) != "" {
		p.First = v.here(field{name, ""}) + fragment
	}
	return p
}

// here returns this page's address with other fields; those that are empty go.
func (v *visit) here(others ...field) string {
	to, q := *v.r.URL, v.r.URL.Query()
	q.Del("lang")
	q.Del("done")
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

// states of the list, in the order of its links.
var states = []string{"open", "reprocessing", "recovered", "discarded", "accepted", "all"}

func (p *Pages) deadLetters(v *visit, o *open) (*page, error) {
	q := v.r.URL.Query()
	f, wrong := v.filterOf(q)
	d, err := v.listed(o, f)
	if err != nil {
		return nil, err
	}
	pg := &page{name: "dead-letters", section: "dead-letters", title: v.T("list.title"), data: d}
	if wrong != "" {
		d.Since, d.Until, d.Act = plain(q.Get("since"), maxQueryBytes), plain(q.Get("until"), maxQueryBytes), nil
		d.WrongField, d.Wrong = wrong, v.wrongFilter(wrong, q)
		pg.status = http.StatusUnprocessableEntity
		return pg, nil
	}
	items, next, err := o.List(v.r.Context(), f, q.Get("cursor"), listPage)
	if err = unlessUnfit(err); err != nil {
		return nil, err
	}
	d.Rows = items
	d.Why = slices.ContainsFunc(items, func(i deadletter.Item) bool { return i.Cents > 0 || !i.Deadline.IsZero() })
	d.Processes = slices.ContainsFunc(items, func(i deadletter.Item) bool { return v.Process(&i) != nil })
	d.Who = slices.ContainsFunc(items, func(i deadletter.Item) bool { return i.Team != items[0].Team })
	d.Mixed = slices.ContainsFunc(items, func(i deadletter.Item) bool { return i.Subject.Policy != items[0].Subject.Policy })
	if len(items) == 0 && f.Query != "" {
		if d.Elsewhere, err = v.find(o, f.Query); err != nil {
			return nil, err
		}
	}
	d.Pick = f.State == states[0] && len(items) > 0 && v.who.May(access.Bulk, string(f.Team))
	d.pager = v.pager("cursor", next, "")
	if d.States[0].Known {
		pg.summary = v.Count("letters."+f.State, d.Matching)
	}
	return pg, nil
}

// unlessUnfit returns err, unless it says that no dead letter could be as a filter asks: that fits none.
func unlessUnfit(err error) error {
	if deadletter.RefusalOf(err) != nil && !errors.Is(err, deadletter.ErrBadCursor) {
		return nil
	}
	return err
}

// found is a claim that a search finds, in whatever state.
type found struct {
	Subject journal.Subject
	standing
}

// mostFound claims are named by a search.
const mostFound = 20

// find returns the claims with that part in their number.
func (v *visit) find(o *open, part string) (all []found, err error) {
	subjects, err := o.Named(v.r.Context(), part, mostFound)
	for _, s := range subjects {
		story, known, err := o.Story(v.r.Context(), s)
		if err != nil {
			return nil, err
		}
		if known {
			all = append(all, found{s, v.standing(&story)})
		}
	}
	return all, err
}

// search answers GET /search?q= with the page of the claim that is meant, or with those that may be.
func (p *Pages) search(v *visit, o *open) (*page, error) {
	q := plain(v.r.URL.Query().Get("q"), maxQueryBytes)
	if q == "" {
		return &page{redirect: "/dead-letters"}, nil
	}
	all, err := v.find(o, q)
	if err != nil {
		return nil, err
	}
	if len(all) == 1 {
		return &page{redirect: subjectURL(all[0].Subject)}, nil
	}
	f := journal.DeadLetterFilter{State: deadletter.AllStates, Query: q}
	return &page{name: "search", section: "dead-letters", title: v.T("find.title"), data: map[string]any{
		"Query": q, "Found": all, "More": len(all) == mostFound, "Words": listURL(f)}}, nil
}

// listed returns the list's page with its filter, and no rows yet.
func (v *visit) listed(o *open, f journal.DeadLetterFilter) (*listData, error) {
	counts, err := o.DeadLetterCounts(v.r.Context(), journal.DeadLetterFilter{State: deadletter.AllStates})
	if err != nil {
		return nil, err
	}
	d := &listData{V: v, Filter: f, Filtered: narrowed(f), Since: v.local(f.Since),
		Until: v.local(f.Until)}
	d.Here, d.Views = v.listPlace(), v.views("list", f)
	v.choices(d, counts)
	if d.Chips, err = v.chips(o, &f); err != nil {
		return nil, err
	}
	if (f.Context != "" || f.Fingerprint != "") && f.State == states[0] && !searched(&f) {
		all, err := o.DeadLetterCounts(v.r.Context(), journal.DeadLetterFilter{Context: f.Context})
		if err != nil {
			return nil, err
		}
		n, cents := sumOf(all, &f)
		d.Matching, d.Worth = n, v.Money(cents)
		d.States[0].N, d.States[0].Known = n, true
	}
	d.Reset = listURL(journal.DeadLetterFilter{State: f.State})
	d.File = exportURL(f)
	for _, sort := range append([]string{deadletter.Urgent}, deadletter.Sorts()...) {
		sorted := f
		if sorted.Sort = sort; deadletter.SortOf(&sorted) == sort {
			d.Sorts = append(d.Sorts, viewLink{Name: v.T("list.sort." + cmp.Or(sort, "urgent")), URL: listURL(sorted),
				Current: sort == deadletter.SortOf(&f)})
		}
	}
	if f.State == states[0] {
		if d.Shortcuts, err = v.shortcuts(o, f); err != nil {
			return nil, err
		}
		if !searched(&f) {
			due, err := v.due(o, f.Context)
			if err != nil {
				return nil, err
			}
			d.Due = due.of(v, f)
		}
	}
	if f.Assignee != "" && f.Assignee != journal.Nobody && f.Assignee != v.who.Name && v.who.May(access.Handover, "") {
		d.Handover = new(o.Colleagues(f.Team))
	}
	d.Act = v.act(&f, d.Matching)
	return d, nil
}

// Sorted returns the value of aria-sort of a column, which some orders go by; empty where the list has another.
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

// act on all that a filter lets through, of which there are matching unless it searches; nil where that cannot be.
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

// choices are the states with their numbers, and what the other filters may be: what there is.
func (v *visit) choices(d *listData, counts []deadletter.Count) {
	f := &d.Filter
	numbers, worth := map[string]int64{}, int64(0)
	policies, teams, reasons := []string{f.Policy}, []string{string(f.Team)}, []string{string(f.Reason)}
	for i := range counts {
		c := &counts[i]
		policies, teams = append(policies, c.Policy), append(teams, string(c.Team))
		reasons = append(reasons, string(c.Reason))
		if (f.Policy == "" || f.Policy == c.Policy) && (f.Team == "" || f.Team == c.Team) &&
			(f.Reason == "" || f.Reason == c.Reason) {
			numbers[string(c.State)] += c.N
			numbers["all"] += c.N
			if f.State == "all" || f.State == string(c.State) {
				worth += c.Cents
			}
		}
	}
	d.Matching = numbers[f.State]
	bounded := f.Fingerprint != "" || f.Context != "" || searched(f)
	if !bounded {
		d.Worth = v.Money(worth)
	}
	for _, s := range states {
		there := *f
		there.State = s
		d.States = append(d.States, viewLink{v.T("list.state." + s), listURL(there), s == f.State, !bounded, numbers[s]})
	}
	d.Context = v.contextFilter(f)
	d.Policies = options(append(policies, v.catalogue.Policies.Names()...), f.Policy, v.policy)
	d.Teams = options(teams, string(f.Team), func(s string) string { return v.team(decision.Team(s)) })
	d.Reasons = options(reasons, string(f.Reason), func(s string) string { return v.reason(decision.Reason(s)) })
}

// options returns the values, each once, by their names.
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

// Process returns a badge if no process waits for a decision on an open dead letter, or one that says where the decision's
// delivery stands; nil for neither.
func (v *visit) Process(d *deadletter.Item) *Badge {
	switch {
	case d.State == journal.DeadLetterOpen && d.Process != deadletter.Waiting:
		return new(v.badge("process", d.Process))
	case d.State != journal.DeadLetterOpen && d.Delivery != journal.DeliveryNone:
		return new(v.badge("delivery", d.Delivery))
	}
	return nil
}

// deadLetter leads from a dead letter's id to its subject's page.
func (p *Pages) deadLetter(v *visit, o *open) (*page, error) {
	item, err := o.Show(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return &page{redirect: subjectURL(item.Subject) + "#decision"}, nil
}

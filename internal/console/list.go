package console

import (
	"cmp"
	"errors"
	"io"
	"maps"
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
	pageRows      = 50  // dead letters, causes or records on a page
	maxQueryBytes = 200 // of a search, and of each other field of the filter
)

// link leads to dead letters, or to what plans an action on them. N is how many they are, if that is Known.
type link struct {
	Name, URL      string
	Current, Known bool
	N              int64
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
	to, q := *v.at, v.at.Query()
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

// states holds the states of the list, in the order of its links.
var states = []string{"open", "reprocessing", "recovered", "discarded", "accepted", "all"}

// deadLetters answers GET /dead-letters with the dead letters that a filter selects, and with who may do what with
// them.
func (p *Pages) deadLetters(v *visit) *page {
	q := v.r.URL.Query()
	f, wrong := v.filterOf(q)
	d, matching, counted := v.filterForm(f)
	pg := &page{name: "list", data: d}
	since, until := v.local(f.Since), v.local(f.Until)
	var items []deadletter.Item
	var elsewhere []found
	next := ""
	if wrong != "" {
		since, until = plain(q.Get("since"), maxQueryBytes), plain(q.Get("until"), maxQueryBytes)
		pg.status = http.StatusUnprocessableEntity
		d["Wrong"] = v.wrongFilter(wrong, q)
	} else {
		var err error
		items, next, err = v.o.List(v.r.Context(), f, q.Get("cursor"), pageRows)
		check(unlessInvalid(err))
		if len(items) == 0 && f.Query != "" {
			elsewhere = v.find(f.Query)
		}
		if counted {
			pg.summary = v.Count("letters."+f.State, matching.N)
		}
	}
	shows := func(is func(i *deadletter.Item) bool) bool {
		return slices.ContainsFunc(items, func(i deadletter.Item) bool { return is(&i) })
	}
	maps.Copy(d, view{"Since": since, "Until": until, "WrongField": wrong, "Rows": items, "Elsewhere": elsewhere,
		// Only columns in which there is something, or in which rows differ, are shown.
		"Why":       shows(func(i *deadletter.Item) bool { return i.Cents > 0 || !i.Deadline.IsZero() }),
		"Processes": shows(func(i *deadletter.Item) bool { return v.Process(i) != nil }),
		"Who":       shows(func(i *deadletter.Item) bool { return i.Team != items[0].Team }),
		"Mixed":     shows(func(i *deadletter.Item) bool { return i.Subject.Policy != items[0].Subject.Policy }),
		"May":       f.State == states[0] && v.who.May(access.Bulk, string(f.Team)), "Matching": matching, "Counted": counted,
		"Pages": v.pager("cursor", next, ""), "Worth": v.Money(matching.Cents), "Here": v.listPlace(),
		"File": strings.Replace(listURL(f), "/dead-letters", "/dead-letters.csv", 1), "Order": deadletter.SortOf(&f),
		"Sorts":     append([]string{deadletter.Urgent}, deadletter.Sorts()...),
		"Reset":     listURL(journal.DeadLetterFilter{State: f.State}),
		"Shortcuts": []link(nil), "Due": view(nil), "Handover": (*guard.Colleagues)(nil)})
	if f.State == states[0] {
		d["Shortcuts"], d["Due"] = v.shortcuts(f), v.due(&f)(f)
	}
	if f.Assignee != "" && f.Assignee != journal.Nobody && f.Assignee != v.who.Name && v.who.May(access.Handover, "") {
		d["Handover"] = new(v.o.Colleagues(f.Team))
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
	return &page{name: "find", data: view{
		"Query": q, "Found": all, "More": len(all) == mostFound, "Words": listURL(f)}}
}

// counts counts the dead letters that a filter selects.
func (v *visit) counts(f journal.DeadLetterFilter) []deadletter.Count {
	return must(v.o.DeadLetterCounts(v.r.Context(), f))
}

// sumOf adds up those of the counts that have f's state, policy, team, reason, fingerprint and assignee.
func sumOf(all []deadletter.Count, f *journal.DeadLetterFilter) (sum deadletter.Count) {
	for i := range all {
		c := &all[i]
		if (f.State == "" || f.State == deadletter.AllStates || f.State == string(c.State)) &&
			(f.Policy == "" || f.Policy == c.Policy) && (f.Team == "" || f.Team == c.Team) &&
			(f.Reason == "" || f.Reason == c.Reason) && (f.Fingerprint == "" || f.Fingerprint == c.Fingerprint) &&
			(f.Assignee == "" || f.Assignee == cmp.Or(c.Assignee, journal.Nobody)) {
			sum.Add(c)
		}
	}
	return sum
}

// filterForm returns what the list of dead letters and that of their causes show of a filter: its fields with the
// values that they may have, the links to its states, and those to both lists. matching counts what it selects, if
// counted.
func (v *visit) filterForm(f journal.DeadLetterFilter) (d view, matching deadletter.Count, counted bool) {
	all := v.counts(journal.DeadLetterFilter{State: deadletter.AllStates})
	policies := append(v.Catalogue.Policies.Names(), f.Policy)
	teams, reasons := []string{string(f.Team)}, []string{string(f.Reason)}
	for i := range all {
		policies, teams = append(policies, all[i].Policy), append(teams, string(all[i].Team))
		reasons = append(reasons, string(all[i].Reason))
	}
	if f.Context != "" { // for which the open ones alone are counted: there are not many
		all = v.counts(journal.DeadLetterFilter{Context: f.Context})
	}
	var tabs []link
	for _, s := range states {
		there, of, known := f, deadletter.Count{}, !searched(&f) && (f.Context == "" || s == states[0])
		if there.State = s; known {
			of = sumOf(all, &there)
		}
		tabs = append(tabs, link{v.T("list.state." + s), listURL(there), s == f.State, known, of.N})
		if s == f.State {
			matching, counted = of, known
		}
	}
	return view{"Filter": f, "Filtered": narrowed(f), "Wrong": "", "States": tabs,
		"Context": v.contextFilter(&f), "Policies": options(policies, f.Policy, v.policy),
		"Teams":   options(teams, string(f.Team), func(s string) string { return v.team(decision.Team(s)) }),
		"Reasons": options(reasons, string(f.Reason), func(s string) string { return v.reason(decision.Reason(s)) })}, matching, counted
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
		if n += len(items); next != "" && n >= mostExported {
			_ = out.Write([]string{v.T("list.file.more", v.Number(int64(n)))})
			next = ""
		}
		if out.Flush(); out.Error() != nil || next == "" {
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
func (v *visit) cellTime(t time.Time) string { return unless(t, v.date("time.cell", t)) }

package console

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
)

// assignedData is who has a dead letter (R35), and the forms by which the reader says so.
type assignedData struct {
	journal.Assignment
	// Has says who has it, FollowUp on which day it is to be looked at again; empty for none.
	Has, FollowUp string
	// May tells that the reader may say so, Mine that it is his.
	May, Mine bool
	guard.Colleagues
	// To, Day and Said are what was sent, where that was refused.
	To, Day, Said string
}

// assigned says who has an open dead letter; nil of any other.
func (v *visit) assigned(o *open, d *journal.DeadLetter, s *sent) *assignedData {
	if d.State != journal.DeadLetterOpen {
		return nil
	}
	a := &assignedData{Assignment: d.Assigned, Has: v.T("assigned.nobody"),
		May: v.who.May(access.Review, string(d.Team)), Mine: d.Assigned.Assignee == v.who.Name}
	switch {
	case a.Mine:
		a.Has = v.T("assigned.you", v.clock(a.At))
	case a.Assignee != "":
		a.Has = v.T("assigned.other", a.Assignee, v.clock(a.At))
	}
	if a.Assignee != "" && a.By != a.Assignee {
		a.Has += " " + v.T("assigned.by", a.By)
	}
	a.Colleagues = o.Colleagues(d.Team)
	a.To = cmp.Or(a.Assignee, v.who.Name)
	if at := a.FollowUpAt; !at.IsZero() {
		a.FollowUp, a.Day = v.day(at), at.In(v.zone).Format(time.DateOnly)
	}
	if s.Verb == "assignment" {
		a.To, a.Day, a.Said = s.Form.Get("assignee"), s.Form.Get("followUp"), s.Form.Get("text")
	}
	if !slices.Contains(append(a.Names, "", journal.Nobody), a.To) { // who may have it no longer: nobody else is chosen
		a.Names = append(a.Names, a.To)
	}
	return a
}

// assign carries out POST /dead-letters/{id}/assignment with assignee (me, nobody or a name) and, but by the buttons that
// take it and give it back, followUp (a day) and text. It changes nothing where another has it than the page showed (was).
func (p *Pages) assign(v *visit, o *open) (*page, error) {
	item, err := o.For(v.r.Context(), access.Review, v.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	form, has := v.r.PostForm, &item.Assigned
	at, ok := v.instant(form.Get("followUp"))
	switch {
	case !ok:
		return v.undone(&item, sent{Wrong: v.T("form.wrong.follow_up"), Field: "followUp"}), nil
	case form.Get("was") != has.Assignee:
		return v.undone(&item, sent{Wrong: v.T("form.wrong.assigned"), Status: http.StatusConflict}), nil
	case !form.Has("followUp") && form.Get("assignee") == deadletter.Me: // the day stays
		at = has.FollowUpAt
	}
	a := journal.Assignment{Assignee: form.Get("assignee"), FollowUpAt: at}
	a.Text = form.Get("text")
	if _, err := o.Assign(v.r.Context(), item.ID, a); err != nil {
		return v.undecided(&item, err)
	}
	return &page{redirect: v.place().Subject(item.Subject) + "#decision"}, nil
}

// handover carries out POST /assignees/{name} with assignee, and leads to what was left.
func (p *Pages) handover(v *visit, o *open) (*page, error) {
	of := v.r.PathValue("name")
	_, err := o.Handover(v.r.Context(), of, v.r.PostForm.Get("assignee"))
	if err != nil && deadletter.RefusalOf(err) == nil {
		return nil, unsure("undecided", err)
	}
	return &page{redirect: listURL(journal.DeadLetterFilter{Assignee: of}, "")}, nil
}

// whose are the open dead letters of a filter that the reader has, that nobody has, and that are to be looked at again
// today.
func (v *visit) whose(o *open, f journal.DeadLetterFilter) (all []viewLink, err error) {
	mine, nobodys, today := f, f, f
	mine.Assignee, nobodys.Assignee, today.Assignee = v.who.Name, journal.Nobody, ""
	mine.FollowUp, nobodys.FollowUp, today.FollowUp = time.Time{}, time.Time{}, deadletter.EndOfDay(v.zone, v.now)
	names := []string{v.T("list.mine"), v.T("list.nobodys"), v.T("list.today")}
	for i, to := range []journal.DeadLetterFilter{mine, nobodys, today} {
		link := viewLink{Name: names[i], URL: listURL(to, ""), Current: to == f, Known: f.Query == ""}
		if link.Known { // a search would look at all there is once more
			counts, failed := o.DeadLetterCounts(v.r.Context(), to)
			for i := range counts {
				link.N += counts[i].N
			}
			err = errors.Join(err, failed)
		}
		all = append(all, link)
	}
	return all, err
}

// assignedFacts say, in a line of the list, who has a dead letter and on which day it is to be looked at again.
func (v *visit) assignedFacts(a *journal.Assignment) (facts []factLink) {
	who := a.Assignee
	if who == v.who.Name {
		who = v.T("assigned.row.you")
	}
	if who != "" {
		facts = []factLink{{fact{v.T("assigned.row"), who}, listURL(journal.DeadLetterFilter{Assignee: a.Assignee}, "")}}
	}
	if !a.FollowUpAt.IsZero() {
		facts = append(facts, factLink{fact{v.T("assigned.row.follow_up"), v.shortDay(a.FollowUpAt)}, ""})
	}
	return facts
}

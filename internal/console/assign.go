package console

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// assignedData is who has a dead letter (R35), and the forms by which the reader says so.
type assignedData struct {
	journal.Assignment
	// Has says who has it, FollowUp on which day it is to be looked at again; empty for none.
	Has, FollowUp string
	// May tells that the reader may say so, Mine that it is his.
	May, Mine bool
	colleagues
	// To, Day and Said are what was sent, where that was refused.
	To, Day, Said string
}

// colleagues are those to whom the reader can give a dead letter; Others tells that another name may be written, too.
type colleagues struct {
	Names  []string
	Others bool
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
	a.Names, a.Others = o.Colleagues(d.Team)
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
	_, _, err := o.Handover(v.r.Context(), of, v.r.PostForm.Get("assignee"))
	if err != nil && deadletter.RefusalOf(err) == nil {
		return nil, unsure("undecided", err)
	}
	return &page{redirect: listURL(journal.DeadLetterFilter{Assignee: of}, "")}, nil
}

// today ends then.
func (v *visit) today() time.Time { return deadletter.EndOfDay(v.zone, v.now) }

// whose are the open dead letters of a filter that the reader has, that nobody has, and that are to be looked at again
// today. The link of what is shown leads back to all.
func (v *visit) whose(o *open, f journal.DeadLetterFilter) (all []viewLink, err error) {
	for _, l := range []struct {
		key, assignee string
		until         time.Time
	}{{"list.mine", v.who.Name, time.Time{}}, {"list.nobodys", journal.Nobody, time.Time{}}, {"list.today", "", v.today()}} {
		to, whole := f, f
		whole.Assignee, whole.FollowUp = "", time.Time{}
		to.Assignee, to.FollowUp = l.assignee, l.until
		link := viewLink{Name: v.T(l.key), URL: listURL(to, ""), Known: !searched(&whole)}
		if f.Assignee == l.assignee && f.FollowUp.Equal(l.until) {
			link.Current, link.URL = true, listURL(whole, "")
		}
		if link.Known {
			counts, failed := o.DeadLetterAssignees(v.r.Context(), to)
			for _, n := range counts {
				link.N += n
			}
			err = errors.Join(err, failed)
		}
		all = append(all, link)
	}
	return all, err
}

// yours lead to what the reader has, where that is anything.
func (v *visit) yours(o *open) (all []link, err error) {
	f := journal.DeadLetterFilter{Assignee: v.who.Name}
	for _, key := range []string{"overview.yours", "overview.yours.today"} {
		counts, err := o.DeadLetterAssignees(v.r.Context(), f)
		if n := counts[v.who.Name]; n > 0 {
			all = append(all, link{v.Count(key, n), listURL(f, "")})
		}
		if err != nil {
			return nil, err
		}
		f.FollowUp = v.today()
	}
	return all, nil
}

// assignee of a filter, in words.
func (v *visit) assignee(name string) string {
	if name == journal.Nobody {
		return v.T("assigned.row.nobody")
	}
	return name
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

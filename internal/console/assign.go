package console

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
)

// assigned says who has an open dead letter (R35), and fills the form that changes it.
type assigned struct {
	// Has says who has it; empty if it is not open.
	Has string
	guard.Colleagues
	// To, Day and Said fill the form: as it was sent, if it was refused.
	To, Day, Said string
}

// assigned returns who has an open dead letter, and its form.
func (v *visit) assigned(o *open, d *journal.DeadLetter, s *sent) assigned {
	has := &d.Assigned
	a := assigned{Has: v.T("assigned.nobody"), Colleagues: o.Colleagues(d.Team), To: cmp.Or(has.Assignee, v.who.Name)}
	switch has.Assignee {
	case "":
	case v.who.Name:
		a.Has = v.T("assigned.you", v.clock(has.At))
	default:
		a.Has = v.T("assigned.other", has.Assignee, v.clock(has.At))
	}
	if has.Assignee != "" && has.By != has.Assignee {
		a.Has += " " + v.T("assigned.by", has.By)
	}
	if !has.FollowUpAt.IsZero() {
		a.Day = has.FollowUpAt.In(v.zone).Format(time.DateOnly)
	}
	if s.Verb == "assignment" {
		a.To, a.Day, a.Said = s.Form.Get("assignee"), s.Form.Get("followUp"), s.Form.Get("text")
	}
	if !slices.Contains(append(a.Names, "", journal.Nobody), a.To) { // show one who may no longer have it, too
		a.Names = append(a.Names, a.To)
	}
	return a
}

// assign answers POST /dead-letters/{id}/assignment with assignee (me, nobody or a name). Its form also sends followUp
// (a day) and text; the buttons to take, which keeps both, and to give back do not. It changes nothing if the assignee
// is no longer the one that the page showed (was).
func (p *Pages) assign(v *visit, o *open) (*page, error) {
	item := must(o.Reviewing(v.r.Context(), v.r.PathValue("id"), false))
	form, has := v.r.PostForm, &item.Assigned
	at, ok := v.instant(form.Get("followUp"))
	a := journal.Assignment{FollowUpAt: at, Mark: journal.Mark{Text: form.Get("text")}}
	switch {
	case !ok:
		return v.formAgain(&item, sent{Wrong: v.T("form.wrong.follow_up"), Field: "followUp"}), nil
	case form.Get("was") != has.Assignee:
		return v.formAgain(&item, sent{Wrong: v.T("form.wrong.assigned"), Status: http.StatusConflict}), nil
	case !form.Has("followUp") && form.Get("assignee") == deadletter.Me: // a button
		a = *has
	}
	a.Assignee = form.Get("assignee")
	if _, err := o.Assign(v.r.Context(), item.ID, a); err != nil {
		return v.undecided(&item, err)
	}
	return &page{redirect: v.place().Subject(item.Subject) + "#decision"}, nil
}

// handover answers POST /assignees/{name}: it gives what that person has to assignee, and lists what is left.
func (p *Pages) handover(v *visit, o *open) (*page, error) {
	of := v.r.PathValue("name")
	_, err := o.Handover(v.r.Context(), of, v.r.PostForm.Get("assignee"))
	if err != nil && journal.RefusalOf(err) == nil {
		return nil, unsure("undecided", err)
	}
	return &page{redirect: listURL(journal.DeadLetterFilter{Assignee: of})}, nil
}

// shortcuts returns links to the filter's open dead letters that the reader has, that nobody has, and whose follow-up
// is today. If the filter has a search, they have no counts: these would cost another one.
func (v *visit) shortcuts(o *open, f journal.DeadLetterFilter) []viewLink {
	all, ends := f, deadletter.EndOfDay(v.zone, v.now)
	all.Assignee, all.FollowUp = "", time.Time{}
	mine, nobodys, today := all, all, all
	mine.Assignee, nobodys.Assignee, today.FollowUp = v.who.Name, journal.Nobody, ends
	links := []viewLink{{Name: v.T("list.mine"), URL: listURL(mine), Current: f == mine},
		{Name: v.T("list.nobodys"), URL: listURL(nobodys), Current: f == nobodys},
		{Name: v.T("list.today"), URL: listURL(today), Current: f == today}}
	if f.Query != "" {
		return links
	}
	for _, has := range v.counts(o, all) {
		switch has.Assignee {
		case v.who.Name:
			links[0].N += has.N
		case "":
			links[1].N += has.N
		}
	}
	links[2].N = sumOf(v.counts(o, today), &today).N
	for i := range links {
		links[i].Known = true
	}
	return links
}

// assignedFacts says, for a line of the list, who has a dead letter and on which day its follow-up is.
func (v *visit) assignedFacts(a *journal.Assignment) (facts []factLink) {
	who := a.Assignee
	if who == v.who.Name {
		who = v.T("assigned.row.you")
	}
	if who != "" {
		facts = []factLink{{fact{v.T("assigned.row"), who}, listURL(journal.DeadLetterFilter{Assignee: a.Assignee})}}
	}
	if !a.FollowUpAt.IsZero() {
		facts = append(facts, factLink{fact{v.T("assigned.row.follow_up"), v.shortDay(a.FollowUpAt)}, ""})
	}
	return facts
}

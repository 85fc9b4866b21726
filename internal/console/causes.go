package console

import (
	"net/http"
	"strings"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

const mostCauses = 5 // on the overview

// groups answers GET /dead-letters/groups with the open dead letters by their causes.
func (p *Pages) groups(v *visit) *page {
	q := v.r.URL.Query()
	f, wrong := v.filterOf(q)
	if wrong == "" && f.State != states[0] { // only open ones are grouped
		return v.to(groupsURL(f))
	}
	// A period does not apply to causes.
	f.State, f.Fingerprint = states[0], ""
	f.Since, f.Until = time.Time{}, time.Time{}
	d, _, _ := v.filterForm(f)
	pg := &page{name: "groups", data: d}
	if wrong == "state" {
		d["Causes"], d["Pages"] = nil, pager{}
		d["Wrong"] = v.T("groups.wrong.state", plain(q.Get("state"), maxQueryBytes))
		pg.status = http.StatusUnprocessableEntity
		return pg
	}
	groups, next, err := v.o.Groups(v.r.Context(), f, q.Get("cursor"), pageRows)
	check(unlessInvalid(err))
	d["May"], d["Due"], d["Causes"] = v.who.May(access.Bulk, string(f.Team)), v.due(&f), groups
	d["Pages"], pg.summary = v.pager("cursor", next, ""), v.Count("groups.summary", int64(len(groups)))
	return pg
}

// CauseName returns a cause's reason in words. If it has none, the name says why a dead letter was given up, unless
// that is only the limit of retries or of time.
func (v *visit) CauseName(g *deadletter.Group) string {
	reason, given := g.Cause.Reason, g.Sample.Reason
	if v.Or("reason."+string(reason), "") == "" && given != "" &&
		given != decision.ReasonMaxRetries && given != decision.ReasonTimeLimit {
		reason = given
	}
	return v.reason(reason)
}

// cause returns the cause with that id; an empty one if nothing is known of it.
func (v *visit) cause(id string) journal.Cause {
	c, err := v.o.Cause(v.r.Context(), id)
	check(unlessInvalid(err))
	return c
}

// ofCause returns the filter of those that f selects and that have a cause.
func ofCause(f journal.DeadLetterFilter, cause string) journal.DeadLetterFilter {
	f.Fingerprint = cause
	return f
}

func causeURL(id string) string { return "/causes/" + id }

// causePage answers GET /causes/{id}: what a cause is, what became of its retries, and what people taught.
func (p *Pages) causePage(v *visit) *page {
	c := must(v.o.Cause(v.r.Context(), v.r.PathValue("id")))
	prospects, open := v.o.Prospects(&c), journal.DeadLetterFilter{Fingerprint: c.ID}
	teams := journal.Views(v.o.Teams(), func(team *decision.Team) option {
		return option{string(*team), v.team(*team), string(*team) == v.Sent.Value("teach", "team")}
	})
	name, became := v.reason(c.Reason), v.Say("cause.became", &prospects)
	return &page{name: "cause", title: name, summary: strings.TrimSuffix(name+". "+became, ". "),
		data: view{"Cause": c, "Became": became, "Advice": v.advice(&c, prospects), "Waiting": sumOf(v.counts(open), &open).N,
			"Teams": teams, "MayNot": v.mayNot(access.Teach, "", "cause.may_not"), "Done": v.r.URL.Query().Get("done")}}
}

func (l Lang) learnt(p journal.Prospects) string {
	return l.T("cause.learnt", l.Number(p.Recovered), l.Number(p.Closed()))
}

// Advice says what became of a cause's retries, which hardly help, and what to do about it (R26).
func (l Lang) Advice(p journal.Prospects) string { return l.learnt(p) + " " + l.T("cause.advice") }

// advice suggests to teach a cause as permanent, for the team that acts at its policy's limit, because retries hardly
// help; nil if there is no reason to.
func (v *visit) advice(c *journal.Cause, learnt journal.Prospects) view {
	p := v.Catalogue.Policies[c.Policy]
	if p == nil || !learnt.Hopeless() || c.Taught != nil {
		return nil
	}
	return view{"Cause": c.ID, "Says": v.learnt(learnt), "Team": p.LimitTeam, "May": v.who.Role.May(access.Teach)}
}

// teach answers POST /causes/{id}/teach with classification, team and reason, and POST /causes/{id}/forget with reason;
// both lead back to the cause's page.
func (p *Pages) teach(v *visit) *page {
	id, form := v.r.PathValue("id"), v.r.PostForm
	t := journal.Teaching{Reason: form.Get("reason")}
	if v.verb() == "teach" {
		t.Class = decision.ErrorClassification(form.Get("classification"))
		if t.Class != decision.Permanent && t.Class != decision.Transient {
			return v.again(sent{Wrong: v.T("cause.wrong.what"), Field: "classification"}, p.causePage)
		}
		if t.Class == decision.Permanent {
			t.Team = decision.Team(form.Get("team"))
		}
	}
	_, err := v.o.Teach(v.r.Context(), id, t)
	if journal.CodeOf(err) == journal.NothingTaught { // somebody else took it back
		err = nil
	}
	return v.answer(err, address(causeURL(id), field{"done", v.verb()})+"#result", "form.wrong.", "unordered", p.causePage)
}

// due counts the open dead letters with the filter's context whose deadline has passed, and those whose deadline passes
// before the day ends. It returns what shows those of them that a filter selects; nil for none, or if the first filter
// searches, which counts know nothing of.
func (v *visit) due(f *journal.DeadLetterFilter) func(f journal.DeadLetterFilter) view {
	var late, today []deadletter.Count
	if !searched(f) {
		late = v.counts(journal.DeadLetterFilter{Context: f.Context, DueUntil: v.Now})
		ends := deadletter.EndOfDay(v.zone, v.Now)
		today = v.counts(journal.DeadLetterFilter{Context: f.Context, DueSince: v.Now, DueUntil: ends})
	}
	return func(f journal.DeadLetterFilter) view {
		f.State, f.Sort = states[0], deadletter.ByDeadline
		late, today := sumOf(late, &f), sumOf(today, &f)
		if late.N+today.N == 0 {
			return nil
		}
		return view{"URL": listURL(f), "Late": late, "Today": today}
	}
}

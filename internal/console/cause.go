package console

import (
	"net/http"
	"strings"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// causeData is the page of a cause: what it is, what came of it, and what is taught.
type causeData struct {
	V     *visit
	Cause journal.Cause
	// Learnt says what came of its retries.
	Learnt string
	// Advice is what the reader may teach with one click, since retries hardly help; nil where that is nothing.
	Advice *advice
	// Waiting says how many of its dead letters wait, and leads to them; nil for none.
	Waiting *link
	// Taught says what is taught of it; empty where nothing is.
	Taught string
	Form   teachForm
	// MayNot says why the reader may teach nothing; empty where he may.
	MayNot, Done, Wrong string
}

// teachForm is what may be taught, as it was sent where there is something wrong with it.
type teachForm struct {
	Token, Class, Team, Reason string
	Teams                      []option
	Forgets                    bool // that is what was sent
}

// advice is that a cause may be taught as permanent, for the team that acts at its policy's limit.
type advice struct {
	Team   decision.Team
	Reason string
}

func causeURL(id string) string { return "/causes/" + id }

// causePage answers GET /causes/{id}.
func (p *Pages) causePage(v *visit, o *open) (*page, error) {
	return v.showCause(o, teachForm{}, "")
}

func (v *visit) showCause(o *open, sent teachForm, wrong string) (*page, error) {
	c, err := o.Cause(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	d := &causeData{V: v, Cause: c, Form: sent, Wrong: wrong}
	learnt := o.Prospects(&c)
	if learnt.Closed() > 0 {
		d.Learnt = v.T("cause.learnt", v.Number(learnt.Recovered), v.Number(learnt.Closed()))
	}
	open := journal.DeadLetterFilter{Fingerprint: c.ID}
	waiting, err := v.causeCount(o, open)
	if err != nil {
		return nil, err
	}
	if waiting > 0 {
		d.Waiting = &link{v.Count("groups.show", waiting), listURL(open, "")}
	}
	d.Taught = v.taught(c.Taught)
	switch done := v.r.URL.Query().Get("done"); {
	case done == "teach" && c.Taught != nil:
		d.Done = v.T("cause.done.teach")
	case done == "forget" && c.Taught == nil:
		d.Done = v.T("cause.done.forget")
	}
	if !v.who.Role.May(access.Teach) {
		d.MayNot = v.T("cause.may_not", v.role())
	}
	d.Form.Token = access.FormToken(v.r.Context())
	if p := v.catalogue.Policies[c.Policy]; p != nil && learnt.Hopeless() && c.Taught == nil {
		d.Advice = &advice{p.LimitTeam, d.Learnt}
	}
	if mean := learnt.Mean(); mean > 0 {
		d.Learnt += " " + v.T("cause.learnt.mean", v.span(mean))
	}
	for _, team := range o.Teams() {
		d.Form.Teams = append(d.Form.Teams, option{string(team), v.team(team), string(team) == sent.Team})
	}
	name := v.reason(c.Reason)
	pg := &page{name: "cause", section: "dead-letters", title: name, data: d,
		summary: strings.TrimSuffix(name+". "+d.Learnt, ". ")}
	if wrong != "" {
		pg.status = http.StatusUnprocessableEntity
	}
	return pg, nil
}

// advice returns what is advised on the cause of an open dead letter; nil for nothing.
func (v *visit) advice(o *open, d *journal.DeadLetter) (*link, error) {
	if d.State != journal.DeadLetterOpen || d.Fingerprint == "" {
		return nil, nil
	}
	c, err := o.Cause(v.r.Context(), d.Fingerprint)
	if err != nil && deadletter.RefusalOf(err) == nil {
		return nil, err
	}
	learnt := o.Prospects(&c) // nothing of a cause that is unknown
	if !learnt.Hopeless() || c.Taught != nil {
		return nil, nil
	}
	says := v.T("cause.learnt", v.Number(learnt.Recovered), v.Number(learnt.Closed())) + " " + v.T("cause.advice")
	return &link{says, causeURL(c.ID)}, nil
}

// teach answers POST /causes/{id}/teach with classification, team and reason, and POST /causes/{id}/forget with reason;
// both lead back to the cause's page.
func (p *Pages) teach(forgets bool) http.HandlerFunc {
	return p.reading(func(v *visit, o *open) (*page, error) {
		if !v.who.Role.May(access.Teach) {
			return nil, v.forbidden(access.Teach, "")
		}
		from := v.r.PostForm
		sent := teachForm{Class: from.Get("classification"), Team: from.Get("team"), Reason: from.Get("reason"),
			Forgets: forgets}
		id, t := v.r.PathValue("id"), journal.Teaching{Reason: sent.Reason, By: v.who.Name}
		if !forgets {
			t.Class = decision.ErrorClassification(sent.Class)
			if t.Class != decision.Permanent && t.Class != decision.Transient {
				return v.showCause(o, sent, v.T("cause.wrong.what"))
			}
			if t.Class == decision.Permanent {
				t.Team = decision.Team(sent.Team)
			}
		}
		_, err := o.Teach(v.r.Context(), id, t)
		refused := deadletter.RefusalOf(err)
		switch {
		case refused != nil && refused.Code == deadletter.CauseNotFound:
			return nil, err
		case refused != nil && refused.Code != deadletter.NothingTaught:
			return v.showCause(o, sent, v.Or("form.wrong."+string(refused.Code), refused.Message))
		case err != nil && refused == nil:
			return nil, &problem{status: http.StatusServiceUnavailable, key: "unordered", cause: err}
		}
		done := "teach"
		if forgets { // also where another did so meanwhile
			done = "forget"
		}
		return &page{redirect: address(causeURL(id), field{"done", done}) + "#result"}, nil
	})
}

// teachingEvent says what was taught of a cause.
func (v *visit) teachingEvent(e *event, from *journal.Entry) {
	b, _ := journal.BodyOf[journal.TeachingBody](from) // what cannot be read has no class
	e.By, e.Words = b.By, b.Reason
	switch {
	case b.Forgotten:
		e.Title = v.T("event.teaching.forgotten")
	case b.Class == decision.Permanent:
		e.Title = v.T("event.teaching.PERMANENT", v.team(b.Team))
	case b.Class == decision.Transient:
		e.Title = v.T("event.teaching.TRANSIENT")
	default:
		e.Title = v.T("event.kind.teaching")
	}
}

// taught says what is taught of a cause; empty where t is nil.
func (v *visit) taught(t *journal.Teaching) string {
	switch {
	case t == nil:
		return ""
	case t.Class == decision.Permanent:
		return v.T("cause.taught.PERMANENT", v.team(t.Team))
	}
	return v.T("cause.taught.TRANSIENT")
}

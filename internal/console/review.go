package console

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// retry carries out POST /dead-letters/{id}/retry with reason, how (next, force, fresh) and when (backoff, now).
func (p *Pages) retry(v *visit, o *open) (*page, error) { return p.decide(v, o, false) }

// discard carries out POST /dead-letters/{id}/discard with reason, which can be undone for journal.UndoFor.
func (p *Pages) discard(v *visit, o *open) (*page, error) { return p.decide(v, o, true) }

// decide carries out a person's decision. It leads to the next of the list that the reader came from, or else to the
// subject's page: both say what was done. What is wrong stands beside the form, with what was written.
func (p *Pages) decide(v *visit, o *open, discard bool) (*page, error) {
	f := sentForm(v.r.PostForm, discard)
	action := access.Review.Anew(!discard && f.How == "fresh")
	if !v.who.Role.May(action) { // first, whatever state the dead letter is in, or may come to
		return nil, v.forbidden(action, "")
	}
	item, err := o.Show(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if err := v.forbidden(action, item.Team); err != nil {
		return nil, err
	}
	if f.WrongField = wrongField(f, &item); f.WrongField != "" {
		f.Wrong = v.T("form.wrong." + f.WrongField)
		return p.subjectPage(v, o, item.Subject, f)
	}
	next, at, err := v.next(o, v.place(), item.ID) // while it is still in the list
	if err != nil {
		return nil, err
	}
	c := deadletter.Command{ID: item.ID, Reason: f.Reason, By: v.who.Name}
	var done deadletter.Item
	if discard {
		if done, err = o.Note(v.r.Context(), c, journal.DiscardLater); err == nil {
			done.Review = journal.ReviewNote{Discard: true, Reason: done.Discarding.Text}
		}
	} else {
		c.Force, c.Fresh, c.When = f.How == "force" || f.How == "fresh", f.How == "fresh", deadletter.When(f.When)
		done, err = o.Retry(v.r.Context(), c)
	}
	if err != nil {
		return p.undecided(v, o, &item, f, err)
	}
	v.remember(&done.Review)
	to := v.place().subject(item.Subject, field{"done", item.ID})
	if next != nil {
		to = at.subject(next.Subject, field{"after", item.ID})
	}
	return &page{redirect: to + "#decision"}, nil
}

// sentForm is what was written.
func sentForm(from url.Values, discard bool) *reviewForm {
	reason := cmp.Or(from.Get("recent"), from.Get("reason")) // one of the buttons was pressed, or it was written
	return &reviewForm{
		Reason: strings.TrimSpace(strings.ReplaceAll(reason, "\r\n", "\n")), How: from.Get("how"),
		When: from.Get("when"), Discarding: discard,
	}
}

// wrongField names what the form lacks that only a page asks for; empty if nothing is.
func wrongField(f *reviewForm, item *deadletter.Item) string {
	atLimit := item.RetryCount >= item.MaxRetries
	switch {
	case f.Discarding, item.State != journal.DeadLetterOpen: // which the service says
		return ""
	case f.How != "next" && f.How != "force" && f.How != "fresh", atLimit && f.How == "next":
		return "how"
	case f.When != string(deadletter.Backoff) && f.When != string(deadletter.Now):
		return "when"
	}
	return ""
}

// undecided says why the decision was not taken.
func (p *Pages) undecided(v *visit, o *open, item *deadletter.Item, f *reviewForm, err error) (*page, error) {
	refusal := deadletter.RefusalOf(err)
	switch {
	case refusal == nil:
		return nil, &problem{status: http.StatusServiceUnavailable, key: "undecided", cause: err}
	case refusal.Code == deadletter.JobNotFound:
		return nil, err
	case refusal.Code == deadletter.InvalidRetryState && refusal.State == journal.DeadLetterOpen:
		f.Wrong = v.T("form.wrong.nobody")
	case refusal.Code == deadletter.InvalidRetryState && refusal.By != "":
		f.Wrong = v.tooLate(item, refusal)
	default:
		f.Wrong = v.Or("form.wrong."+string(refusal.Code), refusal.Message)
		f.WrongField = map[deadletter.Code]string{
			deadletter.ReasonRequired: "reason", deadletter.ReasonTooLong: "reason",
			deadletter.MaxRetriesExceeded: "how", deadletter.PolicyNotFound: "when",
		}[refusal.Code]
	}
	return p.subjectPage(v, o, item.Subject, f)
}

// tooLate says who was faster.
func (v *visit) tooLate(item *deadletter.Item, r *deadletter.Refusal) string {
	did := v.T("form.did.retry")
	if r.State == journal.DeadLetterDiscarded || item.Review.Discard {
		did = v.T("form.did.discard")
	}
	return v.T("form.wrong.too_late", r.By, did, v.clock(r.At))
}

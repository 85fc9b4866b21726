package pages

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"retry-worker/internal/access"
	"retry-worker/internal/journal"
)

// maxReason letters of a reason.
const maxReason = 500

// retry carries out POST /dead-letters/{id}/retry with reason, how (next, force, fresh) and when (backoff, now).
func (p *Pages) retry(v *visit, o *open) (*page, error) { return p.decide(v, o, false) }

// discard carries out POST /dead-letters/{id}/discard with reason.
func (p *Pages) discard(v *visit, o *open) (*page, error) { return p.decide(v, o, true) }

// decide carries out a person's decision. It leads to the subject's page, which says what was done and what comes next;
// what is wrong stands beside the form, with what was written.
func (p *Pages) decide(v *visit, o *open, discard bool) (*page, error) {
	if !v.who.Role.May(access.Review) {
		return nil, &problem{status: http.StatusForbidden, key: "refused.forbidden_role"}
	}
	if v.r.ParseForm() != nil {
		return nil, &problem{status: http.StatusBadRequest, key: "refused.invalid_form"}
	}
	item, found, err := o.DeadLetter(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return nil, unreadable(err)
	}
	if !found {
		return nil, &problem{status: http.StatusNotFound, key: "letter_unknown"}
	}
	f := sentForm(v.r.PostForm, discard)
	if f.Wrong = v.wrong(f, &item); f.Wrong != "" {
		return p.subjectPage(v, o, item.Subject, f)
	}
	c := Command{ID: item.ID, Reason: f.Reason, By: v.who.Name, Force: f.How != "next", Fresh: f.How == "fresh", Now: f.When == "now"}
	if discard {
		c.Force, c.Fresh, c.Now = false, false, false
		err = o.Discard(v.r.Context(), c)
	} else {
		err = o.Retry(v.r.Context(), c)
	}
	return p.decided(v, o, &item, f, err)
}

// sentForm is what was written.
func sentForm(from url.Values, discard bool) *reviewForm {
	return &reviewForm{
		Reason: strings.TrimSpace(strings.ReplaceAll(from.Get("reason"), "\r\n", "\n")), How: from.Get("how"), When: from.Get("when"), Discarding: discard,
	}
}

// wrong says what is wrong with a form before anything is done; empty if nothing is.
func (v *visit) wrong(f *reviewForm, item *journal.DeadLetterItem) string {
	atLimit := item.RetryCount >= item.MaxRetries
	switch {
	case item.State != journal.DeadLetterOpen:
		return v.tooLate(item)
	case f.Reason == "":
		return v.lang.T("form.wrong.reason")
	case utf8.RuneCountInString(f.Reason) > maxReason:
		return v.lang.T("form.wrong.long", v.lang.Number(maxReason))
	case f.Discarding:
		return ""
	case f.How != "next" && f.How != "force" && f.How != "fresh", atLimit && f.How == "next":
		return v.lang.T("form.wrong.how")
	case f.How != "next" && !v.who.Role.May(access.Force):
		return v.lang.T("form.wrong.force")
	case f.When != "backoff" && f.When != "now":
		return v.lang.T("form.wrong.when")
	}
	return ""
}

// tooLate says who decided before.
func (v *visit) tooLate(item *journal.DeadLetterItem) string {
	if item.Review.At.IsZero() {
		return v.lang.T("form.wrong.settled", v.lang.deadLetterBadge(item.State).Word)
	}
	did := v.lang.T("form.did.retry")
	if item.Review.Discard {
		did = v.lang.T("form.did.discard")
	}
	return v.lang.T("form.wrong.too_late", item.Review.By, did, v.clock(item.Review.At))
}

// decided leads on from what the decision came to.
func (p *Pages) decided(v *visit, o *open, item *journal.DeadLetterItem, f *reviewForm, err error) (*page, error) {
	switch {
	case err == nil:
		to, tenant, _ := strings.Cut(subjectURL(item.Subject), "?")
		q, _ := url.ParseQuery(tenant) // ours
		q.Set("done", item.ID)
		return &page{redirect: to + "?" + q.Encode() + "#decision"}, nil
	case errors.Is(err, journal.ErrDeadLetterUnknown):
		return nil, &problem{status: http.StatusNotFound, key: "letter_unknown"}
	case errors.Is(err, journal.ErrMaxRetriesExceeded):
		f.Wrong = v.lang.T("form.wrong.how")
	case errors.Is(err, journal.ErrInvalidRetryState):
		f.Wrong = v.lang.T("form.wrong.settled_now")
		if now, found, err := o.DeadLetter(v.r.Context(), item.ID); err == nil && found && now.State != journal.DeadLetterOpen {
			f.Wrong = v.tooLate(&now)
		}
	default:
		return nil, &problem{status: http.StatusServiceUnavailable, key: "undecided", cause: err}
	}
	return p.subjectPage(v, o, item.Subject, f)
}

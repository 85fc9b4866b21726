package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// decide answers POST /dead-letters/{id}/retry, …/discard and …/accept with a person's decision. It leads to the next
// dead letter of the reader's list, or else to the subject's page, which says what was done. After a refusal it leads
// back to the form, which keeps what was written. A retry and a discard can be undone for journal.UndoFor.
func (p *Pages) decide(v *visit) *page {
	form := v.r.PostForm
	c := deadletter.Command{ID: v.r.PathValue("id"), Action: journal.BulkAction(v.verb()),
		Reason:   reasonOf(cmp.Or(form.Get("recent"), form.Get("reason"))), // by the button of a recent one, or typed
		Protocol: strings.TrimSpace(form.Get("protocolNumber"))}
	retry := c.Action == journal.BulkRetry
	item := must(v.o.Reviewing(v.r.Context(), c.ID, retry && form.Get("how") == "fresh"))
	c.ID = item.ID
	if retry {
		if field, why := v.readRetry(&c, &item); why != "" {
			return v.again(sent{Wrong: v.T("form.wrong." + why), Field: field}, p.claimOf(&item))
		}
	}
	to, _, _ := v.next(v.place(), item.ID, field{"after", item.ID}) // while the item is still in the list
	var done deadletter.Item
	var err error
	if c.Action == journal.BulkAccept {
		done, err = v.o.Decide(v.r.Context(), c)
	} else {
		done, err = v.o.Note(v.r.Context(), c, journal.NoteVerb(c.Action)) // RetryLater or DiscardLater
	}
	if err == nil {
		v.remember(cmp.Or(done.Later.Text, done.Review.Reason), c.Action == journal.BulkDiscard)
	}
	return p.decided(v, &item, err, cmp.Or(to, v.place().Subject(item.Subject, field{"done", item.ID})))
}

// readRetry reads what the form of a retry says: how (next, force or fresh), when, deadline (a new one), and late, to
// send the claim even after its deadline. It names the field that is wrong and why; both are empty if none is.
func (v *visit) readRetry(c *deadletter.Command, item *deadletter.Item) (field, why string) {
	form := v.r.PostForm
	how, late := form.Get("how"), form.Has("late")
	deadline, known := v.instant(form.Get("deadline"))
	c.When, c.Deadline = form.Get("when"), deadline
	c.Fresh, c.Force = how == "fresh", how != "next" || late && deadline.IsZero()
	switch {
	case item.State != journal.DeadLetterOpen: // the service refuses it
		return "", ""
	case !slices.Contains([]string{"next", "force", "fresh"}, how), item.AtLimit() && how == "next":
		return "how", string(journal.MaxRetriesExceeded)
	case c.When != deadletter.Backoff && c.When != deadletter.Now:
		return "when", "when"
	case !known:
		return "deadline", "deadline"
	case item.Late && form.Get("deadline") == "" && !late: // even if it is forced
		return "deadline", string(journal.DeadlineMissed)
	}
	return "", ""
}

// claimOf returns what makes the page of a dead letter's subject.
func (p *Pages) claimOf(item *deadletter.Item) func(*visit) *page {
	return func(v *visit) *page { return p.claim(v, item.Subject) }
}

// decided answers the form of a dead letter's decision or note. It leads to an address, or says why nothing was done.
func (p *Pages) decided(v *visit, item *deadletter.Item, err error, to string) *page {
	if r := journal.RefusalOf(err); r != nil && r.Code == journal.InvalidRetryState {
		switch {
		case r.State == journal.DeadLetterOpen:
			return v.again(sent{Wrong: v.T("form.wrong.nobody")}, p.claimOf(item))
		case r.By != "":
			return v.again(sent{Wrong: v.tooLate(item, r)}, p.claimOf(item))
		}
	}
	return v.answer(err, to+"#decision", "form.wrong.", "undecided", p.claimOf(item))
}

// tooLate says who decided earlier, what and when.
func (v *visit) tooLate(item *deadletter.Item, r *journal.Refusal) string {
	words := map[journal.DeadLetterState]string{
		journal.DeadLetterAccepted: "accepted", journal.DeadLetterDiscarded: "discard"}
	did := cmp.Or(words[r.State], v.Did(&item.Review))
	return v.T("form.wrong.too_late", r.By, v.T("form.did."+did), v.Clock(r.At))
}

// note answers POST /dead-letters/{id}/undo with the record of the decision that the page showed, and …/comment with
// text.
func (p *Pages) note(v *visit) *page {
	item := must(v.o.Show(v.r.Context(), v.r.PathValue("id")))
	c := deadletter.Command{ID: item.ID, Reason: v.r.PostForm.Get("text")}
	c.Undoes, _ = strconv.ParseInt(v.r.PostForm.Get("record"), 10, 64) // the page's own field
	_, err := v.o.Note(v.r.Context(), c, journal.NoteVerb(v.verb()))
	return p.decided(v, &item, err, v.place().Subject(item.Subject))
}

const (
	recentCookie = "recent"
	// mostRecent bounds the reasons that are offered; one longer than maxRecentBytes gets no button.
	mostRecent     = 6
	maxRecentBytes = 160
)

// recent holds a person's last reasons, the newest first, redacted as the journal has them.
type recent struct {
	By             string   `json:"by"`
	Retry, Discard []string `json:",omitempty"`
}

// recentReasons returns the reader's last reasons, and never those of somebody else at the same browser.
func (v *visit) recentReasons() (r recent) {
	if json.Unmarshal([]byte(kept(v.r, recentCookie)), &r) != nil || r.By != v.who.Name {
		r = recent{By: v.who.Name}
	}
	return r
}

// remember puts the reason of a decision in front of the reader's others.
func (v *visit) remember(reason string, discard bool) {
	if len(reason) > maxRecentBytes {
		return
	}
	r := v.recentReasons()
	of := &r.Retry
	if discard {
		of = &r.Discard
	}
	*of = append([]string{reason}, slices.DeleteFunc(*of, func(s string) bool { return s == reason })...)
	*of = (*of)[:min(len(*of), mostRecent)]
	raw, _ := json.Marshal(r) // cannot fail
	v.keep(recentCookie, string(raw), 0)
}

const teamCookie = "team"

// readTeam sets the reader's team: the one chosen now (?mine=, empty for none) or before, or else the only one that he
// may decide for.
func (v *visit) readTeam() {
	if q := v.r.URL.Query(); q.Has("mine") {
		v.mine = decision.Team(plain(q.Get("mine"), maxQueryBytes))
		v.keep(teamCookie, string(v.mine), aYear)
	} else if _, err := v.r.Cookie(teamCookie); err == nil {
		v.mine = decision.Team(plain(kept(v.r, teamCookie), maxQueryBytes))
	} else if own := string(v.who.Teams); v.who.Teams != access.NoTeam && !strings.Contains(own, ",") {
		v.mine = decision.Team(own)
	}
}

// assignForm returns the form that changes who has an open dead letter (R35), as it was sent if it was refused.
func (v *visit) assignForm(d *journal.DeadLetter) view {
	known, to, day, said := v.o.Colleagues(d.Team), cmp.Or(d.Assigned.Assignee, v.who.Name), "", ""
	if at := d.Assigned.FollowUpAt; !at.IsZero() {
		day = at.In(v.zone).Format(time.DateOnly)
	}
	if s := &v.Sent; s.Verb == "assignment" {
		to, day, said = s.form.Get("assignee"), s.form.Get("followUp"), s.form.Get("text")
	}
	if !slices.Contains(append(known.Names, "", journal.Nobody), to) { // show one who may no longer have it, too
		known.Names = append(known.Names, to)
	}
	return view{"Colleagues": known, "To": to, "Day": day, "Said": said}
}

// assign answers POST /dead-letters/{id}/assignment with assignee (me, nobody or a name). Its form also sends followUp
// (a day) and text; the buttons to take, which keeps both, and to give back do not. It changes nothing if the assignee
// is no longer the one that the page showed (was).
func (p *Pages) assign(v *visit) *page {
	item := must(v.o.Reviewing(v.r.Context(), v.r.PathValue("id"), false))
	form, has := v.r.PostForm, &item.Assigned
	at, ok := v.instant(form.Get("followUp"))
	a := journal.Assignment{FollowUpAt: at, Mark: journal.Mark{Text: form.Get("text")}}
	taken := sent{Wrong: v.T("form.wrong.assigned"), status: http.StatusConflict}
	switch {
	case !ok:
		return v.again(sent{Wrong: v.T("form.wrong.follow_up"), Field: "followUp"}, p.claimOf(&item))
	case form.Get("was") != has.Assignee:
		return v.again(taken, p.claimOf(&item))
	case !form.Has("followUp") && form.Get("assignee") == deadletter.Me: // a button
		a = *has
	}
	a.Assignee = form.Get("assignee")
	a.Record = has.Record
	_, err := v.o.Assign(v.r.Context(), item.ID, a)
	if errors.Is(err, journal.ErrReassigned) {
		return v.again(taken, p.claimOf(&item))
	}
	return p.decided(v, &item, err, v.place().Subject(item.Subject))
}

// handover answers POST /assignees/{name}: it gives what that person has to assignee, and lists what is left. GET, as
// after a log-in, gives nothing.
func (p *Pages) handover(v *visit) *page {
	of := v.r.PathValue("name")
	list := listURL(journal.DeadLetterFilter{Assignee: of})
	v.at, _ = url.Parse(list) // it can be parsed
	if v.r.Method == http.MethodPost {
		_, err := v.o.Handover(v.r.Context(), of, v.r.PostForm.Get("assignee"))
		if err != nil && journal.RefusalOf(err) == nil {
			check(&problem{http.StatusServiceUnavailable, "undecided", err})
		}
	}
	return v.to(list)
}

// shortcuts returns links to the filter's open dead letters that the reader has, that nobody has, and whose follow-up
// is today. If the filter has a search, they have no counts: these would cost another one.
func (v *visit) shortcuts(f journal.DeadLetterFilter) (links []link) {
	all := f
	all.Assignee, all.FollowUp = "", time.Time{}
	mine, nobodys, today := all, all, all
	mine.Assignee, nobodys.Assignee, today.FollowUp = v.who.Name, journal.Nobody, deadletter.EndOfDay(v.zone, v.Now)
	var has, due []deadletter.Count
	if f.Query == "" {
		has, due = v.counts(all), v.counts(today)
	}
	add := func(name string, to journal.DeadLetterFilter, of []deadletter.Count) {
		links = append(links, link{name, listURL(to), f == to, f.Query == "", sumOf(of, &to).N})
	}
	add(v.T("list.mine"), mine, has)
	add(v.T("list.nobodys"), nobodys, has)
	add(v.T("list.today"), today, due)
	return links
}

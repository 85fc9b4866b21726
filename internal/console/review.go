package console

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// retry carries out POST /dead-letters/{id}/retry with reason, how (next, force, fresh), when (backoff, now), deadline
// (none leaves it as it is) and late (after the deadline too). It can be undone for journal.UndoFor.
func (p *Pages) retry(v *visit, o *open) (*page, error) { return p.decide(v, o, journal.BulkRetry) }

// discard carries out POST /dead-letters/{id}/discard with reason, which can be undone for journal.UndoFor.
func (p *Pages) discard(v *visit, o *open) (*page, error) { return p.decide(v, o, journal.BulkDiscard) }

// accept carries out POST /dead-letters/{id}/accept with reason and protocolNumber, which may be empty.
func (p *Pages) accept(v *visit, o *open) (*page, error) { return p.decide(v, o, journal.BulkAccept) }

// decide carries out a person's decision. It leads to the next of the list that the reader came from, or else to the
// subject's page: both say what was done. What is wrong stands beside the form, with what was written.
func (p *Pages) decide(v *visit, o *open, verb journal.BulkAction) (*page, error) {
	f := sentForm(v.r.PostForm, string(verb))
	item, err := o.For(v.r.Context(), access.Review.Anew(verb == journal.BulkRetry && f.How == "fresh"), v.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if field := v.wrongField(f, &item); field != "" {
		return v.undone(&item, sent{Wrong: v.T("form.wrong." + field), Field: field}), nil
	}
	next, err := v.next(o, v.place(), item.ID) // while it is still in the list
	if err != nil {
		return nil, err
	}
	c := deadletter.Command{ID: item.ID, Action: verb, Reason: f.Reason}
	var done deadletter.Item
	switch verb {
	case journal.BulkDiscard:
		done, err = o.Note(v.r.Context(), c, journal.DiscardLater)
	case journal.BulkAccept:
		c.Protocol = f.Protocol
		done, err = o.Decide(v.r.Context(), c)
	default:
		c.Deadline, _ = v.instant(f.Deadline)
		c.Force, c.Fresh, c.When = f.How != "next" || f.Late && c.Deadline.IsZero(), f.How == "fresh", deadletter.When(f.When)
		done, err = o.Note(v.r.Context(), c, journal.RetryLater)
	}
	if err != nil {
		return v.undecided(&item, err)
	}
	v.remember(cmp.Or(done.Later.Text, done.Review.Reason), verb == journal.BulkDiscard)
	to := v.place().Subject(item.Subject, field{"done", item.ID})
	if next.Item != nil {
		to = next.at.Subject(next.Subject, field{"after", item.ID})
	}
	return &page{redirect: to + "#decision"}, nil
}

// sentForm is what was written.
func sentForm(from url.Values, verb string) *reviewForm {
	reason := cmp.Or(from.Get("recent"), from.Get("reason")) // one of the buttons was pressed, or it was written
	return &reviewForm{
		Reason: strings.TrimSpace(strings.ReplaceAll(reason, "\r\n", "\n")), How: from.Get("how"),
		When: from.Get("when"), Deadline: from.Get("deadline"), Late: from.Has("late"), Verb: verb,
		Protocol: strings.TrimSpace(from.Get("protocolNumber")),
	}
}

// wrongField names what the form lacks that only a page asks for; empty if nothing is.
func (v *visit) wrongField(f *reviewForm, item *deadletter.Item) string {
	_, known := v.instant(f.Deadline)
	switch {
	case f.Verb != string(journal.BulkRetry), item.State != journal.DeadLetterOpen: // which the service says
		return ""
	case f.How != "next" && f.How != "force" && f.How != "fresh", item.AtLimit() && f.How == "next":
		return "how"
	case f.When != string(deadletter.Backoff) && f.When != string(deadletter.Now):
		return "when"
	case !known:
		return "deadline"
	case item.Late && f.Deadline == "" && !f.Late: // whatever is forced
		return string(deadletter.DeadlineMissed)
	}
	return ""
}

// undone leads back to the form of a dead letter, of which nothing was done.
func (v *visit) undone(item *deadletter.Item, s sent) *page {
	s.Status = cmp.Or(s.Status, http.StatusUnprocessableEntity)
	return v.again(v.place().Subject(item.Subject)+"#decision", s, "reason", "how", "when", "deadline", "late", "text", "protocolNumber",
		"assignee", "followUp")
}

// undecided says why the decision was not taken.
func (v *visit) undecided(item *deadletter.Item, err error) (*page, error) {
	refusal := deadletter.RefusalOf(err)
	if refusal == nil {
		return nil, unsure("undecided", err)
	}
	s := sent{Wrong: v.Or("form.wrong."+string(refusal.Code), refusal.Message)}
	switch {
	case refusal.Code == deadletter.JobNotFound:
		return nil, err
	case refusal.Code == deadletter.InvalidProtocol:
		s.Field = "protocol"
	case refusal.Code == deadletter.InvalidRetryState && refusal.State == journal.DeadLetterOpen:
		s.Wrong = v.T("form.wrong.nobody")
	case refusal.Code == deadletter.InvalidRetryState && refusal.By != "":
		s.Wrong = v.tooLate(item, refusal)
	default:
		s.Field = map[deadletter.Code]string{
			deadletter.ReasonRequired: "reason", deadletter.ReasonTooLong: "reason",
			deadletter.MaxRetriesExceeded: "how", deadletter.PolicyNotFound: "when",
			deadletter.DeadlineMissed: string(deadletter.DeadlineMissed),
		}[refusal.Code]
	}
	return v.undone(item, s), nil
}

// tooLate says who was faster.
func (v *visit) tooLate(item *deadletter.Item, r *deadletter.Refusal) string {
	did := v.T("form.did.retry")
	switch {
	case r.State == journal.DeadLetterAccepted:
		did = v.T("form.did.accepted")
	case r.State == journal.DeadLetterDiscarded || item.Review.Discard:
		did = v.T("form.did.discard")
	}
	return v.T("form.wrong.too_late", r.By, did, v.clock(r.At))
}

// noteData is what people said of a dead letter without deciding on it.
type noteData struct {
	// ID of the dead letter, and the list that the forms lead back to.
	ID, Place, Token string
	// Later says who retries or discards it, and LaterFor why; Due is when that can be undone no longer.
	Later, LaterFor string
	Due             Moment
	// MayUndo and MayComment are what the reader may; Said is the note that was not taken.
	MayUndo, MayComment bool
	Said                string
	Has                 *assignedData
}

// notes of a dead letter.
func (v *visit) notes(o *open, d *journal.DeadLetter, at string, s *sent) *noteData {
	n := &noteData{ID: d.ID, Place: at, Token: access.FormToken(v.r.Context()), Has: v.assigned(o, d, s)}
	if a := &d.Later; a.By != "" {
		n.Later, n.LaterFor, n.Due = v.T("note.later."+string(a.Verb), a.By), a.Text, v.In(a.At.Add(journal.UndoFor))
	}
	n.MayComment = v.who.May(access.Review, string(d.Team))
	n.MayUndo = n.MayComment && n.Later != ""
	if s.Verb == string(journal.Comment) {
		n.Said = s.Form.Get("text")
	}
	return n
}

// note carries out POST /dead-letters/{id}/VERB, with text where somebody says something.
func (p *Pages) note(verb journal.NoteVerb) http.HandlerFunc {
	return p.reading(func(v *visit, o *open) (*page, error) {
		item, err := o.Show(v.r.Context(), v.r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		c := deadletter.Command{ID: item.ID, Reason: v.r.PostForm.Get("text")}
		if _, err = o.Note(v.r.Context(), c, verb); err != nil {
			return v.undecided(&item, err)
		}
		return &page{redirect: v.place().Subject(item.Subject) + "#decision"}, nil
	})
}

const (
	recentCookie = "recent"
	// mostRecent reasons are offered; a longer one than maxRecentBytes is not worth a button.
	mostRecent     = 6
	maxRecentBytes = 160
)

// recent are somebody's last reasons, the newest first, as the journal has them: with nothing personal in them.
type recent struct {
	By             string   `json:"by"`
	Retry, Discard []string `json:",omitempty"`
}

// recentReasons of the reader; of somebody else's at the same browser nothing is shown.
func (v *visit) recentReasons() (r recent) {
	if c, err := v.r.Cookie(recentCookie); err == nil {
		raw, _ := base64.RawURLEncoding.DecodeString(c.Value)
		if json.Unmarshal(raw, &r) != nil || r.By != v.who.Name {
			r = recent{}
		}
	}
	r.By = v.who.Name
	return r
}

// remember puts the reason of a decision in front of the others.
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
	raw, _ := json.Marshal(r) // texts, which can be
	v.keep(recentCookie, base64.RawURLEncoding.EncodeToString(raw), 0)
}

const teamCookie = "team"

// readTeam finds which team the reader works for: the one chosen now (?mine=, empty for none), or before, or the only
// one that he may decide for.
func (v *visit) readTeam() {
	if q := v.r.URL.Query(); q.Has("mine") {
		v.mine = decision.Team(plain(q.Get("mine"), maxQueryBytes))
		v.keep(teamCookie, base64.RawURLEncoding.EncodeToString([]byte(v.mine)), aYear)
		return
	}
	if c, err := v.r.Cookie(teamCookie); err == nil {
		raw, _ := base64.RawURLEncoding.DecodeString(c.Value) // what is none of ours is none
		v.mine = decision.Team(plain(string(raw), maxQueryBytes))
	} else if own := string(v.who.Teams); v.who.Teams != access.NoTeam && !strings.Contains(own, ",") {
		v.mine = decision.Team(own)
	}
}

package console

import (
	"net/http"
	"slices"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// lookFor is how long it is shown that somebody looks into a dead letter.
const lookFor = 15 * time.Minute

// noteData is what people said of a dead letter without deciding on it.
type noteData struct {
	// ID of the dead letter, and the list that the forms lead back to.
	ID, Place, Token string
	// Looking and Asking say who does; empty where nobody does. Asked is the words of who asks.
	Looking, Asking, Asked string
	// Discarding says who discards it; DueAt is when that can be undone no longer.
	Discarding, DiscardingFor string
	Due                       Moment
	// MayLook, MayUndo, MayAsk and MayComment are what the reader may.
	MayLook, MayUndo, MayAsk, MayComment bool
}

// notes of a dead letter.
func (v *visit) notes(d *journal.DeadLetter, at string) *noteData {
	n := &noteData{ID: d.ID, Place: at, Token: access.FormToken(v.r.Context())}
	may, open := v.who.May(access.Review, string(d.Team)), d.State == journal.DeadLetterOpen
	if l := &d.Looking; v.now.Sub(l.At) < lookFor {
		n.Looking = v.T("note.looking", l.By, v.clock(l.At))
		if l.By == v.who.Name {
			n.Looking = v.T("note.looking.you", v.clock(l.At))
		}
	}
	if a := &d.Asked; a.By != "" {
		n.Asking, n.Asked = v.T("note.asking", a.By, v.clock(a.At)), a.Text
	}
	if a := &d.Discarding; a.By != "" {
		n.Discarding, n.DiscardingFor, n.Due = v.T("note.discarding", a.By), a.Text, v.In(a.At.Add(journal.UndoFor))
	}
	n.MayUndo, n.MayComment = may && n.Discarding != "", may
	n.MayLook = may && open && n.Looking == ""
	n.MayAsk = !may && open && n.Asking == ""
	return n
}

// mostAsked requests are shown on the overview.
const mostAsked = 20

// asked are the dead letters that somebody asks the reader to decide on, the oldest request first.
func (v *visit) asked(o *open) ([]deadletter.Item, error) {
	items, err := o.DeadLettersAsked(v.r.Context(), mostAsked)
	mayNot := func(i deadletter.Item) bool { return !v.who.May(access.Review, string(i.Team)) }
	return slices.DeleteFunc(items, mayNot), err
}

// note carries out POST /dead-letters/{id}/VERB, with text where somebody says something.
func (p *Pages) note(verb journal.NoteVerb) http.HandlerFunc {
	return p.reading(func(v *visit, o *open) (*page, error) {
		item, err := o.Show(v.r.Context(), v.r.PathValue("id"))
		if err == nil && verb != journal.Ask { // whoever may not decide may ask
			err = v.forbidden(access.Review, item.Team)
		}
		if err != nil {
			return nil, err
		}
		c := deadletter.Command{ID: item.ID, Reason: v.r.PostForm.Get("text"), By: v.who.Name}
		if _, err = o.Note(v.r.Context(), c, verb); err != nil {
			return p.undecided(v, o, &item, &reviewForm{Said: c.Reason}, err)
		}
		return &page{redirect: v.place().subject(item.Subject) + "#decision"}, nil
	})
}

package console

import (
	"maps"
	"net/url"
	"slices"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// place is where in the list of dead letters somebody works: the list's own query, with its filter and page. Addresses
// carry it along as list; nil is nowhere.
type place url.Values

// maxPlaceBytes of a place in an address: more is none of ours.
const maxPlaceBytes = 2000

// here is the list's own page as a place.
func (v *visit) here() place {
	q := v.r.URL.Query()
	q.Del("lang")
	if q.Get("state") == "" {
		q.Set("state", states[0])
	}
	return place(q)
}

// place that the address carries.
func (v *visit) place() place {
	raw := v.r.URL.Query().Get("list")
	q, err := url.ParseQuery(raw)
	if raw == "" || len(raw) > maxPlaceBytes || err != nil {
		return nil
	}
	return place(q)
}

// encoded is what an address carries; empty for nowhere.
func (p place) encoded() string { return url.Values(p).Encode() }

// list is the page of the list; its first where the place is nowhere.
func (p place) list() string {
	if p == nil {
		return "/dead-letters"
	}
	return "/dead-letters?" + p.encoded()
}

// Subject is a subject's page that knows the place, with more fields.
func (p place) Subject(s journal.Subject, more ...field) string {
	return subjectURL(s, append(more, field{"list", p.encoded()})...)
}

// next is what follows a dead letter in the list, and its place; nil where nothing does. One that is not there any more
// is followed by the page's first.
func (v *visit) next(o *open, at place, id string) (*deadletter.Item, place, error) {
	if at == nil {
		return nil, nil, nil
	}
	f, wrong := v.filterOf(url.Values(at))
	if wrong != "" {
		return nil, nil, nil
	}
	items, cursor, err := someOf(v.r.Context(), o, f, url.Values(at).Get("cursor"))
	if deadletter.RefusalOf(err) != nil {
		items, cursor, err = nil, "", nil // a cursor that is none of ours
	}
	if err != nil {
		return nil, nil, err
	}
	n := slices.IndexFunc(items, func(i deadletter.Item) bool { return i.ID == id }) + 1
	if n < len(items) {
		return &items[n], at, nil
	}
	if cursor == "" {
		return nil, nil, nil
	}
	if items, _, err = someOf(v.r.Context(), o, f, cursor); err != nil || len(items) == 0 {
		return nil, nil, err
	}
	then := maps.Clone(at)
	then["cursor"] = []string{cursor}
	return &items[0], then, nil
}

// around is what a claim's page knows of the list that the reader came from.
type around struct {
	// List is its page; Next what follows there, empty where nothing does. Place is what the forms carry along.
	List, Next, Place string
	// Done is what the reader has just decided on the one before; nil where he came another way.
	Done *doneData
}

// doneData is a decision that has just been taken on another claim.
type doneData struct {
	Name, URL, Text string
	// Undo is where it is undone, with the form's Token; empty where it is done for good.
	Undo, Token string
}

// around a dead letter, empty for none.
func (v *visit) around(o *open, id string) (around, error) {
	at := v.place()
	a := around{List: at.list()}
	if at == nil {
		return a, nil
	}
	a.Place = "?" + url.Values{"list": {at.encoded()}}.Encode()
	next, then, err := v.next(o, at, id)
	if err != nil {
		return a, err
	}
	if next != nil && next.ID != id {
		a.Next = then.Subject(next.Subject)
	}
	before, err := o.Show(v.r.Context(), v.r.URL.Query().Get("after"))
	switch {
	case err != nil && deadletter.RefusalOf(err) == nil:
		return a, err
	case err == nil && before.Discarding.By == v.who.Name:
		a.Done = &doneData{Name: before.Subject.ID, URL: at.Subject(before.Subject), Text: v.T("review.done.later"),
			Undo: "/dead-letters/" + before.ID + "/undo" + a.Place, Token: access.FormToken(v.r.Context())}
	case err == nil && before.Review.By == v.who.Name && before.State != journal.DeadLetterOpen:
		done := "review.done.retry"
		if before.Review.Discard {
			done = "review.done.discard"
		}
		a.Done = &doneData{Name: before.Subject.ID, URL: at.Subject(before.Subject), Text: v.T(done)}
	}
	return a, nil
}

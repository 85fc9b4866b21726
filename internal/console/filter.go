package console

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

// filterOf returns the filter that a request asks for: of open dead letters if it names no state. wrong names a field
// that cannot be read (an instant or the state), or ids without any id. Any other invalid value matches nothing.
func (v *visit) filterOf(q url.Values) (f journal.DeadLetterFilter, wrong string) {
	f, err := deadletter.ParseFilter(deadletter.Fields(func(name string) string {
		switch name {
		case "ids":
			return strings.Trim(strings.Join(q[name], ","), ",")
		case "context":
			return contextQuery(q)
		}
		return plain(q.Get(name), maxQueryBytes)
	}).By(v.who.Name, v.zone, v.Now), v.zone, v.Now)
	if field := fieldOf[journal.CodeOf(err)]; slices.Contains([]string{"since", "until", "followUp", "state"}, field) {
		wrong = field
	}
	if q.Has("ids") && f.IDs == "" { // choosing none does not mean all
		wrong = "ids"
	}
	if !slices.Contains(states, f.State) {
		f.State = states[0]
	}
	if !slices.Contains(deadletter.Sorts(), f.Sort) {
		f.Sort = deadletter.Urgent
	}
	return f, wrong
}

// instant parses a field's time in the hospital's zone, and reports whether it can. An empty field is the zero time.
func (v *visit) instant(s string) (time.Time, bool) { return deadletter.ParseInstant(s, v.zone, v.Now) }

// wrongFilter says what is wrong with a filter, by the field that filterOf names.
func (v *visit) wrongFilter(field string, q url.Values) string {
	if field == "state" {
		return v.T("filter.wrong.state", plain(q.Get("state"), maxQueryBytes))
	}
	return v.Or("filter.wrong."+field, v.T("filter.wrong.time"))
}

// plain returns a one-line field's value without control and invisible characters, trimmed, and cut to most bytes.
func plain(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if text.Hidden(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	s = strings.TrimSpace(s)
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

// narrowed reports whether f asks for anything but a state and an order.
func narrowed(f journal.DeadLetterFilter) bool {
	f.State, f.Sort = "", ""
	return f != (journal.DeadLetterFilter{})
}

// searched reports whether f asks for something that the list has no counts for.
func searched(f *journal.DeadLetterFilter) bool {
	return f.Query != "" || f.IDs != "" || !f.FollowUp.IsZero() || !f.Since.IsZero() || !f.Until.IsZero()
}

// field is a field of an address or a form, or a fact in words.
type field struct{ Name, Value string }

// fieldsOf returns a filter as fields, without its state and order.
func fieldsOf(f *journal.DeadLetterFilter) []field {
	all := []field{
		{"q", f.Query}, {"policy", f.Policy}, {"team", string(f.Team)}, {"reason", string(f.Reason)},
		{"fingerprint", f.Fingerprint}, {"ids", f.IDs}, {"context", f.Context}, {"assignee", f.Assignee},
		{"followUp", exact(f.FollowUp)}, {"since", exact(f.Since)}, {"until", exact(f.Until)},
	}
	return slices.DeleteFunc(all, func(x field) bool { return x.Value == "" })
}

// unless returns what a text says of t; empty for the zero time.
func unless(t time.Time, text string) string {
	if t.IsZero() {
		return ""
	}
	return text
}

// exact returns t as addresses and hidden fields hold it; empty for the zero time.
func exact(t time.Time) string { return unless(t, t.UTC().Format(time.RFC3339Nano)) }

// local returns t as a datetime-local field holds it, in the hospital's zone; empty for the zero time.
func (v *visit) local(t time.Time) string {
	return unless(t, t.In(v.zone).Format("2006-01-02T15:04:05")) // browsers leave seconds of 0 out
}

// address returns path with the fields that have a value.
func address(path string, fields ...field) string {
	q := url.Values{}
	for _, x := range fields {
		if x.Value != "" {
			q.Set(x.Name, x.Value)
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// listFields returns a filter as fields, with its order, and its state unless that is open.
func listFields(f *journal.DeadLetterFilter) []field {
	all := append(fieldsOf(f), field{"sort", f.Sort})
	if f.State == string(journal.DeadLetterOpen) {
		return all
	}
	return append(all, field{"state", f.State})
}

// listURL returns the address of the list of the dead letters that a filter selects.
func listURL(f journal.DeadLetterFilter) string { return address("/dead-letters", listFields(&f)...) }

// listBy is listURL with another value of one field; an empty value removes the field.
func listBy(f journal.DeadLetterFilter, name, value string) string {
	others := slices.DeleteFunc(listFields(&f), func(x field) bool { return x.Name == name })
	return address("/dead-letters", append(others, field{name, value})...)
}

// groupsURL returns the address of the causes of a filter's open dead letters.
func groupsURL(f journal.DeadLetterFilter) string {
	f.Since, f.Until = time.Time{}, time.Time{}
	return address("/dead-letters/groups", fieldsOf(&f)...)
}

// planURL returns the address that plans an action on all of a filter's open dead letters.
func planURL(f journal.DeadLetterFilter) string { return address("/bulk-runs/new", fieldsOf(&f)...) }

// factLink is a fact that leads to a list.
type factLink struct {
	field
	URL string
}

// Chips returns the parts of a filter in words, each with a link to the list without it. A fingerprint is shown as its
// pattern.
func (v *visit) Chips(f journal.DeadLetterFilter) (all []factLink) {
	variable, value, _ := strings.Cut(f.Context, "=")
	words := map[string]field{
		"fingerprint": {v.T("col.cause"), cmp.Or(v.cause(f.Fingerprint).Pattern, f.Fingerprint)},
		"q":           {v.T("list.q"), f.Query}, "policy": {v.T("col.policy"), v.policy(f.Policy)},
		"team":     {v.T("col.team"), v.Or("team."+string(f.Team), string(f.Team))},
		"reason":   {v.T("col.reason"), v.reason(f.Reason)},
		"ids":      {v.T("filter.ids"), v.Number(int64(strings.Count(f.IDs, ",") + 1))},
		"context":  {v.ContextLabel(f.Policy, variable), value},
		"assignee": {v.T("col.assignee"), v.Or("assignee."+f.Assignee, f.Assignee)},
		"followUp": {v.T("filter.follow_up"), v.when(f.FollowUp)},
		"since":    {v.T("filter.since"), v.when(f.Since)}, "until": {v.T("filter.until"), v.when(f.Until)},
	}
	for _, x := range fieldsOf(&f) {
		all = append(all, factLink{words[x.Name], listBy(f, x.Name, "")})
	}
	return all
}

// when returns date and time, to the second.
func (v *visit) when(t time.Time) string { return v.Day(t) + " " + t.In(v.zone).Format("15:04:05") }

// place is the page of the list that the reader comes from, as that page's own query. Addresses carry it in the field
// list; empty means no list.
type place string

// maxPlaceBytes bounds a place in an address: the pages never write a longer one.
const maxPlaceBytes = 2000

// listPlace returns this page, a page of the list, as a place.
func (v *visit) listPlace() place {
	q := v.r.URL.Query()
	q.Del("lang")
	q.Set("state", cmp.Or(q.Get("state"), states[0]))
	return place(q.Encode())
}

// place returns the place that the address carries, if any.
func (v *visit) place() place {
	raw := v.r.URL.Query().Get("list")
	q, err := url.ParseQuery(raw)
	if len(raw) > maxPlaceBytes || err != nil {
		return ""
	}
	return place(q.Encode())
}

// list returns the address of the list's page, or of the list if there is none.
func (p place) list() string { return strings.TrimSuffix("/dead-letters?"+string(p), "?") }

// Subject returns the address of a subject's page that carries p, with more fields.
func (p place) Subject(s journal.Subject, more ...field) string {
	return subjectURL(s, append(more, field{"list", string(p)})...)
}

// next returns the page's address of what follows a dead letter in the list, and its id: the first of the page if the
// dead letter is no longer on it; both are empty if nothing follows. The address carries its place, and more fields.
// number says where the dead letter stands on the list's first page; empty if it is not there.
func (v *visit) next(at place, id string, more ...field) (to, next, number string) {
	q, _ := url.ParseQuery(string(at)) // which was parsed before
	f, wrong := v.filterOf(q)
	if at == "" || wrong != "" {
		return "", "", ""
	}
	begin := q.Get("cursor")
	items, cursor, err := v.o.List(v.r.Context(), f, begin, pageRows)
	if journal.RefusalOf(err) != nil { // the cursor is not of this list
		return "", "", ""
	}
	check(err)
	n := slices.IndexFunc(items, func(i deadletter.Item) bool { return i.ID == id }) + 1
	if n > 0 && begin == "" {
		key := "retries.of"
		if cursor != "" {
			key = "place.number.more"
		}
		number = v.T(key, v.Number(int64(n)), v.Number(int64(len(items))))
	}
	if n == len(items) && cursor != "" {
		q.Set("cursor", cursor)
		at = place(q.Encode())
		items, _, err = v.o.List(v.r.Context(), f, cursor, pageRows)
		check(err)
		n = 0
	}
	if n == len(items) {
		return "", "", number
	}
	return at.Subject(items[n].Subject, more...), items[n].ID, number
}

// around returns what a claim's page shows of the list that the reader came from, by the id of the claim's dead letter,
// empty if it has none: the addresses of the list and of the claim that follows, and which of its claims this is.
// Forms' addresses end in Place. Done is the dead letter before, on which the reader has just decided.
func (v *visit) around(id string) view {
	at := v.place()
	a := view{"At": at, "List": at.list(), "Next": "", "Number": "", "Place": "", "Done": nil}
	if at == "" {
		return a
	}
	a["Place"] = address("", field{"list", string(at)})
	to, next, number := v.next(at, id)
	if a["Number"] = number; next != id {
		a["Next"] = to
	}
	before, err := v.o.Show(v.r.Context(), v.r.URL.Query().Get("after"))
	if journal.RefusalOf(err) != nil { // there is none
		return a
	}
	check(err)
	if before.Later.By == v.who.Name || before.Review.By == v.who.Name && before.State != journal.DeadLetterOpen {
		a["Done"] = &before
	}
	return a
}

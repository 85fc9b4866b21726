package console

import (
	"net/url"
	"slices"
	"strings"

	"retry-worker/internal/journal"
)

const (
	viewsCookie = "views"
	// mostViews are kept by a browser, each with a name of maxViewBytes at most.
	mostViews    = 8
	maxViewBytes = 40
)

// savedView is a list that the reader gave a name: its filter and its order.
type savedView struct {
	Name  string `json:"n"`
	Query string `json:"q"`
}

// shownView is a saved view on a page: where it leads, and what takes it away.
type shownView struct {
	viewLink
	Forget string
}

func (v *visit) savedViews() (all []savedView) {
	if !v.kept(viewsCookie, &all) {
		return nil
	}
	return all[:min(len(all), mostViews)]
}

// changeViews saves the list under a name (?save=) or takes one away (?forget=), and returns the list's own address; empty
// where neither is asked for. The newest stands first; one of the same name, and the oldest beyond mostViews, go.
func (v *visit) changeViews(f journal.DeadLetterFilter) string {
	q := v.r.URL.Query()
	save, forget := plain(q.Get("save"), maxViewBytes), plain(q.Get("forget"), maxViewBytes)
	if save == "" && forget == "" {
		return ""
	}
	address := listURL(f, "")
	all := slices.DeleteFunc(v.savedViews(), func(s savedView) bool { return s.Name == save || s.Name == forget })
	if save != "" {
		_, query, _ := strings.Cut(address, "?")
		all = append([]savedView{{save, query}}, all...)
		all = all[:min(len(all), mostViews)]
	}
	v.keepAll(viewsCookie, all, false)
	return address
}

// shownViews lead to the saved views, by their own fields alone.
func (v *visit) shownViews(f journal.DeadLetterFilter) (all []shownView) {
	here := listURL(f, "")
	for _, s := range v.savedViews() {
		q, err := url.ParseQuery(s.Query)
		if err != nil {
			continue
		}
		of, _ := v.filterOf(q)
		to := listURL(of, "")
		all = append(all, shownView{viewLink{s.Name, to, to == here}, listURL(f, "", field{"forget", s.Name})})
	}
	return all
}

const columnsCookie = "columns"

// columns of the list that a reader may leave out, in their order, each with the key of its name.
var columns = []struct{ name, key string }{
	{"context", "list.column.context"}, {"team", "col.who_acts"}, {"amount", "col.amount"},
	{"deadline", "col.deadline"}, {"age", "col.age"}, {"process", "col.process"},
}

// columns that the reader chose, now (?columns=, once for each and once for none) or before; all where he did not.
func (v *visit) columns() (all []option) {
	chosen, known := v.r.URL.Query()[columnsCookie]
	if known {
		chosen = slices.DeleteFunc(chosen, func(name string) bool { return name == "" || strings.ContainsFunc(name, notLetter) })
		v.keep(columnsCookie, strings.Join(chosen, "."), false)
	} else if c, err := v.r.Cookie(columnsCookie); err == nil {
		chosen, known = strings.Split(c.Value, "."), true
	}
	for _, c := range columns {
		all = append(all, option{c.name, v.T(c.key), !known || slices.Contains(chosen, c.name)})
	}
	return all
}

func notLetter(r rune) bool { return r < 'a' || r > 'z' }

// Shows reports whether the reader wants to see a column.
func (d *listData) Shows(column string) bool {
	return slices.ContainsFunc(d.Columns, func(o option) bool { return o.Value == column && o.Selected })
}

// Fields are those of the list's address that its filter's form does not have.
func (d *listData) Fields() []field {
	return append(fieldsOf(&d.Filter), field{"state", d.Filter.State}, field{"sort", d.Filter.Sort})
}

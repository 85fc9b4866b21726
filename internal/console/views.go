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

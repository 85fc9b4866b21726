package console

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
)

func portalURL(name string) string { return "/destinations/" + segment(name) }

// portals answers GET /destinations: those that are not up first, then those with the most waiting claims.
func (p *Pages) portals(v *visit) *page {
	all := must(v.o.Destinations.Destinations())
	isUp := func(d gate.Destination) bool { return d.State.Phase == destination.Up }
	slices.SortStableFunc(all, func(a, b gate.Destination) int {
		return cmp.Or(falseFirst(isUp(a), isUp(b)), b.Held-a.Held)
	})
	rows := journal.Views(all, func(d *gate.Destination) *gate.Destination { return d }) // as methods take it
	bad := slices.DeleteFunc(slices.Clone(all), isUp)
	return &page{name: "portals", summary: v.Count("portals.not_up", int64(len(bad))), data: view{"Rows": rows}}
}

// PortalState returns the badge of how a destination is.
func (v *visit) PortalState(d *gate.Destination) Badge {
	switch s := &d.State; {
	case s.Phase == destination.Down && s.Outage.Cause == destination.CausePerson:
		return Badge{"warn", v.T("portal.held")}
	case s.Phase == destination.Up && !d.Settings.Calendar.IsOpen(v.Now):
		return Badge{"off", v.T("portal.closed")}
	}
	return v.badge("portal", d.State.Phase)
}

// takes returns how long n last at a pace.
func takes(n, perMinute float64) time.Duration {
	return time.Duration(n / perMinute * float64(time.Minute))
}

// Brief returns the time of day of t, with its date unless that is today.
func (v *visit) Brief(t time.Time) string {
	clock := t.In(v.zone).Format("15:04")
	if v.Day(t) != v.Day(v.Now) {
		return v.ShortDay(t) + " " + clock
	}
	return clock
}

// portal answers GET /destinations/{name}: how a destination is, what waits, and what may be done.
func (p *Pages) portal(v *visit) *page {
	found, claims, err := v.o.Destination(v.r.PathValue("name"))
	check(err)
	return &page{name: "portal", title: v.Portal(found.Name),
		summary: v.PortalState(&found).Word + ". " + v.Say("portal.says", &found),
		data: view{"Portal": &found, "Claims": claims, "MayNot": v.mayNot(access.Order, "", "portal.may_not"),
			"Done": v.Or("portal.done."+v.r.URL.Query().Get("done"), "")}}
}

// order answers POST /destinations/{name}/hold, …/probe, …/release and …/up with reason, until and perMinute. It
// leads back to the destination's page. An until or perMinute that cannot be read counts as missing.
func (p *Pages) order(v *visit) *page {
	name, form := v.r.PathValue("name"), v.r.PostForm
	c := destination.Order{Verb: destination.Verb(v.verb()), Reason: form.Get("reason")}
	c.Until, _ = v.instant(form.Get("until"))
	c.PerMinute, _ = strconv.ParseFloat(strings.Replace(form.Get("perMinute"), ",", ".", 1), 64)
	err := v.o.Order(v.r.Context(), name, c)
	return v.answer(err, address(portalURL(name), field{"done", v.verb()})+"#result",
		"portal.wrong.", "unordered", p.portal)
}

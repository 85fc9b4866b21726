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

// portalRow is one destination as people see it.
type portalRow struct {
	*gate.Destination
	Name, URL string
	State     Badge
	// Says describes it in a sentence.
	Says string
}

func portalURL(name string) string { return "/destinations/" + segment(name) }

// portals answers GET /destinations: those that are not up first, then those with the most waiting claims.
func (p *Pages) portals(v *visit) *page {
	all, bad := must(v.o.Destinations.Destinations()), int64(0)
	isUp := func(d *gate.Destination) bool { return d.State.Phase == destination.Up }
	slices.SortStableFunc(all, func(a, b gate.Destination) int { return cmp.Or(falseFirst(isUp(&a), isUp(&b)), b.Held-a.Held) })
	for i := range all {
		if !isUp(&all[i]) {
			bad++
		}
	}
	return &page{name: "portals", section: "portals", title: v.T("portals.title"), summary: v.Count("portals.not_up", bad),
		data: view{"V": v, "Rows": journal.Views(all, v.portalRow)}}
}

func (v *visit) portalRow(d *gate.Destination) portalRow {
	s, row := &d.State, portalRow{d, v.Portal(d.Name), portalURL(d.Name), v.badge("portal", d.State.Phase), v.portalSays(d)}
	switch {
	case s.Phase == destination.Down && s.Outage.Cause == destination.CausePerson:
		row.State = Badge{"warn", v.T("portal.held")}
	case s.Phase == destination.Up && !d.Settings.Calendar.IsOpen(v.Now):
		row.State = Badge{"off", v.T("portal.closed")}
	}
	return row
}

// portalSays says how a destination is and why, how many claims wait, and what comes next.
func (v *visit) portalSays(d *gate.Destination) string {
	s, opens := &d.State, d.Settings.Calendar.Next(v.Now)
	waiting := v.Count("portal.waiting", int64(d.Held))
	if worth := v.Money(d.Cents); worth != "" {
		waiting += " (" + worth + ")"
	}
	shut := opens.After(v.Now)
	if shut && (s.Phase == destination.Down || s.Phase == destination.Testing) {
		return v.downSays(d) + " " + v.T("portal.shut", v.Brief(opens)) + " " + waiting + "."
	}
	switch {
	case shut:
		return v.T("portal.shut", v.Brief(opens)) + " " + waiting + "."
	case s.Phase == destination.Up && !s.UpUntil.IsZero():
		return v.T("portal.up.ordered", v.Brief(s.UpUntil))
	case s.Phase == destination.Up && d.Held > 0:
		return v.T("portal.up.queue", v.short(s.PerMinute(&d.Settings, v.Now), 1)) + " " + waiting + "."
	case s.Phase == destination.Up:
		return v.T("portal.up.says")
	case s.Phase == destination.Ramping:
		says, pace := v.T("portal.ramping.says", v.Portal(d.Name), v.Brief(s.Since)), s.PerMinute(&d.Settings, v.Now)
		if d.Held > 0 && pace > 0 {
			last := time.Duration(float64(d.Held) / pace * float64(time.Minute))
			takes := v.lasting(max(last, time.Minute))
			says += " " + waiting + "; " + v.T("portal.pace", v.short(pace, 1), takes)
		}
		return says
	}
	next := v.T("portal.test.next", v.Brief(s.NextTest))
	switch {
	case s.Phase == destination.Testing:
		next = v.T("portal.test.sent", v.Brief(s.Canary.Sent))
	case d.Held == 0:
		return v.downSays(d) + " " + v.T("portal.test.first")
	case d.Settings.Probe.URL != "" && s.HeldUntil.IsZero():
		next = v.T("portal.test.probe", v.Brief(s.NextProbe))
	}
	return v.downSays(d) + " " + waiting + "; " + next
}

// downSays says since when a destination is down, why, and when it is expected back.
func (v *visit) downSays(d *gate.Destination) string {
	s, since := &d.State, v.Brief(d.State.Outage.Since)
	by := cmp.Or(s.Outage.By, v.T("portal.somebody"))
	says := v.T("portal.down.person", v.Portal(d.Name), by, since)
	switch {
	case s.Outage.Cause == destination.CauseFailures:
		failed, admitted := v.Number(int64(s.Outage.Failed)), v.Number(int64(s.Outage.Admitted))
		says = v.T("portal.down.failures", v.Portal(d.Name), since, failed, admitted)
	case s.Outage.Cause == destination.CauseProbe:
		says = v.T("portal.down.probe", v.Portal(d.Name), since)
	case !s.HeldUntil.IsZero():
		says = v.T("portal.down.person.until", v.Portal(d.Name), by, since, v.Brief(s.HeldUntil))
	}
	if b := &d.Back; !b.Median.IsZero() {
		says += " " + v.T("portal.back", v.Brief(b.Median), v.Brief(b.Low), v.Brief(b.High))
	}
	return says
}

// Brief returns the time of day of t, with its date unless that is today.
func (v *visit) Brief(t time.Time) string {
	clock := t.In(v.zone).Format("15:04")
	if v.Day(t) != v.Day(v.Now) {
		return v.shortDay(t) + " " + clock
	}
	return clock
}

// portal answers GET /destinations/{name}: how a destination is, what waits, and what may be done.
func (p *Pages) portal(v *visit) *page {
	found, claims, err := v.o.Destination(v.r.PathValue("name"))
	check(err)
	row, since := v.portalRow(&found), Moment{}
	if found.State.Phase == destination.Up { // in other phases Says has it
		since = v.At(found.State.Since)
	}
	return &page{name: "portal", section: "portals", title: row.Name, summary: row.State.Word + ". " + row.Says,
		data: view{"V": v, "Portal": row, "Since": since, "Claims": claims, "MayNot": v.mayNot(access.Order, "", "portal.may_not"),
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
	return v.answer(err, address(portalURL(name), field{"done", v.verb()})+"#result", "portal.wrong.", "unordered", p.portal)
}

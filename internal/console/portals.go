package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
)

// portalRow is one destination.
type portalRow struct {
	Name, URL string
	State     Badge
	Since     Moment
	// Says is how it is, as a sentence.
	Says     string
	Held     int64
	Deadline Moment
}

// portalData is one destination: how it is, what waits, and what may be done.
type portalData struct {
	portalRow
	Oldest Moment
	Claims []gate.Claim
	V      *visit
	Forms  []orderForm
	// MayNot says why the reader may order nothing; empty where he may.
	MayNot, Done, Wrong string
}

// orderForm is one order that may be given, with what was sent of it.
type orderForm struct {
	Verb, Action, Token      string
	HasUntil, HasPace, Sent  bool
	Until, PerMinute, Reason string
	Most                     string
}

func portalURL(name string) string { return "/destinations/" + segment(name) }

// portals answers GET /destinations.
func (p *Pages) portals(v *visit, o *open) (*page, error) {
	all, err := o.Destinations.Destinations()
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b gate.Destination) int { return cmp.Or(calm(&a)-calm(&b), b.Held-a.Held) })
	rows, bad := make([]portalRow, 0, len(all)), int64(0)
	for i := range all {
		rows = append(rows, v.portalRow(&all[i]))
		if all[i].State.Phase != destination.Up {
			bad++
		}
	}
	return &page{name: "portals", section: "portals", title: v.T("portals.title"), data: rows,
		summary: v.Count("portals.not_up", bad)}, nil
}

// calm is 0 for a destination that is not up, and 1 for one that is.
func calm(d *gate.Destination) int {
	if d.State.Phase == destination.Up {
		return 1
	}
	return 0
}

func (v *visit) portalRow(d *gate.Destination) portalRow {
	s := &d.State
	row := portalRow{Name: v.portal(d.Name), URL: portalURL(d.Name), State: v.badge("portal", s.Phase),
		Says: v.portalSays(d), Held: int64(d.Held), Deadline: v.Due(d.Deadline)}
	if s.Phase == destination.Up { // of any other the sentence says it
		row.Since = v.At(s.Since)
	}
	switch {
	case s.Phase == destination.Down && s.Outage.Cause == destination.CausePerson:
		row.State = Badge{"warn", v.T("portal.held")}
	case s.Phase == destination.Up && !d.Settings.Calendar.IsOpen(v.now):
		row.State = Badge{"off", v.T("portal.closed")}
	}
	return row
}

// portalSays says how a destination is: why, how many wait, and what comes next.
func (v *visit) portalSays(d *gate.Destination) string {
	s, waiting, opens := &d.State, v.queueSays(d), d.Settings.Calendar.Next(v.now)
	shut := opens.After(v.now)
	if shut && (s.Phase == destination.Down || s.Phase == destination.Testing) {
		return v.downSays(d) + " " + v.T("portal.shut", v.brief(opens)) + " " + waiting + "."
	}
	switch {
	case shut:
		return v.T("portal.shut", v.brief(opens)) + " " + waiting + "."
	case s.Phase == destination.Up:
		return v.upSays(d, waiting)
	case s.Phase == destination.Ramping:
		says, pace := v.T("portal.ramping.says", v.portal(d.Name), v.brief(s.Since)), s.PerMinute(&d.Settings, v.now)
		if d.Held > 0 && pace > 0 {
			last := time.Duration(float64(d.Held) / pace * float64(time.Minute))
			takes := v.lasting(max(last, time.Minute))
			says += " " + waiting + "; " + v.T("portal.pace", v.short(pace, 1), takes)
		}
		return says
	}
	next := v.T("portal.test.next", v.brief(s.NextTest))
	switch {
	case s.Phase == destination.Testing:
		next = v.T("portal.test.sent", v.brief(s.Canary.Sent))
	case d.Held == 0:
		return v.downSays(d) + " " + v.T("portal.test.first")
	case d.Settings.Probe.URL != "" && s.HeldUntil.IsZero():
		next = v.T("portal.test.probe", v.brief(s.NextProbe))
	}
	return v.downSays(d) + " " + waiting + "; " + next
}

// queueSays says how many claims wait, and what they are worth.
func (v *visit) queueSays(d *gate.Destination) string {
	says := v.Count("portal.waiting", int64(d.Held))
	if worth := v.Money(d.Cents); worth != "" {
		says += " (" + worth + ")"
	}
	return says
}

func (v *visit) upSays(d *gate.Destination, waiting string) string {
	switch s := &d.State; {
	case !s.UpUntil.IsZero():
		return v.T("portal.up.ordered", v.brief(s.UpUntil))
	case d.Held > 0:
		return v.T("portal.up.queue", v.short(s.PerMinute(&d.Settings, v.now), 1)) + " " + waiting + "."
	}
	return v.T("portal.up.says")
}

// downSays says since when a destination is down, why, and when it is expected back.
func (v *visit) downSays(d *gate.Destination) string {
	says := v.causeSays(d)
	if b := &d.Back; !b.Median.IsZero() {
		says += " " + v.T("portal.back", v.brief(b.Median), v.brief(b.Low), v.brief(b.High))
	}
	return says
}

func (v *visit) causeSays(d *gate.Destination) string {
	s, since := &d.State, v.brief(d.State.Outage.Since)
	by := cmp.Or(s.Outage.By, v.T("portal.somebody"))
	switch {
	case s.Outage.Cause == destination.CauseFailures:
		failed, admitted := v.Number(int64(s.Outage.Failed)), v.Number(int64(s.Outage.Admitted))
		return v.T("portal.down.failures", v.portal(d.Name), since, failed, admitted)
	case s.Outage.Cause == destination.CauseProbe:
		return v.T("portal.down.probe", v.portal(d.Name), since)
	case !s.HeldUntil.IsZero():
		return v.T("portal.down.person.until", v.portal(d.Name), by, since, v.brief(s.HeldUntil))
	}
	return v.T("portal.down.person", v.portal(d.Name), by, since)
}

// brief is the time of an instant, with its day where that is not today.
func (v *visit) brief(t time.Time) string {
	clock := t.In(v.zone).Format("15:04")
	if v.day(t) != v.day(v.now) {
		return v.shortDay(t) + " " + clock
	}
	return clock
}

// portal answers GET /destinations/{name}.
func (p *Pages) portal(v *visit, o *open) (*page, error) {
	name, sent := v.r.PathValue("name"), v.sent()
	found, claims, err := o.Destination(name)
	if err != nil {
		return nil, err
	}
	d := &portalData{
		V: v, portalRow: v.portalRow(&found), Oldest: v.Ago(found.Oldest), Wrong: sent.Wrong, Claims: claims,
	}
	if done := v.r.URL.Query().Get("done"); slices.Contains(orders, destination.Verb(done)) {
		d.Done = v.T("portal.done." + done)
	}
	if v.who.Role.May(access.Order) {
		d.Forms = v.orderForms(&found, &sent)
	} else {
		d.MayNot = v.T("portal.may_not", v.role())
	}
	return &page{name: "portal", section: "portals", title: d.Name, data: d, status: sent.Status,
		summary: d.State.Word + ". " + d.Says}, nil
}

// orders are all that may be ordered.
var orders = []destination.Verb{destination.HoldClaims, destination.SendCanary, destination.ReleaseAt, destination.TreatAsUp}

// orderForms are the forms of all orders.
func (v *visit) orderForms(d *gate.Destination, sent *sent) (forms []orderForm) {
	for _, verb := range orders {
		f := orderForm{}
		if string(verb) == sent.Verb {
			f = orderOf(sent.Form)
			f.Sent = true
		}
		f.Verb, f.Action, f.Token = string(verb), portalURL(d.Name)+"/"+string(verb), access.FormToken(v.r.Context())
		f.HasUntil, f.HasPace = verb == destination.HoldClaims || verb == destination.TreatAsUp, verb == destination.ReleaseAt
		f.Most = v.short(d.Settings.Pace.Most, 1)
		forms = append(forms, f)
	}
	return forms
}

func orderOf(form url.Values) orderForm {
	return orderForm{Until: form.Get("until"), PerMinute: form.Get("perMinute"), Reason: form.Get("reason")}
}

// order answers POST /destinations/{name}/hold, …/probe, …/release and …/up with reason, until and perMinute, and leads
// back to the destination's page.
func (p *Pages) order(verb destination.Verb) http.HandlerFunc {
	return p.reading(func(v *visit, o *open) (*page, error) {
		name, wanted := v.r.PathValue("name"), orderOf(v.r.PostForm)
		err := v.give(o, name, verb, &wanted)
		wrong, is := errors.AsType[*gate.CommandError](err)
		refusal, says := deadletter.RefusalOf(err), ""
		switch {
		case err == nil:
			return &page{redirect: address(portalURL(name), field{"done", string(verb)}) + "#result"}, nil
		case is:
			says = v.Or("portal.wrong."+wrong.Code, wrong.Message)
		case refusal != nil:
			says = v.Or("form.wrong."+string(refusal.Code), refusal.Message)
		case errors.Is(err, gate.ErrUnknown):
			return nil, err
		default:
			return nil, unsure("unordered", err)
		}
		return v.again(portalURL(name)+"#result", sent{Wrong: says, Status: http.StatusUnprocessableEntity},
			"until", "perMinute", "reason"), nil
	})
}

// give gives the order that was sent. What is no instant and no number is refused as none.
func (v *visit) give(o *open, name string, verb destination.Verb, sent *orderForm) error {
	c := destination.Order{Verb: verb, Reason: sent.Reason}
	c.Until, _ = v.instant(sent.Until)
	c.PerMinute, _ = strconv.ParseFloat(strings.Replace(sent.PerMinute, ",", ".", 1), 64)
	return o.Order(v.r.Context(), name, c)
}

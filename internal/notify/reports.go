package notify

import (
	"slices"
	"time"

	"retry-worker/internal/classify"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
)

const (
	// holdsFor is how old what a person taught may be before a digest asks whether it still holds.
	holdsFor = 90 * 24 * time.Hour
	// toldWithin is for how long a cause is news to a receiver that has been told of none since.
	toldWithin = 7 * 24 * time.Hour
	// mostCauses bounds the causes that are read for a notice.
	mostCauses = 1000
)

// known returns how notices name a cause that cases failures share.
func (l *look) known(c *journal.Cause, cases int64) KnownCause {
	k := KnownCause{ID: c.ID, Policy: clean(c.Policy, maxPattern), Reason: clean(string(c.Reason), maxPattern),
		URL: l.page("/causes/" + c.ID)}
	if cases >= fewest {
		k.Pattern = clean(c.Pattern, maxPattern)
	}
	return k
}

// theirs returns the causes that match a filter and that a team acts on.
func (l *look) theirs(team decision.Team, f journal.CauseFilter) []journal.Cause {
	return slices.DeleteFunc(l.causes(f, mostCauses), func(c journal.Cause) bool { return l.teamOf(&c) != team })
}

// teamOf returns who acts on a cause: the team that was taught, or its rule's, or else its policy's at the limit.
func (l *look) teamOf(c *journal.Cause) decision.Team {
	p := l.Catalogue().Policies[c.Policy]
	switch r := ruleOf(p, c.Reason); {
	case c.Taught != nil && c.Taught.Team != "":
		return c.Taught.Team
	case r.Team != "":
		return r.Team
	case p != nil:
		return p.LimitTeam
	}
	return ""
}

// ruleOf returns the rule with that name; the zero value if there is none.
func ruleOf(p *decision.Policy, name decision.Reason) classify.Rule {
	if p != nil && p.Rules != nil {
		for _, r := range p.Rules.Rules() {
			if r.Name == string(name) {
				return r
			}
		}
	}
	return classify.Rule{}
}

// newCauses makes a notice of the team's causes that are new, or back, since the last one told, and reports whether
// there are any.
func (l *look) newCauses(r Receiver) bool {
	from := l.watermark(r, deadletter.CausesNotice)
	if l.lately(from.At) {
		return false
	}
	to, told := from, []NewCause(nil)
	for i := range l.fresh {
		if c := &l.fresh[i]; l.teamOf(c) == r.Team && c.News.At.After(from.At) && len(told) < topCauses {
			to.At, told = c.News.At, append(told, l.newCause(c))
		}
	}
	if len(told) == 0 {
		return false
	}
	l.tell(r, from, to, TypeCauses, func(d *Data) { d.NewCauses, d.URL = told, l.page("/") })
	return true
}

func (l *look) newCause(c *journal.Cause) NewCause {
	label := l.Catalogue().Destinations.Of(c.News.Destination).Label.String()
	shown := NewCause{l.known(c, c.News.Claims), *c.News, clean(label, maxWord)}
	shown.Destination = clean(shown.Destination, maxPattern)
	return shown
}

// taught returns the team's causes that were taught long ago.
func (l *look) taught(team decision.Team) (old []Taught) {
	for _, c := range l.theirs(team, journal.CauseFilter{Taught: true}) {
		if l.now.Sub(c.Taught.At) >= holdsFor && len(old) < topCauses {
			old = append(old, Taught{l.known(&c, c.Failures), string(c.Taught.Class), second(c.Taught.At)})
		}
	}
	return old
}

// advised returns the team's causes of the last week whose retries hardly help and of which nothing is taught (R26).
func (l *look) advised(team decision.Team) (all []Advised) {
	if l.Learner == nil {
		return nil
	}
	for _, c := range l.theirs(team, journal.CauseFilter{}) {
		learnt := l.Learner.Prospects(&c.Fingerprint)
		if c.Taught == nil && learnt.Hopeless() && l.now.Sub(c.LastSeen) < statistics.Weekly && len(all) < topCauses {
			all = append(all, Advised{l.known(&c, c.Failures), learnt.Recovered, learnt.Closed()})
		}
	}
	return all
}

// outageOf returns the outage of a destination that is, or was, down.
func outageOf(d *gate.Destination) *Outage {
	of := &d.State.Outage
	o := &Outage{Destination: clean(d.Name, maxPattern), Label: clean(d.Settings.Label.String(), maxWord),
		Cause: string(of.Cause), Failed: int64(of.Failed), Admitted: int64(of.Admitted), Since: second(of.Since)}
	if d.State.Phase == destination.Up {
		o.Until, o.Held = second(d.State.Since), int64(of.Held)
		return o
	}
	o.Held, o.Deadline = int64(d.Held), second(d.Deadline)
	if d.State.Phase == destination.Down {
		o.NextTest = second(d.State.NextTest)
	}
	return o
}

// outage makes a notice of a destination that went down, or that is up again after an outage that was told, and
// reports whether there is one. The team must act when a policy with a destination gives up. An outage soon after
// another is told once Interval has passed since that one began, if it lasts so long.
func (l *look) outage(r Receiver) bool {
	acts := func(p *decision.Policy) bool { return p.Destination != nil && p.LimitTeam == r.Team }
	policies := l.Catalogue().Policies
	if !slices.ContainsFunc(policies.Names(), func(name string) bool { return acts(policies[name]) }) {
		return false
	}
	for i := range l.destinations {
		d := &l.destinations[i]
		from := l.watermark(r, deadletter.OutageNotice+deadletter.NoticeKind(d.Name))
		to, kind := from, TypeDown
		to.At, to.Record = d.State.Outage.Since.Truncate(time.Millisecond), downTold
		told, phase := !from.At.IsZero() && to.At.Equal(from.At), d.State.Phase
		switch {
		case d.Unrecorded: // told once it is recorded
			continue
		case !told && (phase == destination.Down || phase == destination.Testing) && !l.lately(from.At):
		case told && from.Record == downTold && phase == destination.Up:
			to.Record, kind = upTold, TypeUp
		default:
			continue
		}
		l.tell(r, from, to, kind, func(data *Data) { data.Outage, data.URL = outageOf(d), l.page("/destinations") })
		return true
	}
	return false
}

// The Records of an outage's watermark.
const downTold, upTold = 0, 1

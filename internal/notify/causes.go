package notify

import (
	"slices"
	"time"

	"retry-worker/internal/classify"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
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

// KnownCause names a cause without its dead letters.
type KnownCause struct {
	ID     string `json:"cause"`
	Policy string `json:"policy"`
	Reason string `json:"reason"`
	// Pattern is as Cause's.
	Pattern string `json:"pattern,omitempty"`
	// URL is its page; empty if nobody said where the console is.
	URL string `json:"url,omitempty"`
}

// known returns how notices name a cause that cases failures share.
func (l *look) known(c *journal.Cause, cases int64) KnownCause {
	k := KnownCause{ID: c.ID, Policy: clean(c.Policy, maxPattern), Reason: clean(string(c.Reason), maxPattern),
		URL: l.page("/causes/" + c.ID)}
	if cases >= fewest {
		k.Pattern = clean(c.Pattern, maxPattern)
	}
	return k
}

// Taught is a cause that a person taught long ago.
type Taught struct {
	KnownCause
	Classification string    `json:"classification"` // as it was taught
	At             time.Time `json:"at"`
}

// Advised is a cause of whose Closed retried claims so few Recovered that people had better teach it as permanent.
type Advised struct {
	KnownCause
	Recovered int64 `json:"recovered"`
	Closed    int64 `json:"closed"`
}

// NewCause is a cause that was never seen before, or not for 30 days, and failed five times within an hour (R34).
type NewCause struct {
	KnownCause
	journal.News
	// Label is what people call the destination.
	Label string `json:"label,omitempty"`
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

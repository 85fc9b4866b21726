package notify

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"retry-worker/internal/classify"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
	"retry-worker/internal/statistics"
	"retry-worker/internal/text"
)

const (
	topCauses = 12 // that a notice names; the others are summed up
	// fewest is how many dead letters must share a pattern before it is shown: one alone has the error of a single case.
	fewest     = 2
	toldBefore = 30 * 24 * time.Hour // before a dead letter expires, its team is told
	maxPattern = 200                 // bytes of a pattern in a notice
)

// second returns t in UTC, to the second.
func second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// page returns the address of a page of the console; empty if nobody said where the console is.
func (l *look) page(path string) string {
	if l.PublicURL == "" {
		return ""
	}
	return l.PublicURL + path
}

// digest adds what a team's digest says: the age of what is open, what is due, and the figures of its policies.
func (l *look) digest(d *Data, team decision.Team, day string) {
	d.Day, d.Due, d.FollowUps, d.Taught, d.Advised = day, l.due(team), l.followUps(team), l.taught(team), l.advised(team)
	older, old := l.olderThan(team, statistics.Daily), l.olderThan(team, statistics.Weekly)
	d.Ages = &Ages{Day: max(d.Open.Count-older, 0), Week: max(older-old, 0), Older: old}
	if l.Retention > 0 {
		d.Expiring = l.olderThan(team, l.Retention-toldBefore)
	}
	sums := read(l, func() ([]journal.Sum, error) { return l.Store.Sums(l.ctx, statistics.FirstSlot(l.now)) })
	theirs, monday := policiesOf(l.Catalogue().Policies, team), isMonday(day)
	d.KPIs = slices.DeleteFunc(statistics.All(sums, theirs, l.now), func(k statistics.KPI) bool {
		return !slices.Contains(theirs, k.Policy) || k.Window > statistics.Daily.Hours() && !monday
	})
}

// due returns the team's open dead letters that are due before the next digest; nil if there are none.
func (l *look) due(team decision.Team) *Due {
	until := l.now.Add(statistics.Daily)
	all := total(l.counts(journal.DeadLetterFilter{Team: team, DueSince: l.now, DueUntil: until}))
	if all.N == 0 {
		return nil
	}
	return &Due{all.N, amount(all.Cents), second(until)}
}

// followUps counts the team's dead letters to be looked at again today, by assignee.
func (l *look) followUps(team decision.Team) map[string]int64 {
	shown := make(map[string]int64)
	for _, c := range l.counts(journal.DeadLetterFilter{Team: team, FollowUp: deadletter.EndOfDay(l.Zone, l.now)}) {
		who, _, _ := strings.Cut(c.Assignee, "@") // a redaction would remove a whole address
		shown[clean(who, maxPattern)] += c.N
	}
	return shown
}

// olderThan returns how many open dead letters of a team are older than that.
func (l *look) olderThan(team decision.Team, age time.Duration) int64 {
	return total(l.counts(journal.DeadLetterFilter{Team: team, Until: l.now.Add(-age)})).N
}

// isMonday reports whether a day, such as 2026-11-23, is a Monday.
func isMonday(day string) bool {
	t, err := time.Parse(time.DateOnly, day)
	return err == nil && t.Weekday() == time.Monday
}

// policiesOf returns the policies that name a team, sorted.
func policiesOf(all decision.Policies, team decision.Team) []string {
	return slices.DeleteFunc(all.Names(), func(name string) bool {
		p := all[name]
		return p.LimitTeam != team &&
			!slices.ContainsFunc(p.Rules.Rules(), func(r classify.Rule) bool { return r.Team == team })
	})
}

// total sums up counts.
func total(counts []deadletter.Count) (all deadletter.Count) {
	for i := range counts {
		all.Add(&counts[i])
	}
	return all
}

// summary returns the dead letters of one state that match f in a notice's form, and their total.
func (l *look) summary(f journal.DeadLetterFilter) (Summary, deadletter.Count) {
	counts := l.counts(f)
	causes := deadletter.SumBy(counts, func(c *deadletter.Count) deadletter.Count {
		return deadletter.Count{Fingerprint: c.Fingerprint, Policy: c.Policy, Reason: c.Reason}
	})
	all := total(counts)
	s := Summary{Count: all.N, Amount: amount(all.Cents), Causes: int64(len(causes)), OtherCount: all.N}
	if !all.Oldest.IsZero() {
		s.Oldest = new(second(all.Oldest))
	}
	slices.SortStableFunc(causes, func(a, b deadletter.Count) int {
		return cmp.Or(cmp.Compare(b.N, a.N), a.Oldest.Compare(b.Oldest))
	})
	causes = causes[:min(len(causes), topCauses)]
	known := map[string]journal.Fingerprint{}
	if ids := journal.Views(causes, func(c *deadletter.Count) string { return c.Fingerprint }); len(ids) > 0 {
		for _, c := range l.causes(journal.CauseFilter{IDs: ids}, len(ids)) {
			known[c.ID] = c.Fingerprint
		}
	}
	for i := range causes {
		s.Top = append(s.Top, cause(&causes[i], known[causes[i].Fingerprint], l.Catalogue().Policies))
		s.OtherCount -= causes[i].N
	}
	return s, all
}

func amount(cents int64) string {
	if cents == 0 {
		return ""
	}
	return decision.Amount(cents)
}

func cause(c *deadletter.Count, known journal.Fingerprint, policies decision.Policies) Cause {
	shown := Cause{
		Policy: clean(c.Policy, maxPattern), Reason: clean(string(c.Reason), maxPattern),
		Rule:           clean(string(known.Reason), maxPattern),
		Classification: string(known.Classification), Count: c.N, Amount: amount(c.Cents), Oldest: second(c.Oldest),
		Hint: clean(policyOf(policies, c.Policy).Rules.Named(string(known.Reason)).Hint.String(), 2*maxPattern),
	}
	if c.N >= fewest {
		shown.Pattern = clean(known.Pattern, maxPattern)
	}
	return shown
}

// clean returns text for a header, a line or a page: redacted, in one line, without invisible characters, and without
// an address that a mail program would turn into a link.
func clean(said string, most int) string {
	said = strings.ReplaceAll(text.Inert(said), string(utf8.RuneError), "")
	said = strings.NewReplacer("://", "[:]//", "www.", "www[.]").Replace(redact.Line(said, most))
	return strings.Join(strings.Fields(said), " ")
}

// space is the namespace of messages' ids.
var space = uuid.NewSHA1(uuid.NameSpaceURL, []byte("urn:retry-worker:notice"))

// idOf returns a message's id. The same news has the same id, however often it is told.
func idOf(to *deadletter.Watermark, from int64) string {
	name := strings.Join([]string{string(to.Team), to.Channel, string(to.Kind), second(to.At).Format(time.RFC3339), to.Day,
		strconv.FormatInt(from, 10), strconv.FormatInt(to.Record, 10)}, "\x00")
	return uuid.NewSHA1(space, []byte(name)).String()
}

const (
	// holdsFor is how old what a person taught may be before a digest asks whether it still holds.
	holdsFor = 90 * 24 * time.Hour
	// toldWithin is for how long a cause is news to a receiver that has been told of none since.
	toldWithin = 7 * 24 * time.Hour
	mostCauses = 1000 // that are read for a notice
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
	var taught decision.Team
	if c.Taught != nil {
		taught = c.Taught.Team
	}
	p := policyOf(l.Catalogue().Policies, c.Policy)
	return cmp.Or(taught, p.Rules.Named(string(c.Reason)).Team, p.LimitTeam)
}

// policyOf returns the policy with that name; an empty one if there is none any more.
func policyOf(policies decision.Policies, name string) *decision.Policy {
	return cmp.Or(policies[name], &decision.Policy{})
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

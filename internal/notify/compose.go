package notify

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"retry-worker/internal/classify"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
	"retry-worker/internal/statistics"
	"retry-worker/internal/text"
)

const (
	// topCauses is how many causes a notice names; the others are summed up.
	topCauses = 12
	// fewest is how many dead letters must share a pattern before it is shown: one alone has the error of a single case.
	fewest = 2
	// toldBefore is how long before a dead letter expires its team is told.
	toldBefore = 30 * 24 * time.Hour
	// maxPattern bounds the bytes of a pattern in a notice.
	maxPattern = 200
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

// notice returns a notice of a kind for a team, with the dead letters that are open.
func (l *look) notice(kind string, team decision.Team) *Notice {
	open, _ := l.summary(journal.DeadLetterFilter{Team: team})
	return &Notice{Type: kind, Timestamp: second(l.now), Data: Data{Team: string(team), Open: open,
		URL: l.page("/dead-letters?" + url.Values{"team": {string(team)}}.Encode())}}
}

// digest returns a team's digest: what is open by cause and age, what is due, and the figures of its policies.
func (l *look) digest(team decision.Team, day string) *Notice {
	n := l.notice(TypeDigest, team)
	d := &n.Data
	d.Day, d.Due, d.FollowUps, d.Taught, d.Advised = day, l.due(team), l.followUps(team), l.taught(team), l.advised(team)
	older, old := l.olderThan(team, statistics.Daily), l.olderThan(team, statistics.Weekly)
	d.Ages = &Ages{Day: max(d.Open.Count-older, 0), Week: max(older-old, 0), Older: old}
	if l.Retention > 0 {
		d.Expiring = l.olderThan(team, l.Retention-toldBefore)
	}
	theirs, monday := policiesOf(l.Catalogue().Policies, team), isMonday(day)
	d.KPIs = slices.DeleteFunc(statistics.All(l.sums(), theirs, l.now), func(k statistics.KPI) bool {
		return !slices.Contains(theirs, k.Policy) || k.Window > statistics.Daily.Hours() && !monday
	})
	return n
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
	var causes []deadletter.Count // by cause, policy and reason, as counts are sorted
	for i := range counts {
		c := &counts[i]
		if i == 0 || c.Fingerprint != counts[i-1].Fingerprint || c.Policy != counts[i-1].Policy || c.Reason != counts[i-1].Reason {
			causes = append(causes, deadletter.Count{Fingerprint: c.Fingerprint, Policy: c.Policy, Reason: c.Reason})
		}
		causes[len(causes)-1].Add(c)
	}
	all := total(counts)
	s := Summary{Count: all.N, Amount: amount(all.Cents), Causes: int64(len(causes)), OtherCount: all.N}
	if !all.Oldest.IsZero() {
		s.Oldest = new(second(all.Oldest))
	}
	slices.SortStableFunc(causes, func(a, b deadletter.Count) int {
		return cmp.Or(cmp.Compare(b.N, a.N), a.Oldest.Compare(b.Oldest))
	})
	causes = causes[:min(len(causes), topCauses)]
	known := l.fingerprints(causes)
	for i := range causes {
		s.Top = append(s.Top, cause(&causes[i], known[causes[i].Fingerprint], l.Catalogue().Policies))
		s.OtherCount -= causes[i].N
	}
	return s, all
}

// fingerprints returns what is known of the causes of counted dead letters.
func (l *look) fingerprints(counts []deadletter.Count) map[string]journal.Fingerprint {
	known := map[string]journal.Fingerprint{}
	if len(counts) == 0 {
		return known
	}
	var ids []string
	for i := range counts {
		ids = append(ids, counts[i].Fingerprint)
	}
	for _, c := range l.causes(journal.CauseFilter{IDs: ids}, len(ids)) {
		known[c.ID] = c.Fingerprint
	}
	return known
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
		Hint: clean(ruleOf(policies[c.Policy], known.Reason).Hint.String(), 2*maxPattern),
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

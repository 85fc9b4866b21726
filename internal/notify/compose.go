package notify

import (
	"cmp"
	"context"
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

// instant returns t in RFC 3339 in UTC, to the second.
func instant(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// newNotice returns an empty notice of a kind for a team.
func (l *glance) newNotice(kind string, team decision.Team) *Notice {
	n := &Notice{Type: kind, Timestamp: instant(l.now), Data: Data{Team: string(team)}}
	n.Data.URL = l.page("/dead-letters?" + url.Values{"team": {string(team)}}.Encode())
	return n
}

// page returns the address of a page of the console; empty if nobody said where the console is.
func (l *glance) page(path string) string {
	if l.PublicURL == "" {
		return ""
	}
	return l.PublicURL + path
}

// digest returns a team's digest: what is open by cause and age, what is due, and the figures of its policies.
func (l *glance) digest(ctx context.Context, team decision.Team, day string) (*Notice, error) {
	open, _, err := l.summary(ctx, journal.DeadLetterFilter{Team: team})
	if err != nil {
		return nil, err
	}
	older := make([]int64, 3) // than a day, than a week, than what expires soon
	for i, age := range []time.Duration{statistics.Daily, statistics.Weekly, l.Retention - toldBefore} {
		if older[i], err = l.olderThan(ctx, team, age); err != nil {
			return nil, err
		}
	}
	figures, err := l.Store.Sums(ctx, statistics.FirstSlot(l.now))
	if err != nil {
		return nil, err
	}
	n := l.newNotice(TypeDigest, team)
	if n.Data.Due, err = l.due(ctx, team); err != nil {
		return nil, err
	}
	if n.Data.FollowUps, err = l.followUps(ctx, team); err != nil {
		return nil, err
	}
	if n.Data.Taught, err = l.taught(ctx, team); err != nil {
		return nil, err
	}
	if n.Data.Advised, err = l.advised(ctx, team); err != nil {
		return nil, err
	}
	policies := l.Catalogue().Policies
	n.Data.Day, n.Data.Open = day, open
	n.Data.Ages = &Ages{Day: max(open.Count-older[0], 0), Week: max(older[0]-older[1], 0), Older: older[1]}
	if l.Retention > 0 {
		n.Data.Expiring = older[2]
	}
	theirs, monday := policiesOf(policies, team), isMonday(day)
	n.Data.KPIs = slices.DeleteFunc(statistics.All(figures, theirs, l.now), func(k statistics.KPI) bool {
		return !slices.Contains(theirs, k.Policy) || k.Window > statistics.Daily.Hours() && !monday
	})
	return n, nil
}

// due returns the team's open dead letters that are due before the next digest; nil if there are none.
func (l *glance) due(ctx context.Context, team decision.Team) (*Due, error) {
	until := l.now.Add(statistics.Daily)
	all, err := l.total(ctx, journal.DeadLetterFilter{Team: team, DueSince: l.now, DueUntil: until})
	if all.N == 0 || err != nil {
		return nil, err
	}
	return &Due{all.N, amount(all.Cents), instant(until)}, nil
}

// followUps counts the team's dead letters to be looked at again today, by assignee.
func (l *glance) followUps(ctx context.Context, team decision.Team) (map[string]int64, error) {
	f := journal.DeadLetterFilter{Team: team, FollowUp: deadletter.EndOfDay(l.Zone, l.now)}
	counts, err := l.Store.DeadLetterCounts(ctx, f)
	shown := make(map[string]int64)
	for i := range counts {
		who, _, _ := strings.Cut(counts[i].Assignee, "@") // a redaction would remove a whole address
		shown[clean(who, maxPattern)] += counts[i].N
	}
	return shown, err
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

// total sums up the dead letters that match f.
func (l *glance) total(ctx context.Context, f journal.DeadLetterFilter) (all deadletter.Count, err error) {
	counts, err := l.Store.DeadLetterCounts(ctx, f)
	for i := range counts {
		all.Add(&counts[i])
	}
	return all, err
}

// olderThan returns how many open dead letters of a team are older than that.
func (l *glance) olderThan(ctx context.Context, team decision.Team, age time.Duration) (int64, error) {
	all, err := l.total(ctx, journal.DeadLetterFilter{Team: team, Until: l.now.Add(-age)})
	return all.N, err
}

// summary returns the dead letters of one state that match f in a notice's form, and their total.
func (l *glance) summary(ctx context.Context, f journal.DeadLetterFilter) (s Summary, all deadletter.Count, err error) {
	counts, err := l.Store.DeadLetterCounts(ctx, f)
	if err != nil {
		return s, all, err
	}
	var causes []deadletter.Count // by cause, policy and reason, as counts are sorted
	for i := range counts {
		c := &counts[i]
		all.Add(c)
		if i == 0 || c.Fingerprint != counts[i-1].Fingerprint || c.Policy != counts[i-1].Policy || c.Reason != counts[i-1].Reason {
			causes = append(causes, deadletter.Count{Fingerprint: c.Fingerprint, Policy: c.Policy, Reason: c.Reason})
		}
		causes[len(causes)-1].Add(c)
	}
	s = Summary{Count: all.N, Amount: amount(all.Cents), Causes: int64(len(causes)), OtherCount: all.N}
	if !all.Oldest.IsZero() {
		oldest := instant(all.Oldest)
		s.Oldest = &oldest
	}
	slices.SortStableFunc(causes, func(a, b deadletter.Count) int {
		return cmp.Or(cmp.Compare(b.N, a.N), a.Oldest.Compare(b.Oldest))
	})
	causes = causes[:min(len(causes), topCauses)]
	known, err := l.causesOf(ctx, causes)
	for i := range causes {
		s.Top = append(s.Top, cause(&causes[i], known[causes[i].Fingerprint], l.Catalogue().Policies))
		s.OtherCount -= causes[i].N
	}
	return s, all, err
}

// causesOf returns what is known of the causes of counted dead letters.
func (l *glance) causesOf(ctx context.Context, counts []deadletter.Count) (known map[string]journal.Fingerprint, err error) {
	var ids []string
	for i := range counts {
		ids = append(ids, counts[i].Fingerprint)
	}
	if ids == nil {
		return nil, nil
	}
	causes, err := l.Store.Causes(ctx, journal.CauseFilter{IDs: ids}, nil, len(ids))
	known = map[string]journal.Fingerprint{}
	for i := range causes {
		known[causes[i].ID] = causes[i].Fingerprint
	}
	return known, err
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
		Classification: string(known.Classification), Count: c.N, Amount: amount(c.Cents), Oldest: instant(c.Oldest),
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
	name := strings.Join([]string{string(to.Team), to.Channel, string(to.Kind), instant(to.At), to.Day,
		strconv.FormatInt(from, 10), strconv.FormatInt(to.Record, 10)}, "\x00")
	return uuid.NewSHA1(space, []byte(name)).String()
}

package notify

import (
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
	open, err := l.Store.OpenDeadLetters(ctx, team, 0, topCauses, l.now.Add(-statistics.Daily), l.now.Add(-statistics.Weekly),
		l.now.Add(toldBefore-l.Retention))
	if err != nil {
		return nil, err
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
	n.Data.Day, n.Data.Open = day, summary(&open, policies)
	n.Data.Ages = &Ages{Day: max(open.N-open.Older[0], 0), Week: max(open.Older[0]-open.Older[1], 0), Older: open.Older[1]}
	if l.Retention > 0 {
		n.Data.Expiring = open.Older[2]
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
	counts, err := l.Store.DeadLetterCounts(ctx, journal.DeadLetterFilter{Team: team, DueSince: l.now, DueUntil: until})
	var all deadletter.Count
	for i := range counts {
		all.Add(&counts[i])
	}
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

// summary returns a store's count in a notice's form.
func summary(c *deadletter.NoticeCount, policies decision.Policies) Summary {
	s := Summary{Count: c.N, Amount: amount(c.Cents), Causes: c.Causes, OtherCount: c.N}
	if !c.Oldest.IsZero() {
		oldest := instant(c.Oldest)
		s.Oldest = &oldest
	}
	for i := range c.Top {
		s.Top = append(s.Top, cause(&c.Top[i], policies))
		s.OtherCount -= c.Top[i].N
	}
	return s
}

func amount(cents int64) string {
	if cents == 0 {
		return ""
	}
	return decision.Amount(cents)
}

func cause(c *deadletter.NoticeCause, policies decision.Policies) Cause {
	shown := Cause{
		Policy: clean(c.Cause.Policy, maxPattern), Reason: clean(string(c.Reason), maxPattern),
		Rule:           clean(string(c.Cause.Reason), maxPattern),
		Classification: string(c.Cause.Classification), Count: c.N, Amount: amount(c.Cents), Oldest: instant(c.Oldest),
		Hint: clean(ruleOf(policies[c.Cause.Policy], c.Cause.Reason).Hint.String(), 2*maxPattern),
	}
	if c.N >= fewest {
		shown.Pattern = clean(c.Cause.Pattern, maxPattern)
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

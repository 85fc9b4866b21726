package deadletter

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Fields returns a field's text by its name in the API; empty if it is not given. The method Get of url.Values is
// one.
type Fields func(name string) string

// Me as an assignee stands for the person who asks, Today as a filter's followUp for the end of the day.
const (
	Me    = "me"
	Today = "today"
)

// By returns the fields with Me replaced by who, and Today by the end of the day in zone.
func (f Fields) By(who string, zone *time.Location, now time.Time) Fields {
	words := map[[2]string]string{{"assignee", Me}: who, {"followUp", Today}: decision.Instant(EndOfDay(zone, now))}
	return func(name string) string { return cmp.Or(words[[2]string{name, f(name)}], f(name)) }
}

// EndOfDay returns when the next day begins in a zone.
func EndOfDay(zone *time.Location, now time.Time) time.Time {
	y, m, d := now.In(zone).Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, zone)
}

// ParseFilter reads and checks a filter of dead letters. Its fields are state, policy, team, reason, fingerprint,
// ids, context, assignee, followUp, q, since, until and sort; instants are read as ParseInstant says. The error is a
// *journal.Refusal, and comes with whatever could be read.
func ParseFilter(read Fields, zone *time.Location, now time.Time) (f journal.DeadLetterFilter, wrong error) {
	instant := func(name string) time.Time {
		t, ok := ParseInstant(read(name), zone, now)
		if !ok {
			wrong = cmp.Or[error](wrong, journal.Refuse(invalidInstant[name], "%s is %.60q, expected %san instant such as "+
				"2026-03-01T08:00:00-03:00, a date such as 2026-03-01, or an age such as 90m, 2h, 3d or 1w", name, read(name),
				map[string]string{"followUp": "today, "}[name]))
		}
		return t
	}
	f, err := checkFilter(journal.DeadLetterFilter{
		State: read("state"), Policy: read("policy"), Team: decision.Team(read("team")),
		Reason: decision.Reason(read("reason")), Fingerprint: read("fingerprint"), IDs: read("ids"),
		Context: read("context"), Assignee: read("assignee"), Query: read("q"), Sort: read("sort"),
		FollowUp: instant("followUp"), Since: instant("since"), Until: instant("until"),
	})
	return f, cmp.Or(wrong, err)
}

var invalidInstant = map[string]journal.Code{"since": InvalidSince, "until": InvalidUntil, "followUp": InvalidFollowUp}

var ageForm = regexp.MustCompile(`^([1-9]\d{0,3})([mhdw])$`)

// ParseInstant reads an instant as ParseDate does, or an age such as 3d, which is that long before now.
func ParseInstant(s string, zone *time.Location, now time.Time) (t time.Time, ok bool) {
	if m := ageForm.FindStringSubmatch(s); m != nil {
		n, _ := strconv.Atoi(m[1]) // of four digits at most
		unit := map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}[m[2]]
		return now.Add(-time.Duration(n) * unit).UTC().Truncate(time.Millisecond), true
	}
	return ParseDate(s, zone)
}

// ParseDate reads an instant as people write it: RFC 3339; or a date with a time or without, in the zone. An empty text
// is the zero time. ok reports whether s is any of these.
func ParseDate(s string, zone *time.Location) (t time.Time, ok bool) {
	if s == "" {
		return t, true
	}
	for _, form := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.ParseInLocation(form, s, zone); err == nil {
			return t.UTC(), hasForm(t)
		}
	}
	t, ok = decision.ParseInstant(s)
	return t, ok && hasForm(t)
}

// hasForm reports whether an instant can be written as RFC 3339: years have four digits.
func hasForm(t time.Time) bool { return t.Year() >= 1 && t.Year() <= 9998 }

// states are those that a list can be asked for.
var states = []string{"", "open", "reprocessing", "discarded", "recovered", "accepted", "all"}

// fingerprintForm is a cause's id (journal.Fingerprint.ID).
var fingerprintForm = regexp.MustCompile(`^[0-9a-f]{16}$`)

// checkFilter returns f with Query and Context trimmed, or the *journal.Refusal of a filter that no dead letter can match.
func checkFilter(f journal.DeadLetterFilter) (journal.DeadLetterFilter, error) {
	f.Query, f.Context = strings.TrimSpace(f.Query), strings.TrimSpace(f.Context)
	variable, value, _ := strings.Cut(f.Context, "=")
	switch {
	case !slices.Contains(states, f.State):
		return f, journal.Refuse(InvalidState, "state is %.60q, expected open, reprocessing, discarded, recovered, accepted or all", f.State)
	case f.Sort != Urgent && !slices.Contains(Sorts(), f.Sort):
		return f, journal.Refuse(InvalidSort, "sort is %.60q, expected deadline, amount, age or newest, or none for the most urgent first",
			f.Sort)
	case f.Reason != "" && !slices.Contains(decision.Reasons(), f.Reason):
		return f, journal.Refuse(InvalidReason, "reason is %.60q, expected a reason code such as TIMEOUT or MAX_RETRIES", f.Reason)
	case f.Fingerprint != "" && !fingerprintForm.MatchString(f.Fingerprint):
		return f, journal.Refuse(InvalidFingerprint,
			"fingerprint is %.60q, expected 16 digits of 0-9 and a-f as a group has them", f.Fingerprint)
	case f.IDs != "" && !areIDs(strings.Split(f.IDs, ",")):
		return f, journal.Refuse(InvalidIDs, "ids is %.60q, expected ids of dead letters with commas between them, at most %d",
			f.IDs, MostItems)
	case f.Context != "" && (variable == "" || value == "" || !utf8.ValidString(f.Context) ||
		strings.ContainsRune(f.Context, 0)):
		return f, journal.Refuse(InvalidContext, "context is %.60q, expected variable=value, as the context of a dead letter has them",
			f.Context)
	case !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until):
		return f, journal.Refuse(InvalidPeriod,
			"since is %s and until %s, expected since to be the earlier", decision.Instant(f.Since), decision.Instant(f.Until))
	case utf8.RuneCountInString(f.Query) > maxQuery:
		return f, journal.Refuse(InvalidQuery,
			"q has more than %d characters; search for the beginning of an id or some words of the error", maxQuery)
	}
	return f, nil
}

func areIDs(ids []string) bool {
	return len(ids) <= MostItems && !slices.ContainsFunc(ids, func(id string) bool { return !IsID(id) })
}

// checked returns c with its defaults, and with its filter as runs keep it: open dead letters, instants by the
// millisecond. It refuses a command that can never be carried out.
func checked(c journal.BulkCommand) (journal.BulkCommand, error) {
	c.PerMinute, c.When = cmp.Or(c.PerMinute, DefaultPerMinute), cmp.Or(c.When, Backoff)
	if c.PerMinute < 1 || c.PerMinute > journal.MaxPerMinute {
		return c, journal.Refuse(InvalidPace, "perMinute is %d, expected 1 to %d", c.PerMinute, journal.MaxPerMinute)
	}
	one := each(&c)
	if err := one.check(); err != nil {
		return c, err
	}
	f := c.Filter
	f.State, f.Sort = "", Urgent
	for _, t := range []*time.Time{&f.Since, &f.Until, &f.FollowUp} {
		*t = t.UTC().Truncate(time.Millisecond)
	}
	f, err := checkFilter(f)
	c.Filter = f
	return c, err
}

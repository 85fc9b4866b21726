package deadletter

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

// AllStates is the filter's state that matches every state.
const AllStates = "all"

const (
	// MostItems is the most that a page may have.
	MostItems = 200
	// maxQuery bounds the characters of a search; its first maxQueryWords words count.
	maxQuery      = 200
	maxQueryWords = 8
)

// Query is a filter and a cursor as a store needs them.
type Query struct {
	Filter journal.DeadLetterFilter
	States []journal.DeadLetterState
	// Sort is the order. Now is the first page's instant in milliseconds, by which all pages judge deadlines.
	Sort string
	Now  int64
	// After is the place that the page follows; nil for the first page.
	After *journal.Place
	Limit int
	// Search is the filter's search text; empty for none. It must be the dead letter's id or begin the subject's, in any
	// or in upper case, or each of Words must be in the cause's pattern or reason, if there are any.
	Search string
	Words  []string
}

// NewQuery reads a filter and a cursor; limit is clamped to 1 to MostItems. The error is ErrBadCursor.
func NewQuery(f journal.DeadLetterFilter, cursor string, limit int) (*Query, error) {
	p := &Query{Filter: f, Sort: SortOf(&f), Now: journal.Milli(f.Now), Limit: min(max(limit, 1), MostItems)}
	p.States = []journal.DeadLetterState{journal.DeadLetterState(cmp.Or(f.State, string(journal.DeadLetterOpen)))}
	if f.State == AllStates {
		p.States = journal.DeadLetterStates()
	}
	if cursor != "" {
		p.After = &journal.Place{}
		at := p.After
		err := readCursor(p.list("dead letters"), cursor, &p.Now, &at.Deadline, &at.Cents, &at.Chance, &at.Record)
		if err != nil {
			return nil, err
		}
	}
	p.Search = f.Search()
	words := journal.Words(p.Search)
	p.Words = words[:min(len(words), maxQueryWords)]
	return p, nil
}

// list returns the name of this list for its cursors: its kind and its filter. Of instants it says only which are
// given, since an age, such as 3d, is another instant for each page.
func (p *Query) list(kind string) []byte {
	f := p.Filter
	given := []bool{f.Since.IsZero(), f.Until.IsZero(), f.FollowUp.IsZero()}
	f.State, f.Since, f.Until, f.FollowUp = "", time.Time{}, time.Time{}, time.Time{}
	name, _ := json.Marshal([]any{kind, p.States, f, given}) // strings and booleans cannot fail
	return name
}

// ErrBadCursor refuses a text that is no cursor, or another list's.
var ErrBadCursor error = journal.Refuse("invalid_cursor",
	"the cursor is not one that an answer gave as next; leave it out for the first page")

// sealBytes is how much of a digest marks a cursor as its list's.
const sealBytes = 8

// newCursor returns a cursor that continues a list after place, which is numbers and words without white space. list
// names the list and its filter.
func newCursor(list []byte, place ...any) string {
	return sealed(list, strings.TrimSuffix(fmt.Sprintln(place...), "\n"))
}

func sealed(list []byte, place string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", list, place)) // quoted, the two cannot run into each other
	return base64.RawURLEncoding.EncodeToString(append(sum[:sealBytes], place...))
}

// readCursor reads the place of a list's cursor into the pointers in place. The error is ErrBadCursor.
func readCursor(list []byte, text string, place ...any) error {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) <= sealBytes || sealed(list, string(b[sealBytes:])) != text {
		return ErrBadCursor
	}
	if _, err := fmt.Sscan(string(b[sealBytes:]), place...); err != nil {
		return ErrBadCursor
	}
	return nil
}

// The orders of a list of dead letters: journal.DeadLetterFilter.Sort. By deadline, those without one come last.
const (
	// Urgent lists the overdue, then those due within a day, then within three days, then the rest; of each the largest
	// amount × chance of a retry first, then the oldest.
	Urgent     = ""
	Newest     = "newest"   // the newest first
	ByAge      = "age"      // the oldest first
	ByAmount   = "amount"   // the largest amount first, then the oldest
	ByDeadline = "deadline" // the nearest deadline first, then the larger amount, then the oldest
)

// Sorts lists every order that has a name.
func Sorts() []string { return []string{ByDeadline, ByAmount, ByAge, Newest} }

// SortOf returns the order of a filter's list. Unless it is about open dead letters, the default is the newest first.
func SortOf(f *journal.DeadLetterFilter) string {
	if f.Sort == Urgent && f.State != "" && f.State != string(journal.DeadLetterOpen) {
		return Newest
	}
	return f.Sort
}

// Near returns three instants, as Milli does: now, in one day and in three days.
func (p *Query) Near() []int64 {
	const day = 24 * 60 * 60 * 1000
	return []int64{p.Now, p.Now + day, p.Now + 3*day}
}

// Class returns how many instants of Near are before a place's deadline.
func (p *Query) Class(at *journal.Place) int {
	n, _ := slices.BinarySearch(p.Near(), at.Deadline)
	return n
}

// Compare compares two places in the query's order.
func (p *Query) Compare(a, b *journal.Place) int {
	switch record := cmp.Compare(a.Record, b.Record); p.Sort {
	case Urgent:
		return cmp.Or(cmp.Compare(p.Class(a), p.Class(b)), cmp.Compare(b.Cents*b.Chance, a.Cents*a.Chance), record)
	case ByDeadline:
		return cmp.Or(cmp.Compare(a.Deadline, b.Deadline), cmp.Compare(b.Cents, a.Cents), record)
	case ByAmount:
		return cmp.Or(cmp.Compare(b.Cents, a.Cents), record)
	case ByAge:
		return record
	default:
		return -record
	}
}

// Cursor returns the cursor that continues after that place, for this filter alone.
func (p *Query) Cursor(at journal.Place) string {
	return newCursor(p.list("dead letters"), p.Now, at.Deadline, at.Cents, at.Chance, at.Record)
}

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
	instant := func(name, expected string) time.Time {
		t, ok := ParseInstant(read(name), zone, now)
		if !ok {
			wrong = cmp.Or[error](wrong, invalid(name, read(name), expected+"an instant such as 2026-03-01T08:00:00-03:00, a date "+
				"such as 2026-03-01, or an age such as 90m, 2h, 3d or 1w"))
		}
		return t
	}
	f, err := checkFilter(journal.DeadLetterFilter{
		State: read("state"), Policy: read("policy"), Team: decision.Team(read("team")),
		Reason: decision.Reason(read("reason")), Fingerprint: read("fingerprint"), IDs: read("ids"),
		Context: read("context"), Assignee: read("assignee"), Query: read("q"), Sort: read("sort"),
		FollowUp: instant("followUp", "today, "), Since: instant("since", ""), Until: instant("until", ""),
	})
	return f, cmp.Or(wrong, err)
}

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

// checkFilter returns f with Query and Context trimmed, or the *journal.Refusal of a filter that no dead letter can
// match.
func checkFilter(f journal.DeadLetterFilter) (journal.DeadLetterFilter, error) {
	f.Query, f.Context = strings.TrimSpace(f.Query), strings.TrimSpace(f.Context)
	variable, value, _ := strings.Cut(f.Context, "=")
	switch {
	case !slices.Contains(states, f.State):
		return f, invalid("state", f.State, "open, reprocessing, discarded, recovered, accepted or all")
	case f.Sort != Urgent && !slices.Contains(Sorts(), f.Sort):
		return f, invalid("sort", f.Sort, "deadline, amount, age or newest, or none for the most urgent first")
	case f.Reason != "" && !slices.Contains(decision.Reasons(), f.Reason):
		return f, invalid("reason", f.Reason, "a reason code such as TIMEOUT or MAX_RETRIES")
	case f.Fingerprint != "" && !fingerprintForm.MatchString(f.Fingerprint):
		return f, invalid("fingerprint", f.Fingerprint, "16 digits of 0-9 and a-f as a group has them")
	case f.IDs != "" && !areIDs(strings.Split(f.IDs, ",")):
		return f, invalid("ids", f.IDs, fmt.Sprintf("ids of dead letters with commas between them, at most %d", MostItems))
	case f.Context != "" && (variable == "" || value == "" || !utf8.ValidString(f.Context) ||
		strings.ContainsRune(f.Context, 0)):
		return f, invalid("context", f.Context, "variable=value, as the context of a dead letter has them")
	case !text.Printable(f.Assignee):
		return f, invalid("assignee", f.Assignee, "an account's name")
	case !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until):
		return f, journal.Refuse("invalid_period",
			"since is %s and until %s, expected since to be the earlier", decision.Instant(f.Since), decision.Instant(f.Until))
	case utf8.RuneCountInString(f.Query) > maxQuery:
		return f, journal.Refuse("invalid_query",
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

package deadletter

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"retry-worker/internal/journal"
)

// AllStates is the filter's state that lets every state through.
const AllStates = "all"

const (
	// MostItems of a page.
	MostItems = 200
	// maxQuery characters that are searched for, of which maxQueryWords count.
	maxQuery      = 200
	maxQueryWords = 8
)

// Query is what a filter and a cursor ask of a store.
type Query struct {
	Filter journal.DeadLetterFilter
	States []journal.DeadLetterState
	// Sort is the order. Now is the first page's instant, in milliseconds: all pages weigh deadlines by it.
	Sort string
	Now  int64
	// Before is a record: only dead letters with a smaller one match.
	Before int64
	// After is where the list goes on; nil from its beginning on.
	After *journal.Place
	Limit int
	// Since and Until bound the instant of birth in milliseconds (Milli): Since is included, Until is not. They are the
	// ends of all numbers where the filter has no bound.
	Since, Until int64
	// Searches reports whether there is a query; what ID, Prefixes or Words find is let through then.
	Searches bool
	// ID of a dead letter; empty for none.
	ID string
	// Prefixes of a subject's id; none is empty.
	Prefixes []string
	// Words of the error, as they stand in a pattern; none is empty.
	Words []string
}

// NewQuery reads a filter and a cursor; limit is held in 1 to MostItems. The error is ErrBadCursor.
func NewQuery(f journal.DeadLetterFilter, cursor string, limit int) (*Query, error) {
	p := &Query{Filter: f, Sort: SortOf(&f), Now: journal.Milli(f.Now), Before: math.MaxInt64,
		Limit: min(max(limit, 1), MostItems), Since: math.MinInt64, Until: math.MaxInt64}
	if !f.Since.IsZero() {
		p.Since = journal.CeilMilli(f.Since)
	}
	if !f.Until.IsZero() {
		p.Until = journal.CeilMilli(f.Until)
	}
	switch state := journal.DeadLetterState(f.State); {
	case state == "":
		p.States = []journal.DeadLetterState{journal.DeadLetterOpen}
	case state == AllStates:
		p.States = journal.DeadLetterStates()
	default:
		p.States = []journal.DeadLetterState{state}
	}
	if cursor != "" {
		p.After = &journal.Place{}
		at := p.After
		err := readCursor(p.list("dead letters"), cursor, &p.Now, &at.Deadline, &at.Cents, &at.Chance, &at.Record)
		if err != nil {
			return nil, err
		}
	}
	p.search()
	return p, nil
}

// OpenQuery returns what a bulk run's filter asks for: open dead letters with a record of at most through.
func OpenQuery(f journal.DeadLetterFilter, through int64) *Query {
	f.State = ""
	q, _ := NewQuery(f, "", 1) // which fails for a cursor alone
	q.Before = max(through, through+1)
	return q
}

// Aged reports whether the instant of birth is bounded.
func (p *Query) Aged() bool { return p.Since > math.MinInt64 || p.Until < math.MaxInt64 }

// search reads the query.
func (p *Query) search() {
	q := p.Filter.Search()
	if q == "" {
		return
	}
	p.Searches = true
	if id, err := uuid.Parse(q); err == nil && len(q) == len(id.String()) {
		p.ID = id.String()
	}
	p.Prefixes = []string{q}
	if upper := strings.ToUpper(q); upper != q {
		p.Prefixes = append(p.Prefixes, upper)
	}
	words := journal.Words(q)
	p.Words = words[:min(len(words), maxQueryWords)]
}

// list names a list of that kind that the filter lets through. Since and Until count by the millisecond, in any zone.
func (p *Query) list(kind string) []byte {
	f := p.Filter
	f.State, f.Since, f.Until = "", time.Time{}, time.Time{}
	name, _ := json.Marshal([]any{kind, p.States, f, p.Since, p.Until}) // of texts and numbers, which cannot fail
	return name
}

// AfterPrefix is the least text, byte by byte, that is above everything that begins with prefix; false where there is
// none. It is valid UTF-8 where prefix is.
func AfterPrefix(prefix string) (string, bool) {
	for end := len(prefix); end > 0; {
		r, size := utf8.DecodeLastRuneInString(prefix[:end])
		end -= size
		switch {
		case r == utf8.MaxRune:
		case r+1 == 0xD800: // halves of pairs are no characters
			return prefix[:end] + "\uE000", true
		default:
			return prefix[:end] + string(r+1), true
		}
	}
	return "", false
}

// ErrBadCursor is what a page is refused with: the cursor is no cursor, or another list's.
var ErrBadCursor error = &Refusal{Code: InvalidCursor,
	Message: "the cursor is not one that an answer gave as next; leave it out for the first page"}

// sealBytes of a digest tell a cursor from anything else.
const sealBytes = 8

// newCursor returns the text by which a list goes on behind a place, of numbers and of words without white space. list
// names it, with what it is filtered by.
func newCursor(list []byte, place ...any) string {
	return sealed(list, strings.TrimSuffix(fmt.Sprintln(place...), "\n"))
}

func sealed(list []byte, place string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", list, place)) // where one ends cannot be mistaken
	return base64.RawURLEncoding.EncodeToString(append(sum[:sealBytes], place...))
}

// readCursor sets place, of pointers, to where a list's cursor goes on behind. The error is ErrBadCursor.
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

// The orders of a list of dead letters, which journal.DeadLetterFilter names by Sort. What has no deadline comes last.
const (
	// Urgent lists what is overdue, then what is due within Near, then the rest; in each of them the largest amount ×
	// chance of a retry first, then what waits longest.
	Urgent     = ""
	Newest     = "newest"   // the newest first
	ByAge      = "age"      // what waits longest first
	ByAmount   = "amount"   // the largest amount first, then what waits longest
	ByDeadline = "deadline" // the nearest deadline first, then the larger amount, then what waits longest
)

// Sorts lists every order that has a name.
func Sorts() []string { return []string{ByDeadline, ByAmount, ByAge, Newest} }

// SortOf returns the order of a filter's list. Of what is not open nothing is urgent: the newest comes first.
func SortOf(f *journal.DeadLetterFilter) string {
	if f.Sort == Urgent && f.State != "" && f.State != string(journal.DeadLetterOpen) {
		return Newest
	}
	return f.Sort
}

// Near returns up to when deadlines have passed, are due within a day, and within three, as Milli has them.
func (p *Query) Near() []int64 {
	const day = 24 * 60 * 60 * 1000
	return []int64{p.Now, p.Now + day, p.Now + 3*day}
}

// Class returns how many of Near a deadline is behind.
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

// Cursor goes on behind a dead letter at that place. It is of this filter alone.
func (p *Query) Cursor(at journal.Place) string {
	return newCursor(p.list("dead letters"), p.Now, at.Deadline, at.Cents, at.Chance, at.Record)
}

package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"retry-worker/internal/decision"
)

// DeadLetterFilter chooses dead letters. Its zero value lets the open ones through.
type DeadLetterFilter struct {
	// State of the contract: open (also where empty), reprocessing, discarded, recovered, or all; also superseded.
	State  string          `json:"state,omitempty"`
	Policy string          `json:"policy,omitempty"`
	Team   decision.Team   `json:"team,omitempty"`
	Reason decision.Reason `json:"reason,omitempty"`
	// Fingerprint of the cause (Fingerprint.ID); empty for any.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Since and Until bound the instant of birth (CreatedAt): Since is included, Until is not; the zero time is no bound.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Query is a dead letter's id, the beginning of a subject's id, or words of the error: all of them, in any order, each
	// in the error without what differs from case to case (Fingerprint.Pattern), or in the code or rule that matched. What
	// any of the three finds is let through. At most 200 bytes and 8 words count.
	Query string `json:"q,omitempty"`
}

// ErrBadFilter is what a page is refused with: a state that there is none of.
var ErrBadFilter = errors.New("the filter is not valid")

// AllDeadLetters is the filter's state that lets every state through.
const AllDeadLetters = "all"

// MaxDeadLetterPage is how many dead letters a page holds at most.
const MaxDeadLetterPage = 200

const (
	maxQueryBytes = 200
	maxQueryWords = 8
)

// DeadLetterPlan is what a filter and a cursor ask of a store.
type DeadLetterPlan struct {
	Filter DeadLetterFilter
	States []DeadLetterState
	// Before is the record that all that are asked for lie before.
	Before int64
	Limit  int
	// Since and Until bound the instant of birth in milliseconds (Milli): Since is included, Until is not. They are the
	// ends of all numbers where the filter has no bound.
	Since, Until int64
	// Searches tells that there is a query: what ID, Prefixes or Words find is let through.
	Searches bool
	// ID of a dead letter; empty for none.
	ID string
	// Prefixes of a subject's id; none is empty.
	Prefixes []string
	// Words of the error, as they stand in a pattern; none is empty.
	Words []string
}

// Plan checks a filter and a cursor; limit is held in 1 to MaxDeadLetterPage. The error is ErrBadFilter or ErrBadCursor.
func (f DeadLetterFilter) Plan(cursor string, limit int) (*DeadLetterPlan, error) {
	p := &DeadLetterPlan{Filter: f, Before: math.MaxInt64, Limit: min(max(limit, 1), MaxDeadLetterPage), Since: math.MinInt64, Until: math.MaxInt64}
	p.age()
	switch state := DeadLetterState(f.State); {
	case state == "":
		p.States = []DeadLetterState{DeadLetterOpen}
	case state == AllDeadLetters:
		p.States = DeadLetterStates()
	case slices.Contains(DeadLetterStates(), state):
		p.States = []DeadLetterState{state}
	default:
		return nil, fmt.Errorf("%w: the state is %q, expected one of %q or %q", ErrBadFilter, bounded(f.State, 40), DeadLetterStates(), AllDeadLetters)
	}
	if cursor != "" {
		if err := p.resume(cursor); err != nil {
			return nil, err
		}
	}
	p.search()
	return p, nil
}

// age reads the bounds of the instant of birth.
func (p *DeadLetterPlan) age() {
	if t := p.Filter.Since; !t.IsZero() {
		p.Since = ceiling(t)
	}
	if t := p.Filter.Until; !t.IsZero() {
		p.Until = ceiling(t)
	}
}

// ceiling is the first whole millisecond at or after t.
func ceiling(t time.Time) int64 {
	ms := t.UnixMilli()
	if time.UnixMilli(ms).Before(t) {
		ms++
	}
	return ms
}

// Aged tells whether the instant of birth is bounded.
func (p *DeadLetterPlan) Aged() bool { return p.Since > math.MinInt64 || p.Until < math.MaxInt64 }

// search reads the query.
func (p *DeadLetterPlan) search() {
	q := bounded(strings.TrimSpace(storable(p.Filter.Query)), maxQueryBytes)
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
	words := strings.FieldsFunc(strings.ToLower(q), separates)
	p.Words = words[:min(len(words), maxQueryWords)]
}

// Finds tells whether words of the query are those of a cause; the words are in lower case, codes are not.
func (p *DeadLetterPlan) Finds(f *Fingerprint) bool {
	for _, word := range p.Words {
		reason := string(f.Reason)
		if !strings.Contains(f.Pattern, word) && !strings.Contains(reason, word) && !strings.Contains(reason, strings.ToUpper(word)) {
			return false
		}
	}
	return len(p.Words) > 0
}

// Passes reports whether the filter lets a dead letter of a policy through; what is searched for is looked at elsewhere.
func (p *DeadLetterPlan) Passes(d *DeadLetter, policy string) bool {
	f, born := &p.Filter, Milli(d.CreatedAt)
	return slices.Contains(p.States, d.State) && d.Record < p.Before && (f.Policy == "" || f.Policy == policy) &&
		(f.Team == "" || f.Team == d.Team) && (f.Reason == "" || f.Reason == d.Reason) &&
		(f.Fingerprint == "" || f.Fingerprint == d.Fingerprint) && born >= p.Since && born < p.Until
}

// Cursor goes on behind the dead letter with that record. It is of this filter alone.
func (p *DeadLetterPlan) Cursor(record int64) string {
	return cursor(p.list("dead letters"), strconv.FormatInt(record, 10))
}

func (p *DeadLetterPlan) resume(text string) error {
	place, err := placeOf(p.list("dead letters"), text)
	if err != nil {
		return err
	}
	if p.Before, err = strconv.ParseInt(place, 10, 64); err != nil {
		return ErrBadCursor
	}
	return nil
}

// list names a list of that kind that the filter lets through.
func (p *DeadLetterPlan) list(kind string) []byte {
	f, name := &p.Filter, []byte(kind)
	for _, part := range [...]string{string(p.States[0]), string(p.States[len(p.States)-1]), f.Policy, string(f.Team), string(f.Reason),
		f.Query, f.Fingerprint} {
		name = appendText(name, part)
	}
	return binary.AppendVarint(binary.AppendVarint(name, p.Since), p.Until)
}

// AfterPrefix is the least text, byte by byte, that is above everything that begins with prefix; false where there is none.
// It is valid UTF-8 where prefix is.
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

package journal

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"retry-worker/internal/decision"
)

// DeadLetterGroupPlan is what a filter and a cursor ask of a store that lists causes.
type DeadLetterGroupPlan struct {
	*DeadLetterPlan
	// Most and After are where the list goes on: causes with fewer than Most, or with as many and an id above After.
	Most  int64
	After string
}

// Groups checks a filter and a cursor of a list of causes; limit is held in 1 to MaxDeadLetterPage. The error is ErrBadFilter
// or ErrBadCursor.
func (f DeadLetterFilter) Groups(cursor string, limit int) (*DeadLetterGroupPlan, error) {
	p, err := f.Plan("", limit)
	switch {
	case err != nil:
		return nil, err
	case p.Aged():
		return nil, fmt.Errorf("%w: causes are counted at any age: expected neither since nor until", ErrBadFilter)
	}
	g := &DeadLetterGroupPlan{DeadLetterPlan: p, Most: math.MaxInt64}
	if cursor != "" {
		err = g.resume(cursor)
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Cursor goes on behind the cause with that id, of which there were n. It is of this filter alone.
func (g *DeadLetterGroupPlan) Cursor(n int64, id string) string {
	return cursor(g.list("causes"), strconv.FormatInt(n, 10)+" "+id)
}

func (g *DeadLetterGroupPlan) resume(text string) error {
	place, err := placeOf(g.list("causes"), text)
	if err != nil {
		return err
	}
	n, id, _ := strings.Cut(place, " ")
	if g.Most, err = strconv.ParseInt(n, 10, 64); err != nil {
		return ErrBadCursor
	}
	g.After = id
	return nil
}

// Unknown tells that nothing can be found: there is a query, but no words are in it.
func (g *DeadLetterGroupPlan) Unknown() bool { return g.Searches && len(g.Words) == 0 }

// End takes one of its dead letters: the first, the last, and whichever else, in the order of their records. A cause that
// nothing more is known of has the policy of its newest.
func (g *DeadLetterGroup) End(d *DeadLetterItem) {
	if g.Sample.ID == "" {
		g.First = d.CreatedAt
	}
	g.Sample, g.Last, g.Cause.Policy = *d, d.CreatedAt, d.Subject.Policy
}

// Name fills in what is known of the cause.
func (g *DeadLetterGroup) Name(f *Fingerprint) {
	g.Cause = Fingerprint{ID: g.Cause.ID, Policy: f.Policy, Reason: f.Reason, Classification: f.Classification, Pattern: f.Pattern}
}

// TeamCounts are how many dead letters each team acts on.
type TeamCounts map[decision.Team]int64

// Teams are the teams, the one with the most first.
func (c TeamCounts) Teams() []decision.Team {
	return slices.SortedFunc(maps.Keys(c), func(a, b decision.Team) int {
		return cmp.Or(cmp.Compare(c[b], c[a]), cmp.Compare(a, b))
	})
}

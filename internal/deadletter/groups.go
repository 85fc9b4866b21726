package deadletter

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Group are the dead letters of one cause in one state: policy, reason of the cause, and error without what
// differs from case to case.
type Group struct {
	// Fingerprint of the cause; Policy, Reason, Classification and Pattern of it are filled in.
	Cause journal.Fingerprint
	// N of them that the filter lets through.
	N int64
	// Cents is what they are worth.
	Cents int64
	// First and Last are when the oldest and the newest of them were born.
	First, Last time.Time
	// Teams that act on them, the one with the most first.
	Teams []decision.Team
	// Sample is the newest of them.
	Sample Item
}

// GroupQuery is what a filter and a cursor ask of a store that lists causes.
type GroupQuery struct {
	*Query
	// Most and After are where the list goes on: causes with fewer than Most, or with as many and an id above After.
	Most  int64
	After string
}

// ErrAged is what a list of causes is refused with: its filter bounds the instant of birth.
var ErrAged error = &Refusal{Code: InvalidPeriod,
	Message: "groups are not kept by the hour: leave since and until out, or list the dead letters"}

// NewGroupQuery reads a filter and a cursor of a list of causes; limit is held in 1 to MostItems. The error is
// ErrAged or ErrBadCursor.
func NewGroupQuery(f journal.DeadLetterFilter, cursor string, limit int) (*GroupQuery, error) {
	p, err := NewQuery(f, "", limit)
	switch {
	case err != nil:
		return nil, err
	case p.Aged():
		return nil, ErrAged
	}
	g := &GroupQuery{Query: p, Most: math.MaxInt64}
	if cursor != "" {
		if err := readCursor(g.list("causes"), cursor, &g.Most, &g.After); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Cursor goes on behind the cause with that id, of which there were n. It is of this filter alone.
func (g *GroupQuery) Cursor(n int64, id string) string {
	return newCursor(g.list("causes"), n, id)
}

// Unknown reports whether nothing can be found: there is a query, but no words are in it.
func (g *GroupQuery) Unknown() bool { return g.Searches && len(g.Words) == 0 }

// End takes one of its dead letters: the first, the last, and whichever else, in the order of their records. A cause
// that nothing more is known of has the policy of its newest.
func (g *Group) End(d *Item) {
	if g.Sample.ID == "" {
		g.First = d.CreatedAt
	}
	g.Sample, g.Last, g.Cause.Policy = *d, d.CreatedAt, d.Subject.Policy
}

// TeamCounts are how many dead letters each team acts on.
type TeamCounts map[decision.Team]int64

// Teams are the teams, the one with the most first.
func (c TeamCounts) Teams() []decision.Team {
	return slices.SortedFunc(maps.Keys(c), func(a, b decision.Team) int {
		return cmp.Or(cmp.Compare(c[b], c[a]), cmp.Compare(a, b))
	})
}

// Groups are the causes of the dead letters that f lets through, the one with the most first, from behind the cursor
// on: at most limit, 1 to MostItems, or DefaultItems where it is 0. next is empty where no more follow. A period may
// be refused: groups are kept up to date, and not by the hour.
func (s *Service) Groups(
	ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int,
) (groups []Group, next string, err error) {
	f, limit, err = checkList(f, limit)
	if err != nil {
		return nil, "", err
	}
	groups, next, err = s.store.DeadLetterGroups(ctx, f, cursor, limit)
	if err != nil {
		return nil, "", fmt.Errorf("group dead letters: %w", err)
	}
	return s.attended(groups), next, nil
}

// attended says of the groups' samples whether a process waits.
func (s *Service) attended(groups []Group) []Group {
	for i := range groups {
		s.judge(&groups[i].Sample)
	}
	return groups
}

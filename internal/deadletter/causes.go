package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// ListCauses returns the causes that match f, those with the most failures first, after the cursor: at most limit.
// next is empty if no more follow. A cause that fails again between two pages may be returned twice or not at all.
func (s *Service) ListCauses(
	ctx context.Context, f journal.CauseFilter, cursor string, limit int,
) (causes []journal.Cause, next string, err error) {
	name := fmt.Appendf(nil, "causes %t %t %s", f.Taught, f.Told.IsZero(), f.Policy)
	var after *journal.Fingerprint
	if cursor != "" {
		after = &journal.Fingerprint{}
		if err := readCursor(name, cursor, &after.Failures, &after.ID); err != nil {
			return nil, "", err
		}
	}
	if causes, err = s.store.Causes(ctx, f, after, limit+1); err != nil {
		return nil, "", fmt.Errorf("list the causes: %w", err)
	}
	if len(causes) > limit {
		last := &causes[limit-1]
		causes, next = causes[:limit], newCursor(name, last.Failures, last.ID)
	}
	return causes, next, nil
}

// Cause returns the cause with that id, or a *Refusal.
func (s *Service) Cause(ctx context.Context, id string) (journal.Cause, error) {
	if !fingerprintForm.MatchString(id) {
		return journal.Cause{}, errCauseNotFound
	}
	causes, err := s.store.Causes(ctx, journal.CauseFilter{ID: id}, nil, 1)
	switch {
	case err != nil:
		return journal.Cause{}, fmt.Errorf("read the cause %s: %w", id, err)
	case len(causes) == 0:
		return journal.Cause{}, errCauseNotFound
	}
	return causes[0], nil
}

// Teach records what a person says about a cause, and returns the cause as it is then. It applies to later decisions,
// below evidence of rank 1 to 3 (R25, R26). It reads Reason and By of t; Class, which is Permanent, Transient, or
// empty to take back what was taught; and, for Permanent, Team, one that the catalogue names.
func (s *Service) Teach(ctx context.Context, id string, t journal.Teaching) (cause journal.Cause, err error) {
	if t.Reason, err = CheckReason(t.Reason); err != nil {
		return cause, err
	}
	if cause, err = s.Cause(ctx, id); err != nil {
		return cause, err
	}
	if err = s.checkTeaching(&t); err != nil {
		return cause, err
	}
	switch err = s.memory.Teach(ctx, cause.Policy, cause.ID, t); {
	case errors.Is(err, journal.ErrNotTaught):
		return cause, refuse(NothingTaught, "nothing is taught of this cause, so nothing can be taken back")
	case err != nil:
		return cause, fmt.Errorf("record what was taught of the cause %s: %w", cause.ID, err)
	}
	return s.Cause(ctx, id)
}

func (s *Service) checkTeaching(t *journal.Teaching) error {
	switch teams := s.Teams(); t.Class {
	case "", decision.Transient:
		if t.Team != "" {
			return refuse(InvalidTeam, "the team is %.60q, expected none: a person acts on permanent errors only", t.Team)
		}
	case decision.Permanent:
		if !slices.Contains(teams, t.Team) {
			return refuse(InvalidTeam, "the team is %.60q, expected one that the policies name: %s", t.Team, joined(teams))
		}
	default:
		return refuse(InvalidClassification, "the classification is %.60q, expected PERMANENT or TRANSIENT", t.Class)
	}
	return nil
}

// Foresee applies to a failure what a person taught of its cause, if anything, and sets its SuccessProbability.
// redacted is its redacted error.
func (s *Service) Foresee(ctx context.Context, p *decision.Policy, f *decision.Failure, redacted string) error {
	cause := s.memory.Foresee(p, f, redacted)
	if !f.Teachable() {
		return nil
	}
	causes, err := s.store.Causes(ctx, journal.CauseFilter{ID: cause.ID}, nil, 1)
	if err != nil {
		return fmt.Errorf("read what was taught of the cause %s: %w", cause.ID, err)
	}
	for i := range causes {
		causes[i].Taught.Apply(f)
	}
	return nil
}

// Teams returns the teams that the policies in force name, sorted.
func (s *Service) Teams() []decision.Team {
	var teams []decision.Team
	for _, p := range s.policies() {
		teams = append(teams, p.LimitTeam)
		for _, r := range p.Rules.Rules() {
			teams = append(teams, r.Team)
		}
	}
	teams = slices.DeleteFunc(teams, func(t decision.Team) bool { return t == "" })
	slices.Sort(teams)
	return slices.Compact(teams)
}

func joined(teams []decision.Team) string {
	names := make([]string, len(teams))
	for i, t := range teams {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}

// Prospects returns how the retried claims of a cause ended (R26).
func (s *Service) Prospects(c *journal.Cause) journal.Prospects {
	if s.memory.Learner == nil {
		return journal.Prospects{}
	}
	return s.memory.Learner.Prospects(&c.Fingerprint)
}

// Group is the dead letters that match a filter and share a cause: policy, the cause's reason, and the error without
// what differs from case to case.
type Group struct {
	// Cause is the cause without its counts; ID and Policy alone if nothing else is known of it.
	Cause journal.Fingerprint
	// N is how many they are.
	N int64
	// Cents is their total amount.
	Cents int64
	// First and Last are when the oldest and the newest of them were created.
	First, Last time.Time
	// Teams act on them, the one with the most first.
	Teams []decision.Team
	// Sample is the newest of them.
	Sample Item
}

// GroupQuery is a filter and a cursor as a store that lists causes needs them.
type GroupQuery struct {
	*Query
	// Most and After are where the page begins: causes with fewer than Most, or with as many and an id above After.
	Most  int64
	After string
}

// NewGroupQuery reads a filter and a cursor of a list of causes; limit is clamped to 1 to MostItems. The error is
// ErrBadCursor.
func NewGroupQuery(f journal.DeadLetterFilter, cursor string, limit int) (*GroupQuery, error) {
	p, err := NewQuery(f, "", limit)
	if err != nil {
		return nil, err
	}
	g := &GroupQuery{Query: p, Most: math.MaxInt64}
	if cursor != "" {
		if err := readCursor(g.list("causes"), cursor, &g.Most, &g.After); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Cursor returns the cursor that continues after the cause with that id and n dead letters, for this filter alone.
func (g *GroupQuery) Cursor(n int64, id string) string {
	return newCursor(g.list("causes"), n, id)
}

// TeamCounts counts the dead letters that each team acts on.
type TeamCounts map[decision.Team]int64

// Teams returns the teams, the one with the most first.
func (c TeamCounts) Teams() []decision.Team {
	return slices.SortedFunc(maps.Keys(c), func(a, b decision.Team) int {
		return cmp.Or(cmp.Compare(c[b], c[a]), cmp.Compare(a, b))
	})
}

// Groups returns the causes of the dead letters that match f, the most frequent first, after the cursor: at most
// limit, 1 to MostItems. next is empty if no more follow.
func (s *Service) Groups(
	ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int,
) (groups []Group, next string, err error) {
	if f, err = checkFilter(f); err != nil {
		return nil, "", err
	}
	if groups, next, err = s.store.DeadLetterGroups(ctx, f, cursor, limit); err != nil {
		return nil, "", fmt.Errorf("group dead letters: %w", err)
	}
	return s.attended(groups), next, nil
}

// attended sets what a Store does not know in the groups' samples.
func (s *Service) attended(groups []Group) []Group {
	for i := range groups {
		s.judge(&groups[i].Sample)
	}
	return groups
}

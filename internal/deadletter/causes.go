package deadletter

import (
	"context"
	"fmt"
	"math"
	"slices"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
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

// Cause returns the cause with that id, or a *journal.Refusal.
func (s *Service) Cause(ctx context.Context, id string) (journal.Cause, error) {
	if !fingerprintForm.MatchString(id) {
		return journal.Cause{}, errCauseNotFound
	}
	causes, err := s.store.Causes(ctx, journal.CauseFilter{IDs: []string{id}}, nil, 1)
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
	if err = s.memory.Teach(ctx, cause.Policy, cause.ID, t); err != nil {
		return cause, fmt.Errorf("record what was taught of the cause %s: %w", cause.ID, err)
	}
	return s.Cause(ctx, id)
}

func (s *Service) checkTeaching(t *journal.Teaching) error {
	switch teams := s.Teams(); t.Class {
	case "", decision.Transient:
		if t.Team != "" {
			return journal.Refuse(InvalidTeam, "the team is %.60q, expected none: a person acts on permanent errors only",
				t.Team)
		}
	case decision.Permanent:
		if !slices.Contains(teams, t.Team) {
			return journal.Refuse(InvalidTeam, "the team is %.60q, expected one that the policies name: %s", t.Team,
				text.Or(teams...))
		}
	default:
		return journal.Refuse("invalid_classification", "the classification is %.60q, expected PERMANENT or TRANSIENT",
			t.Class)
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
	causes, err := s.store.Causes(ctx, journal.CauseFilter{IDs: []string{cause.ID}}, nil, 1)
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

// Prospects returns how the retried claims of a cause ended (R26).
func (s *Service) Prospects(c *journal.Cause) journal.Prospects {
	if s.memory.Learner == nil {
		return journal.Prospects{}
	}
	return s.memory.Learner.Prospects(&c.Fingerprint)
}

// Group counts the dead letters that match a filter and share a cause: policy, the cause's reason, and the error
// without what differs from case to case.
type Group struct {
	Count
	// Cause is the cause without its counts; ID and Policy alone if nothing else is known of it.
	Cause journal.Fingerprint
	// Teams act on them, the one with the most first.
	Teams []decision.Team
	// Sample is the newest of them.
	Sample Item
}

// Groups returns the causes of the dead letters that match f, the most frequent first, after the cursor: at most
// limit, 1 to MostItems. next is empty if no more follow. Dead letters without a known cause are in no group. A group
// that changes between two pages may be returned twice or not at all.
func (s *Service) Groups(
	ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int,
) (groups []Group, next string, err error) {
	if f, err = checkFilter(f); err != nil {
		return nil, "", err
	}
	p, _ := NewQuery(f, "", limit) // only a cursor can make it fail
	list, most, after := p.list("causes"), int64(math.MaxInt64), ""
	if cursor != "" {
		if err = readCursor(list, cursor, &most, &after); err != nil {
			return nil, "", err
		}
	}
	counts, err := s.store.DeadLetterCounts(ctx, f)
	groups = slices.DeleteFunc(groupsOf(counts), func(g Group) bool {
		return g.N > most || g.N == most && g.Cause.ID <= after
	})
	if len(groups) > p.Limit {
		groups = groups[:p.Limit]
		last := &groups[p.Limit-1]
		next = newCursor(list, last.N, last.Cause.ID)
	}
	if err == nil {
		groups, err = s.described(ctx, groups)
	}
	if err != nil {
		return nil, "", fmt.Errorf("group dead letters: %w", err)
	}
	return groups, next, nil
}

// groupsOf returns the groups of counted dead letters, the most frequent first, without their samples.
func groupsOf(counts []Count) (all []Group) {
	teams := map[string][]decision.Team{}
	for _, of := range SumBy(counts, func(c *Count) Count { return Count{Fingerprint: c.Fingerprint, Team: c.Team} }) {
		teams[of.Fingerprint] = append(teams[of.Fingerprint], of.Team)
	}
	for _, of := range SumBy(counts, func(c *Count) Count { return Count{Fingerprint: c.Fingerprint, Policy: c.Policy} }) {
		if id := of.Fingerprint; id != "" {
			all = append(all, Group{Count: of, Cause: journal.Fingerprint{ID: id, Policy: of.Policy}, Teams: teams[id]})
		}
	}
	return all
}

// described returns the groups with their samples and what is known of their causes, without those whose sample was
// expunged meanwhile.
func (s *Service) described(ctx context.Context, groups []Group) (all []Group, err error) {
	var records []int64
	var ids []string
	for i := range groups {
		records, ids = append(records, groups[i].Last), append(ids, groups[i].Cause.ID)
	}
	samples, err := s.store.DeadLettersOf(ctx, records)
	if err != nil || len(samples) == 0 {
		return nil, err
	}
	causes, err := s.store.Causes(ctx, journal.CauseFilter{IDs: ids}, nil, len(ids))
	for _, g := range groups {
		at := slices.IndexFunc(samples, func(i Item) bool { return i.Record == g.Last })
		if at < 0 {
			continue
		}
		g.Sample = samples[at]
		s.judge(&g.Sample)
		for i := range causes {
			if c := &causes[i]; c.ID == g.Cause.ID {
				g.Cause = journal.Fingerprint{ID: c.ID, Policy: c.Policy, Reason: c.Reason, Classification: c.Classification,
					Pattern: c.Pattern}
			}
		}
		all = append(all, g)
	}
	return all, err
}

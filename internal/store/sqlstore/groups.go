package sqlstore

import (
	"cmp"
	"context"
	"math"
	"slices"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// DeadLetterGroups implements deadletter.Reader.
func (r *Reader) DeadLetterGroups(
	ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int,
) (all []deadletter.Group, next string, err error) {
	p, err := deadletter.NewGroupQuery(f, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	err = r.read(ctx, "group dead letters", func(s *snapshot) error {
		all, next = nil, ""
		if p.Unknown() {
			return nil
		}
		groups, err := s.groups(p)
		if err != nil {
			return err
		}
		if len(groups) > p.Limit {
			groups = groups[:p.Limit]
			last := &groups[p.Limit-1]
			next = p.Cursor(last.N, last.Cause.ID)
		}
		all = groups
		for i := range all {
			if err := s.describe(p.Query, &all[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return all, next, err
}

// groups are the causes of a page, and one more: how many dead letters each has, what they are worth, and whose they are.
func (s *snapshot) groups(p *deadletter.GroupQuery) ([]deadletter.Group, error) {
	// The counts that are kept answer what they can; what is told of single ones is counted.
	from, n := "dead_letter_counts d", "sum(d.n)"
	if p.Filter.IDs != "" || p.Filter.Context != "" || p.Before != math.MaxInt64 {
		from, n = "dead_letters d", "count(*)"
	}
	m, err := s.matching(p.Query, true)
	if err != nil {
		return nil, err
	}
	w := m.where
	oneOf(&w, "d.state", p.States)
	w.and("d.fingerprint <> ''")
	var all []deadletter.Group
	var teams []deadletter.TeamCounts
	at := map[string]int{}
	err = s.each("SELECT d.fingerprint, d.team, CAST("+n+" AS BIGINT) AS total, CAST(sum(d.cents) AS BIGINT) FROM "+from+w.String()+
		" GROUP BY 1, 2 ORDER BY 1, 2", func(scan scanner) error {
		var cause string
		var team decision.Team
		var n, cents int64
		if err := scan(&cause, &team, &n, &cents); err != nil || n == 0 {
			return err
		}
		i, known := at[cause]
		if !known {
			i = len(all)
			at[cause] = i
			all, teams = append(all, deadletter.Group{Cause: journal.Fingerprint{ID: cause}}), append(teams, deadletter.TeamCounts{})
		}
		all[i].N, all[i].Cents = all[i].N+n, all[i].Cents+cents
		teams[i][team] += n
		return nil
	}, w.args...)
	for i := range all {
		all[i].Teams = teams[i].Teams()
	}
	all = slices.DeleteFunc(all, func(g deadletter.Group) bool { return g.N > p.Most || g.N == p.Most && g.Cause.ID <= p.After })
	slices.SortFunc(all, func(a, b deadletter.Group) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Cause.ID, b.Cause.ID))
	})
	return all[:min(len(all), p.Limit+1)], err
}

// describe fills in a group's first and last dead letter, and what is known of its cause.
func (s *snapshot) describe(p *deadletter.Query, g *deadletter.Group) error {
	of := *p
	of.Filter.Fingerprint, of.Searches = g.Cause.ID, false
	var ends []letter
	for _, sort := range []string{deadletter.ByAge, deadletter.Newest} {
		end, err := s.letters(&of, sort, nil, 1)
		if err != nil {
			return err
		}
		ends = append(ends, end...)
	}
	items, err := s.letterItems(ends)
	for i := range items {
		g.End(&items[i])
	}
	if err == nil {
		g.Cause, err = s.cause(g.Cause.ID, g.Cause)
	}
	return err
}

package sqlstore

import (
	"cmp"
	"context"
	"slices"

	"retry-worker/internal/deadletter"
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
		q, err := s.searchPicked(p.Query)
		if err != nil {
			return err
		}
		groups, err := q.groups(p)
		if err != nil {
			return err
		}
		if len(groups) > p.Limit {
			groups = groups[:p.Limit]
			last := &groups[p.Limit-1]
			next = p.Cursor(last.n, last.kinds[0].Fingerprint)
		}
		for i := range groups {
			g, err := q.describe(&groups[i])
			if err != nil {
				return err
			}
			all = append(all, g)
		}
		return nil
	})
	return all, next, err
}

// group is a cause, and its kinds.
type group struct {
	n, cents int64
	kinds    []kind
}

// groups are the causes of a page, and one more.
func (q *search) groups(p *deadletter.GroupQuery) ([]group, error) {
	kinds := q.kinds
	if !p.Searches {
		var err error
		if kinds, err = q.snapshot.kinds(p.Query, true); err != nil {
			return nil, err
		}
	}
	at := map[string]int{}
	var all []group
	for _, k := range kinds {
		if k.Fingerprint == "" {
			continue
		}
		i, known := at[k.Fingerprint]
		if !known {
			i, all = len(all), append(all, group{})
			at[k.Fingerprint] = i
		}
		all[i].n, all[i].cents, all[i].kinds = all[i].n+k.N, all[i].cents+k.Cents, append(all[i].kinds, k)
	}
	all = slices.DeleteFunc(all,
		func(g group) bool { return g.n > p.Most || g.n == p.Most && g.kinds[0].Fingerprint <= p.After })
	slices.SortFunc(all, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.kinds[0].Fingerprint, b.kinds[0].Fingerprint))
	})
	return all[:min(len(all), p.Limit+1)], nil
}

// describe fills in what is told of a group.
func (q *search) describe(of *group) (deadletter.Group, error) {
	g, teams := deadletter.Group{Cause: journal.Fingerprint{ID: of.kinds[0].Fingerprint}, N: of.n, Cents: of.cents}, deadletter.TeamCounts{}
	for _, k := range of.kinds {
		teams[k.Team] += k.N
	}
	g.Teams = teams.Teams()
	first, err := q.first(of, deadletter.ByAge)
	if err != nil {
		return g, err
	}
	last, err := q.first(of, deadletter.Newest)
	if err != nil {
		return g, err
	}
	ends, err := q.letterItems(append(first, last...))
	for i := range ends {
		g.End(&ends[i])
	}
	if err != nil {
		return g, err
	}
	g.Cause, err = q.cause(g.Cause.ID, g.Cause)
	return g, err
}

// first is the first of a group's dead letters in that order.
func (q *search) first(of *group, sort string) ([]letter, error) {
	if !q.plan.Picks() || q.many() {
		return q.seek(q.plan, of.kinds, sort, nil, 1)
	}
	few := slices.DeleteFunc(slices.Clone(q.few), func(l letter) bool { return l.fingerprint != of.kinds[0].Fingerprint })
	return ordered(few, sort, 1), nil
}

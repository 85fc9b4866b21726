package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"time"

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
		if all, err = s.groups(p); err != nil {
			return err
		}
		if len(all) > p.Limit {
			all = all[:p.Limit]
			last := &all[p.Limit-1]
			next = p.Cursor(last.N, last.Cause.ID)
		}
		return s.describe(all)
	})
	return all, next, err
}

// groups are the causes of a page, and one more: how many dead letters each has, what they are worth, whose they are,
// and the record of the newest.
func (s *snapshot) groups(p *deadletter.GroupQuery) (all []deadletter.Group, err error) {
	var teams []deadletter.TeamCounts
	w := s.finds(p.Query, true)
	oneOf(&w, "d.state", p.States)
	w.and("d.fingerprint <> ''")
	err = s.each("SELECT d.fingerprint, d.team, count(*), CAST(sum(d.cents) AS BIGINT), min(d.at), max(d.at), max(d.record) "+
		"FROM dead_letters d"+w.String()+" GROUP BY 1, 2 ORDER BY 1, 2", func(scan scanner) error {
		var g deadletter.Group
		var team decision.Team
		err := scan(&g.Cause.ID, &team, &g.N, &g.Cents, milli{&g.First}, milli{&g.Last}, &g.Sample.Record)
		if len(all) == 0 || all[len(all)-1].Cause.ID != g.Cause.ID {
			all, teams = append(all, g), append(teams, deadletter.TeamCounts{team: g.N})
			return err
		}
		of := &all[len(all)-1]
		of.N, of.Cents, teams[len(all)-1][team] = of.N+g.N, of.Cents+g.Cents, g.N
		of.First = slices.MinFunc([]time.Time{of.First, g.First}, time.Time.Compare)
		of.Last = slices.MaxFunc([]time.Time{of.Last, g.Last}, time.Time.Compare)
		of.Sample.Record = max(of.Sample.Record, g.Sample.Record)
		return err
	}, w.args...)
	for i := range all {
		all[i].Teams = teams[i].Teams()
	}
	all = slices.DeleteFunc(all, func(g deadletter.Group) bool {
		return g.N > p.Most || g.N == p.Most && g.Cause.ID <= p.After
	})
	slices.SortFunc(all, func(a, b deadletter.Group) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Cause.ID, b.Cause.ID))
	})
	return all[:min(len(all), p.Limit+1)], err
}

// describe fills in the groups' newest dead letters, and what is known of their causes.
func (s *snapshot) describe(all []deadletter.Group) error {
	newest := make([]letter, len(all))
	for i := range all {
		newest[i].Record = all[i].Sample.Record
	}
	items, err := s.letterItems(newest)
	for i := range items {
		g := &all[i]
		g.Sample, g.Cause.Policy = items[i], items[i].Subject.Policy
		if err == nil {
			g.Cause, err = s.cause(g.Cause.ID, g.Cause)
		}
	}
	return err
}

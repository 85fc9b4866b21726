package testkit

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// DeadLetterGroups implements deadletter.Reader: it looks at every dead letter there is.
func (m *Memory) DeadLetterGroups(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) ([]deadletter.Group, string, error) {
	p, err := deadletter.NewGroupQuery(f, cursor, limit)
	if err == nil {
		err = m.enter(ctx)
	}
	if err != nil {
		return nil, "", err
	}
	defer m.mu.Unlock()
	var all []deadletter.Group
	for id, items := range m.byCause(p) {
		slices.SortFunc(items, func(a, b deadletter.Item) int { return cmp.Compare(b.Record, a.Record) })
		g, teams := deadletter.Group{N: int64(len(items)), Sample: items[0], First: items[0].CreatedAt}, map[decision.Team]int{}
		g.Cause = journal.Fingerprint{ID: id, Policy: g.Sample.Subject.Policy}
		for i := range items {
			if born := items[i].CreatedAt; born.Before(g.First) {
				g.First = born
			}
			if born := items[i].CreatedAt; born.After(g.Last) {
				g.Last = born
			}
			teams[items[i].Team]++
			g.Cents += items[i].Cents
		}
		if f, known := m.fingerprints[id]; known {
			g.Cause = uncounted(&f)
		}
		g.Teams = slices.Sorted(maps.Keys(teams))
		slices.SortStableFunc(g.Teams, func(a, b decision.Team) int { return teams[b] - teams[a] })
		if g.N < p.Most || g.N == p.Most && id > p.After {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b deadletter.Group) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Cause.ID, b.Cause.ID))
	})
	if len(all) <= p.Limit {
		return all, "", nil
	}
	return all[:p.Limit], p.Cursor(all[p.Limit-1].N, all[p.Limit-1].Cause.ID), nil
}

// byCause returns the dead letters that the query matches, by cause.
func (m *Memory) byCause(p *deadletter.GroupQuery) map[string][]deadletter.Item {
	all := map[string][]deadletter.Item{}
	for _, d := range m.letters {
		id := d.DeadLetter.Fingerprint
		if id != "" && m.found(p.Query, d) {
			all[id] = append(all[id], m.item(d))
		}
	}
	return all
}

// uncounted returns the fingerprint without its counts.
func uncounted(f *journal.Fingerprint) journal.Fingerprint {
	return journal.Fingerprint{ID: f.ID, Policy: f.Policy, Reason: f.Reason, Classification: f.Classification,
		Pattern: f.Pattern}
}

package testkit

import (
	"cmp"
	"context"
	"slices"

	"retry-worker/internal/journal"
)

// DeadLetterGroups implements journal.DeadLetterReader: it looks at every dead letter there is.
func (m *Memory) DeadLetterGroups(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) ([]journal.DeadLetterGroup, string, error) {
	p, err := f.Groups(cursor, limit)
	if err == nil {
		err = m.readable(ctx)
	}
	if err != nil {
		return nil, "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []journal.DeadLetterGroup
	for id, items := range m.byCause(p) {
		slices.SortFunc(items, func(a, b journal.DeadLetterItem) int { return cmp.Compare(a.Record, b.Record) })
		g, teams := journal.DeadLetterGroup{Cause: journal.Fingerprint{ID: id}, N: int64(len(items))}, journal.TeamCounts{}
		for i := range items {
			g.End(&items[i])
			teams[items[i].Team]++
		}
		if f, known := m.fingerprints[id]; known {
			g.Name(&f)
		}
		if g.Teams = teams.Teams(); g.N < p.Most || g.N == p.Most && id > p.After {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b journal.DeadLetterGroup) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Cause.ID, b.Cause.ID))
	})
	if len(all) <= p.Limit {
		return all, "", nil
	}
	return all[:p.Limit], p.Cursor(all[p.Limit-1].N, all[p.Limit-1].Cause.ID), nil
}

// byCause are the dead letters that the plan lets through, by their causes.
func (m *Memory) byCause(p *journal.DeadLetterGroupPlan) map[string][]journal.DeadLetterItem {
	all := map[string][]journal.DeadLetterItem{}
	for _, d := range m.letters {
		id := d.DeadLetter.Fingerprint
		cause := m.fingerprints[id]
		if id != "" && p.Passes(&d.DeadLetter, d.Subject.Policy) && (!p.Searches || p.Finds(&cause)) {
			all[id] = append(all[id], m.item(d))
		}
	}
	return all
}

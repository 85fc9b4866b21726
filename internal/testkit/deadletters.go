package testkit

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"retry-worker/internal/journal"
)

// DeadLetter implements journal.DeadLetterReader.
func (m *Memory) DeadLetter(ctx context.Context, id string) (journal.DeadLetterItem, bool, error) {
	if err := m.readable(ctx); err != nil {
		return journal.DeadLetterItem{}, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.subjects {
		if d := s.known(id); d != nil {
			return m.item(s, d), true, nil
		}
	}
	return journal.DeadLetterItem{}, false, nil
}

// known is the dead letter with that id; nil where there is none.
func (s *subject) known(id string) *journal.DeadLetter {
	if s == nil {
		return nil
	}
	return s.deadLetter(id)
}

// item is a dead letter with what is known of its subject.
func (m *Memory) item(s *subject, d *journal.DeadLetter) journal.DeadLetterItem {
	i := journal.DeadLetterItem{DeadLetter: *d, Subject: s.name, Fingerprint: s.causes[d.ID]}
	for _, a := range s.attempts {
		if a.Record == d.Record {
			i.Error, i.Classification, i.MatchedRule = a.Error, a.Decision.ErrorClassification, a.Decision.MatchedRule
		}
	}
	for _, e := range s.episodes {
		if e.Number == d.Episode {
			i.FirstFailure = e.FirstFailure
		}
	}
	return i
}

// DeadLetterPage implements journal.DeadLetterReader: it looks at every dead letter there is.
func (m *Memory) DeadLetterPage(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) ([]journal.DeadLetterItem, string, error) {
	p, err := f.Plan(cursor, limit)
	if err == nil {
		err = m.readable(ctx)
	}
	if err != nil {
		return nil, "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []journal.DeadLetterItem
	for _, s := range m.subjects {
		if s == nil {
			continue
		}
		for i := range s.deadLetters {
			if d := &s.deadLetters[i]; p.Passes(d, s.name.Policy, s.causes[d.ID]) && m.found(p, s, d) {
				all = append(all, m.item(s, d))
			}
		}
	}
	slices.SortFunc(all, func(a, b journal.DeadLetterItem) int { return cmp.Compare(b.Record, a.Record) })
	if len(all) <= p.Limit {
		return all, "", nil
	}
	return all[:p.Limit], p.Cursor(all[p.Limit-1].Record), nil
}

// found tells whether the query finds a dead letter.
func (m *Memory) found(p *journal.DeadLetterPlan, s *subject, d *journal.DeadLetter) bool {
	cause := m.fingerprints[s.causes[d.ID]]
	return !p.Searches || d.ID == p.ID || p.Finds(&cause) ||
		slices.ContainsFunc(p.Prefixes, func(prefix string) bool { return strings.HasPrefix(s.name.ID, prefix) })
}

// DeadLetterCounts implements journal.DeadLetterReader.
func (m *Memory) DeadLetterCounts(ctx context.Context) ([]journal.DeadLetterCount, error) {
	if err := m.readable(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	first := map[journal.DeadLetterCount]int64{} // record of the oldest
	counts := map[journal.DeadLetterCount]journal.DeadLetterCount{}
	for _, s := range m.subjects {
		if s == nil {
			continue
		}
		for _, d := range s.deadLetters {
			key := journal.DeadLetterCount{Policy: s.name.Policy, State: d.State, Team: d.Team, Reason: d.Reason}
			c, known := counts[key]
			if !known {
				c = key
			}
			if c.N++; d.State == journal.DeadLetterOpen && (!known || d.Record < first[key]) {
				c.Oldest, first[key] = d.CreatedAt, d.Record
			}
			counts[key] = c
		}
	}
	all := make([]journal.DeadLetterCount, 0, len(counts))
	for _, c := range counts {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b journal.DeadLetterCount) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.State, b.State), cmp.Compare(a.Team, b.Team), cmp.Compare(a.Reason, b.Reason))
	})
	return all, nil
}

package testkit

import (
	"context"
	"maps"
	"slices"

	"retry-worker/internal/journal"
)

// Moment implements audit.Journal.
func (m *Memory) Moment(ctx context.Context, do func(journal.Moment) error) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	return do(&moment{m})
}

// moment is a memory that is locked.
type moment struct{ m *Memory }

func (s *moment) Head() (journal.Head, error) { return s.m.head, nil }

func (s *moment) IdentityKey() (journal.IdentityKey, error) { return s.m.IdentityKey(), nil }

func (s *moment) Links(after int64, limit int) ([]journal.Link, error) {
	all := slices.DeleteFunc(slices.Clone(s.m.links), func(l journal.Link) bool { return l.Number <= after })
	return first(all, limit), nil
}

func (s *moment) Entries(after int64, limit int) ([]journal.Entry, error) {
	return slices.Clone(first(s.m.records[s.m.behind(after):], limit)), nil
}

func (s *moment) Subjects(after int64, limit int) (p journal.SubjectPage, err error) {
	for _, key := range slices.Sorted(maps.Keys(s.m.subjects)) {
		if key <= after || len(p.Subjects) == limit {
			continue
		}
		p.Through = key
		p.Subjects = append(p.Subjects, s.m.subjects[key].Row())
		for i := range s.m.records {
			if s.m.records[i].Key == key {
				p.Records = append(p.Records, s.m.records[i])
			}
		}
		for _, d := range s.m.letters {
			if d.Key == key {
				p.Letters = append(p.Letters, d.Row())
			}
		}
	}
	return p, nil
}

func (s *moment) Answered() ([]journal.Run, error) {
	var all journal.Runs
	for record, until := range s.m.answered {
		for _, u := range until {
			all.Add(journal.Run{First: record, Last: record, Until: u})
		}
	}
	return all.All(), nil
}

func (s *moment) Rows(t *journal.Table) (all []journal.Row, err error) {
	switch t {
	case journal.SumsTable:
		for sum, n := range s.m.sums {
			sum.N = n
			all = append(all, sum.Row())
		}
	case journal.FingerprintsTable:
		for _, f := range s.m.fingerprints {
			all = append(all, f.Row())
		}
	case journal.RunsTable:
		for _, r := range s.m.runs {
			all = append(all, r.BulkRun.Row())
		}
	case journal.ItemsTable:
		for _, r := range s.m.runs {
			for _, i := range r.items {
				all = append(all, i.Row())
			}
		}
	}
	return all, nil
}

func (s *moment) Messages(after int64, limit int) ([]journal.Message, error) {
	all := slices.DeleteFunc(slices.Clone(s.m.outbox), func(o journal.Message) bool { return o.Sequence <= after })
	return first(all, limit), nil
}

func (s *moment) Expunges(backwards bool, take func(*journal.Entry) bool) error {
	all := slices.DeleteFunc(slices.Clone(s.m.records), func(r journal.Entry) bool { return !isExpunge(&r) })
	if backwards {
		slices.Reverse(all)
	}
	for i := range all {
		if !take(&all[i]) {
			break
		}
	}
	return nil
}

package testkit

import (
	"context"
	"maps"
	"slices"
	"strings"

	"retry-worker/internal/journal"
)

// Erase implements journal.Eraser.
func (m *Memory) Erase(ctx context.Context, of journal.Subject, step func(journal.Head, *journal.Erasing) *journal.Changes) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if c := step(m.head, m.erasing(of)); c != nil {
		m.keep(c)
	}
	return nil
}

func (m *Memory) erasing(of journal.Subject) *journal.Erasing {
	p := &journal.Erasing{Key: m.keys[of], Base: m.lastPurge(), Erasures: m.erasures()}
	for _, r := range m.records {
		switch r.Key {
		case 0:
			p.Others, p.OthersDigests = append(p.Others, r), append(p.OthersDigests, m.digest(r.Entry.Record))
		case p.Key:
			p.Records, p.RecordDigests = append(p.Records, r), append(p.RecordDigests, m.digest(r.Entry.Record))
		}
	}
	for _, d := range m.letters {
		if d.Key == p.Key {
			p.Letters = append(p.Letters, *d)
		}
	}
	p.Failures, p.Alone = map[string]int64{}, map[string]bool{}
	for id, f := range m.fingerprints {
		p.Failures[id] = m.counted(f).Failures
	}
	for id, r := range m.runs {
		p.Runs = append(p.Runs, r.told())
		p.Alone[id] = m.alone(&r.Filter, p, of)
		for _, i := range r.items {
			if d := m.letters[i.Record]; d != nil && d.Key == p.Key {
				p.Items = append(p.Items, journal.RunItem{Run: id, Item: i})
			}
		}
	}
	for _, o := range m.outbox { // a message belongs to a subject, or to a dead letter, by its key
		its := o.Key == of.Tenant+"/"+of.Policy+"/"+of.ID
		for _, d := range p.Letters {
			its = its || o.Key == d.DeadLetter.ID
		}
		if its {
			p.Waiting = append(p.Waiting, o)
		}
	}
	return p
}

// alone: what a run sought by the beginning of an id, in whatever case, or by what a claim brings, finds the one subject only.
func (m *Memory) alone(f *journal.DeadLetterFilter, p *journal.Erasing, of journal.Subject) bool {
	begins := func(id string) bool { return strings.HasPrefix(strings.ToLower(id), strings.ToLower(f.Query)) }
	if f.Query != "" && begins(of.ID) {
		others := 0
		for s := range m.keys {
			if s != of && strings.HasPrefix(s.ID, of.ID[:len(f.Query)]) {
				others++
			}
		}
		if others == 0 {
			return true
		}
	}
	brings := map[bool]int{} // by whether it is the subject's
	for _, d := range m.letters {
		for _, c := range d.DeadLetter.Context {
			if f.Context == c.Variable+"="+c.Value {
				brings[d.Key == p.Key]++
			}
		}
	}
	return brings[true] > 0 && brings[false] == 0
}

func (m *Memory) erasures() []journal.KeyedRecord {
	return slices.DeleteFunc(slices.Clone(m.records), func(r journal.KeyedRecord) bool { return r.Entry.Kind != journal.ErasureEntry })
}

// expunge takes what is erased.
func (m *Memory) expunge(e *journal.Expunged) {
	m.records = slices.DeleteFunc(m.records, func(r journal.KeyedRecord) bool { return r.Key == e.Key })
	maps.DeleteFunc(m.keys, func(_ journal.Subject, key int64) bool { return key == e.Key })
	for _, a := range e.Amended {
		i := slices.IndexFunc(m.records, func(r journal.KeyedRecord) bool { return r.Entry.Record == a.Entry.Record })
		m.records[i] = a
	}
	for _, id := range e.Causes {
		f := m.fingerprints[id]
		f.Pattern = ""
		m.fingerprints[id] = f
	}
}

package testkit

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/journal"
)

// PurgeAt purges, as of at, the records above after and up to through, and looks at limit of them at most. It returns
// how many records went, and the last one that it looked at.
func PurgeAt(ctx context.Context, s journal.Expunger, at time.Time, after, through int64, limit int) (n int, last int64, err error) {
	err = s.Expunge(ctx, journal.Scope{After: after, Through: through, Limit: limit},
		func(head journal.Head, p *journal.Expunging) (*journal.Changes, error) {
			c, err := p.Purge(head, at, false, nil)
			n, last = 0, p.Last
			if c != nil && c.Expunged != nil {
				for _, r := range c.Expunged.Records {
					n += int(r.Last - r.First + 1)
				}
			}
			return c, err
		})
	return n, last, err
}

// Expunge implements journal.Expunger.
func (m *Memory) Expunge(ctx context.Context, of journal.Scope, step func(journal.Head, *journal.Expunging) (*journal.Changes, error)) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	c, err := step(m.head, m.expunging(of))
	if err == nil && c != nil {
		m.keep(c)
	}
	return err
}

func isExpunge(r *journal.Entry) bool {
	return r.Kind == journal.PurgeEntry || r.Kind == journal.ErasureEntry
}

func (m *Memory) expunging(of journal.Scope) *journal.Expunging {
	p := &journal.Expunging{Scope: of, Last: of.Through}
	asked, key := of.Subject != journal.Subject{}, m.keys[of.Subject]
	if asked && key == 0 {
		return p
	}
	if asked {
		m.asked(p, key)
		return p
	}
	seen, looked := map[int64]bool{0: true}, 0
	for _, r := range m.records {
		first, n := !seen[r.Key], r.Record
		seen[r.Key] = true
		if n <= of.After || n > of.Through || looked == of.Limit {
			continue
		}
		if looked++; looked == of.Limit {
			p.Last = n
		}
		if first {
			p.Subjects = append(p.Subjects, m.expungeable(r.Key))
		} else if r.Key == 0 && !isExpunge(&r) {
			p.Loose = append(p.Loose, m.loose(r, of.Through)...)
		}
	}
	slices.SortFunc(p.Subjects, func(a, b journal.Expungeable) int { return cmp.Compare(a.Key, b.Key) })
	return p
}

// loose returns the records that are purged with r, which has no subject: with the start of a bulk run that is over,
// all of that run.
func (m *Memory) loose(r journal.Entry, through int64) (all []journal.Entry) {
	if r.Kind != journal.BulkEntry {
		return []journal.Entry{m.signed(r)}
	}
	for _, one := range m.runs {
		if one.Begun != r.Record || one.Ended == 0 || one.Ended > through {
			continue
		}
		for _, o := range m.records {
			if o.Kind == journal.BulkEntry && strings.Contains(o.Body, `{"bulkRun":`+quoted(one.ID)) {
				all = append(all, m.signed(o))
			}
		}
	}
	return all
}

func (m *Memory) expungeable(key int64) journal.Expungeable {
	s := journal.Expungeable{Key: key, Subject: m.subjects[key].Subject}
	for _, r := range m.records {
		if r.Key == key {
			s.Records = append(s.Records, m.signed(r))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.runs)) {
		for _, i := range m.runs[id].items {
			if m.runs[id].State.Ended() {
				break
			}
			if d := m.letters[i.Record]; d != nil && d.Key == key {
				s.Run = id
			}
		}
	}
	return s
}

// asked adds what the erasure of the subject with that key needs.
func (m *Memory) asked(p *journal.Expunging, key int64) {
	s := m.expungeable(key)
	for _, o := range m.outbox {
		if o.Subject == key {
			s.Waiting = append(s.Waiting, o)
		}
	}
	p.Subjects, p.Failures = []journal.Expungeable{s}, map[string]int64{}
	for id, f := range m.fingerprints {
		p.Failures[id] = m.counted(f).Failures
	}
	for _, r := range m.records {
		if r.Kind == journal.ErasureEntry {
			p.Erasures = append(p.Erasures, r)
		}
	}
}

// signed returns a record, with Forged set unless the ledger has its digest.
func (m *Memory) signed(r journal.Entry) journal.Entry {
	r.Forged = !slices.ContainsFunc(m.links, func(l journal.Link) bool {
		n := r.Record - l.First
		return n >= 0 && n < int64(len(l.Digests)) && l.Digests[n] == r.Digest()
	})
	return r
}

// expunge removes what e names.
func (m *Memory) expunge(e *journal.Expunged) {
	for _, gone := range e.Records {
		m.records = slices.DeleteFunc(m.records, func(r journal.Entry) bool {
			return r.Record >= gone.First && r.Record <= gone.Last
		})
		for record := gone.First; record <= gone.Last; record++ {
			delete(m.answered, record)
			delete(m.letters, record)
			for _, r := range m.runs {
				r.items = slices.DeleteFunc(r.items, func(i journal.BulkItem) bool { return i.Record == record })
			}
		}
	}
	for _, key := range e.Subjects {
		delete(m.keys, m.subjects[key].Subject)
		delete(m.subjects, key)
	}
	for _, id := range e.Runs {
		delete(m.runs, id)
	}
	for _, id := range e.Causes {
		f := m.fingerprints[id]
		f.Pattern = ""
		m.fingerprints[id] = f
	}
}

func quoted(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

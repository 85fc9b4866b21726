// Package testkit holds what tests of several packages share: a Fixture of the journal and its services, and Memory,
// a store that real stores are compared with.
package testkit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// Memory keeps a journal in memory, deliberately simple. It implements all ports of a journal's store, is safe
// for concurrent use, and works inside a bubble of testing/synctest: it waits on contexts and timers only.
// What goes in and comes out is copied; times are kept in milliseconds, as every store keeps them.
// Fail, Heal, SetDown and Delay play faults; Unstorable marks what it refuses.
type Memory struct {
	mu       sync.Mutex
	subjects map[int64]*journal.KeyedState
	keys     map[journal.Subject]int64
	key      journal.IdentityKey
	head     journal.Head
	links    []journal.Link
	records  []journal.Entry
	letters  map[int64]*journal.DeadLetter // by record
	outbox   []journal.Message
	answered map[int64][]int64 // the answered delivery's LockedUntil if it is later than the record's, else 0

	sums         map[journal.Sum]int64 // the key has no N
	fingerprints map[string]journal.Fingerprint
	leases       map[string]lease
	admissions   map[journal.Admission]int // the key has no Count
	runs         map[string]*run
	marks        map[deadletter.Watermark]deadletter.Watermark // by keyOf
	ended        map[[32]byte]time.Time                        // sessions

	faults       faults
	transactions []Transaction
}

// Transaction is one call of Transact.
type Transaction struct {
	// Subjects were looked up, in this order.
	Subjects []journal.Subject
	// Answered is how many runs of answered records it saved; 0 if it saved nothing.
	Answered int
}

// NewMemory returns an empty Memory, whose identity key is the same in every run.
func NewMemory() *Memory { return NewMemoryOf(journal.IdentityKey{1}) }

// NewMemoryOf returns an empty Memory with that identity key.
func NewMemoryOf(key journal.IdentityKey) *Memory {
	return &Memory{key: key, head: key.Start(), subjects: map[int64]*journal.KeyedState{}, keys: map[journal.Subject]int64{},
		letters: map[int64]*journal.DeadLetter{}, answered: map[int64][]int64{}, sums: map[journal.Sum]int64{},
		fingerprints: map[string]journal.Fingerprint{}, leases: map[string]lease{}, admissions: map[journal.Admission]int{}, runs: map[string]*run{}, marks: map[deadletter.Watermark]deadletter.Watermark{},
		ended: map[[32]byte]time.Time{}}
}

// Holds implements journal.Store.
func (m *Memory) Holds(ctx context.Context, l *journal.Link) (bool, error) {
	return ask(ctx, m, func() bool { return int64(len(m.links)) >= l.Number && m.links[l.Number-1].Hash == l.Hash })
}

// IdentityKey implements journal.Store.
func (m *Memory) IdentityKey() journal.IdentityKey { return m.key }

// Transact implements journal.Store.
func (m *Memory) Transact(ctx context.Context, lookups []journal.Lookup, decide func(journal.Head, []journal.History) *journal.Changes) error {
	t := Transaction{}
	for _, l := range lookups {
		t.Subjects = append(t.Subjects, l.Subject)
	}
	err := m.transact(ctx, lookups, decide, &t)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.transactions = append(m.transactions, t)
	return err
}

func (m *Memory) transact(ctx context.Context, lookups []journal.Lookup, decide func(journal.Head, []journal.History) *journal.Changes, t *Transaction) error {
	f, err := m.begin(ctx)
	if err != nil {
		return err
	}
	if err := m.save(lookups, decide, f, t); err != nil {
		return err
	}
	return f.strike(ctx)
}

// save carries out the transaction; the memory is locked.
func (m *Memory) save(lookups []journal.Lookup, decide func(journal.Head, []journal.History) *journal.Changes, f *Fault, t *Transaction) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := distinct(lookups); err != nil {
		return err
	}
	if f != nil && f.Twice {
		decide(m.head, m.histories(lookups))
	}
	c := decide(m.head, m.histories(lookups))
	if c == nil || f.before() {
		return nil
	}
	if err := cmp.Or(m.refuseLink(c), m.refuseSubjects(c), m.refuseKeys(c)); err != nil {
		return err
	}
	m.keep(c)
	t.Answered = len(c.Link.Answered)
	return nil
}

// keep saves changes that were checked.
func (m *Memory) keep(c *journal.Changes) {
	for _, s := range c.Subjects {
		var kept journal.SubjectState // without what stores do not keep
		_ = json.Unmarshal([]byte(fmt.Sprint(s.Row()[7])), &kept)
		s.SubjectState = kept
		m.subjects[s.Key], m.keys[s.Subject] = &s, s.Key
		m.head.Subject = max(m.head.Subject, s.Key)
	}
	m.records = append(m.records, c.Records...)
	for _, d := range c.DeadLetters {
		if old := m.letters[d.Record]; old != nil {
			d.Chance = old.Chance
		}
		m.letters[d.Record] = &d
	}
	m.keepRuns(c)
	m.keepOutbox(c)
	m.keepSums(c)
	for _, r := range c.Link.Answered {
		for record := r.First; record <= r.Last; record++ {
			m.answered[record] = append(m.answered[record], r.Until)
		}
	}
	if l := c.Link; l.Number > 0 {
		l.At, l.Digests, l.Answered = stored(l.At), slices.Clone(l.Digests), slices.Clone(l.Answered)
		l.Messages, l.LetGo = slices.Clone(l.Messages), slices.Clone(l.LetGo)
		m.links = append(m.links, l)
		m.head.Link, m.head.Record, m.head.Hash, m.head.At = l.Number, m.head.Record+int64(len(l.Digests)), l.Hash, l.At
		m.head.Message += int64(len(l.Messages))
	}
	if c.Expunged != nil {
		m.expunge(c.Expunged)
	}
}

// of returns the records of a subject, in order.
func (m *Memory) of(s journal.Subject) (all []journal.Entry) {
	for i := range m.records {
		if m.records[i].Subject == s {
			all = append(all, m.records[i])
		}
	}
	return all
}

func (m *Memory) histories(lookups []journal.Lookup) []journal.History {
	hs := make([]journal.History, len(lookups))
	for i := range lookups {
		hs[i] = m.history(&lookups[i])
		if r := m.runs[lookups[i].Run]; r != nil {
			if hs[i].Run = new(r.BulkRun); lookups[i].Subject == (journal.Subject{}) {
				hs[i].Run = new(r.told())
			}
			if n := slices.IndexFunc(r.items, func(b journal.BulkItem) bool { return b.Number == lookups[i].Item }); n >= 0 {
				hs[i].Item = new(m.named(r.items[n]))
			}
		}
	}
	return hs
}

// history answers a lookup by the documentation of journal.History's fields.
func (m *Memory) history(l *journal.Lookup) journal.History {
	key := m.keys[l.Subject]
	if key == 0 {
		return journal.History{}
	}
	h := journal.History{KeyedState: *m.subjects[key]}
	attempts := m.attempts(l.Subject)
	for _, a := range attempts {
		if a.Record == h.LastRecord {
			h.Last = a
		}
		if l.Identity != (journal.Identity{}) && a.Identity == l.Identity && (h.Same == nil || later(a, h.Same)) {
			h.Same = new(*a)
		}
	}
	if h.Same != nil {
		for _, a := range attempts {
			if until, is := m.answered[a.Record]; is && a.Number == h.Same.Number {
				h.SameAnswered, h.SameUntil = true, max(h.SameUntil, a.LockedUntil, slices.Max(until))
			}
		}
		if d := m.letterOf(key, h.Same.DeadLetter); d != nil {
			h.SameDeadLetter = d.State
		}
	}
	if h.DeadLetter = m.letterOf(key, h.Episode.DeadLetter); l.DeadLetter != "" {
		h.DeadLetter = m.letterOf(key, l.DeadLetter)
	}
	return h
}

// attempts returns a subject's attempts, in order.
func (m *Memory) attempts(s journal.Subject) (all []*journal.Attempt) {
	for _, e := range m.of(s) {
		if err := e.Decode(); err == nil && e.Attempt != nil {
			all = append(all, e.Attempt)
		}
	}
	return all
}

// later reports whether a is a later attempt than b, or a later revision of the same.
func later(a, b *journal.Attempt) bool {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Revision, b.Revision)) > 0
}

// letterOf returns a copy of the subject's dead letter with that id; nil if there is none.
func (m *Memory) letterOf(key int64, id string) *journal.DeadLetter {
	for _, d := range m.letters {
		if d.Key == key && d.ID == id {
			return new(*d)
		}
	}
	return nil
}

// Story implements journal.Reader.
func (m *Memory) Story(ctx context.Context, s journal.Subject) (journal.Story, bool, error) {
	err := askable(s.Tenant + s.Policy + s.ID)
	if err == nil {
		err = m.enter(ctx)
	}
	if err != nil {
		return journal.Story{}, false, err
	}
	defer m.mu.Unlock()
	records := m.of(s)
	story, err := journal.Tell(s, records)
	return story, m.keys[s] != 0 || len(records) > 0, err
}

// Named implements journal.Reader.
func (m *Memory) Named(ctx context.Context, part string, limit int) ([]journal.Subject, error) {
	return ask(ctx, m, func() (all []journal.Subject) {
		for _, key := range slices.Backward(slices.Sorted(maps.Keys(m.subjects))) {
			of := m.subjects[key].Subject
			if of.Tenant != "" && (strings.Contains(of.ID, part) || strings.Contains(of.ID, strings.ToUpper(part))) {
				all = append(all, of)
			}
		}
		return first(all, limit)
	})
}

// PendingRetries implements journal.Reader.
func (m *Memory) PendingRetries(ctx context.Context, after int64, limit int) ([]journal.KeyedState, error) {
	return ask(ctx, m, func() (all []journal.KeyedState) {
		for _, key := range slices.Sorted(maps.Keys(m.subjects)) {
			s := m.subjects[key]
			if state := s.Episode.State; key > after && (state == journal.Scheduled || state == journal.Reprocessing) {
				all = append(all, *s)
			}
		}
		return first(all, limit)
	})
}

// Held implements journal.Reader.
func (m *Memory) Held(ctx context.Context, take func(*journal.KeyedState)) (journal.Head, error) {
	return ask(ctx, m, func() journal.Head {
		for _, key := range slices.Sorted(maps.Keys(m.subjects)) {
			if s := m.subjects[key]; s.Destination != nil || len(s.Held) > 0 {
				take(s)
			}
		}
		return m.head
	})
}

// Transactions returns the calls of Transact that have returned.
func (m *Memory) Transactions() []Transaction {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.transactions)
}

// Ledger returns the ledger's links.
func (m *Memory) Ledger() []journal.Link {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.links)
}

// End returns the ledger's head.
func (m *Memory) End() journal.Head {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.head
}

// Subjects returns the known subjects in the order of their keys, which begin at 1; none may have been purged.
func (m *Memory) Subjects() []journal.Subject {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []journal.Subject
	for _, key := range slices.Sorted(maps.Keys(m.subjects)) {
		names = append(names, m.subjects[key].Subject)
	}
	return names
}

// Entries returns the records that are no attempts, those without a subject included.
func (m *Memory) Entries() []journal.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []journal.Entry
	for i := range m.records {
		if e := m.records[i]; e.Kind != journal.AttemptEntry {
			all = append(all, e)
		}
	}
	return all
}

// Outbox returns the messages in the order they came.
func (m *Memory) Outbox() []journal.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.outbox)
}

// Answered reports whether the engine took a record's answer.
func (m *Memory) Answered(record int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answered[record] != nil
}

// stored returns t as a store returns it.
func stored(t time.Time) time.Time { return journal.FromMilli(journal.Milli(t)) }

// Package testkit has what tests of several packages share: a journal's store in memory, which is the oracle that
// real stores are held against, and a clock that goes fast.
package testkit

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"retry-worker/internal/journal"
)

// Memory keeps a journal in memory, deliberately simple. It implements all ports of a journal's store, is safe
// for concurrent use, and works inside a bubble of testing/synctest: it waits on contexts and timers only.
// What goes in and comes out is copied; times are kept in milliseconds, as every store keeps them.
// Fail, Heal, SetDown and Delay play faults; Unstorable marks what it refuses.
type Memory struct {
	mu       sync.Mutex
	subjects []*subject // the one with key k at k−1, nil once it is purged
	keys     map[journal.Subject]int64
	head     journal.Head
	links    []journal.Link
	entries  []journal.Entry
	outbox   []journal.Message
	answered map[int64]bool
	// sequence is the last that was given, purged the record up to which all are purged.
	sequence, purged int64

	figures      map[journal.Figure]int64 // by the figure with the value 0
	fingerprints map[string]journal.Fingerprint
	leases       map[string]lease
	runs         map[string]*run
	marks        map[markKey]journal.NoticeMark
	ended        map[[32]byte]time.Time // sessions

	faults       faults
	transactions []Transaction
}

// subject is everything that is kept of one.
type subject struct {
	name        journal.Subject
	episodes    []journal.Episode
	attempts    []journal.Attempt
	deadLetters []journal.DeadLetter
	causes      map[string]string // fingerprints of dead letters by their ids
}

// Transaction is one call of Transact, as it went.
type Transaction struct {
	// Subjects that were looked up, in their order.
	Subjects []journal.Subject
	// Records and Answered are how many records and runs of marks it saved; 0 where it saved nothing.
	Records, Answered int
	// Err is what it returned. One that failed after saving did save.
	Err error
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	return &Memory{keys: map[journal.Subject]int64{}, answered: map[int64]bool{}, figures: map[journal.Figure]int64{},
		fingerprints: map[string]journal.Fingerprint{}, leases: map[string]lease{}, runs: map[string]*run{}, marks: map[markKey]journal.NoticeMark{},
		ended: map[[32]byte]time.Time{}}
}

// Transact implements journal.Store.
func (m *Memory) Transact(ctx context.Context, lookups []journal.Lookup, decide func(journal.Head, []journal.History) *journal.Changes) error {
	t := Transaction{}
	for _, l := range lookups {
		t.Subjects = append(t.Subjects, l.Subject)
	}
	t.Err = m.transact(ctx, lookups, decide, &t)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.transactions = append(m.transactions, t)
	return t.Err
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

// save is the transaction itself: all of it under the lock.
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
	if err := m.refuse(c); err != nil {
		return err
	}
	m.keep(c)
	t.Records, t.Answered = len(c.Link.Digests), len(c.Answered)
	return nil
}

// keep saves what was checked.
func (m *Memory) keep(c *journal.Changes) {
	for _, s := range c.Subjects {
		m.subjects = append(m.subjects, &subject{name: s.Subject, causes: map[string]string{}})
		m.head.Subject, m.keys[s.Subject] = s.Key, s.Key
	}
	for _, e := range c.Episodes {
		s := m.subjects[e.Key-1]
		s.episodes = put(s.episodes, storedEpisode(e.Episode), func(o journal.Episode) bool { return o.Number == e.Episode.Number })
	}
	for _, a := range c.Attempts {
		s := m.subjects[a.Key-1]
		s.attempts = append(s.attempts, storedAttempt(a.Attempt))
	}
	for _, d := range c.DeadLetters {
		s := m.subjects[d.Key-1]
		d.DeadLetter = m.verified(s, d.DeadLetter, c.Link.At)
		s.deadLetters = put(s.deadLetters, storedDeadLetter(d.DeadLetter), func(o journal.DeadLetter) bool { return o.ID == d.DeadLetter.ID })
		if _, known := s.causes[d.DeadLetter.ID]; !known {
			s.causes[d.DeadLetter.ID] = d.Fingerprint
		}
	}
	for _, e := range c.Entries {
		e.At = stored(e.At)
		m.entries = append(m.entries, e)
	}
	m.keepRuns(c)
	m.keepOutbox(c)
	m.keepSums(c)
	for _, r := range c.Answered {
		for record := r.First; record <= r.Last; record++ {
			m.answered[record] = true
		}
	}
	if n := int64(len(c.Link.Digests)); n > 0 {
		l := copyLink(c.Link)
		m.links = append(m.links, l)
		m.head.Link, m.head.Record, m.head.Hash, m.head.At = l.Number, m.head.Record+n, l.Hash, l.At
	}
}

// put replaces the row that is the same, or appends.
func put[T any](rows []T, row T, same func(T) bool) []T {
	if i := slices.IndexFunc(rows, same); i >= 0 {
		rows[i] = row
		return rows
	}
	return append(rows, row)
}

// find is what is kept of s; nil where that is nothing.
func (m *Memory) find(s journal.Subject) (int64, *subject) {
	if key := m.keys[s]; key > 0 {
		return key, m.subjects[key-1]
	}
	return 0, nil
}

func (m *Memory) histories(lookups []journal.Lookup) []journal.History {
	hs := make([]journal.History, len(lookups))
	for i := range lookups {
		hs[i] = m.history(&lookups[i])
		if r := m.runs[lookups[i].Run]; r != nil {
			hs[i].Run = new(r.told())
		}
	}
	return hs
}

// history answers a lookup, straight from what journal.History says of each field.
func (m *Memory) history(l *journal.Lookup) journal.History {
	key, s := m.find(l.Subject)
	if s == nil {
		return journal.History{}
	}
	h := journal.History{Key: key}
	for i := range s.attempts {
		a := &s.attempts[i]
		if h.Last == nil || later(a, h.Last) {
			h.Last, h.Attempts = new(*a), a.Number
		}
		if l.Identity != (journal.Identity{}) && a.Identity == l.Identity && (h.Same == nil || later(a, h.Same)) {
			h.Same = new(*a)
		}
	}
	if n := len(s.episodes); n > 0 {
		h.Episode = s.episodes[n-1]
	}
	if h.Same != nil {
		h.SameAnswered = m.tookAnswer(s, h.Same.Number)
		if d := s.deadLetter(h.Same.DeadLetter); d != nil {
			h.SameDeadLetter = d.State
		}
	}
	if l.DeadLetter != "" {
		h.DeadLetter = s.deadLetter(l.DeadLetter)
	} else {
		h.DeadLetter = s.deadLetter(h.Episode.DeadLetter)
	}
	return h
}

// later tells whether a is a later attempt than b, or a later revision of the same.
func later(a, b *journal.Attempt) bool {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Revision, b.Revision)) > 0
}

// tookAnswer tells whether the engine took an answer to an attempt, in whatever revision: a late answer of
// the first may be taken when another worker has made a second.
func (m *Memory) tookAnswer(s *subject, number int64) bool {
	return slices.ContainsFunc(s.attempts, func(a journal.Attempt) bool { return a.Number == number && m.answered[a.Record] })
}

// deadLetter is a copy of the one with that id; nil where there is none.
func (s *subject) deadLetter(id string) *journal.DeadLetter {
	for _, d := range s.deadLetters {
		if d.ID == id {
			return &d
		}
	}
	return nil
}

// Story implements journal.Reader.
func (m *Memory) Story(ctx context.Context, s journal.Subject) (journal.Story, bool, error) {
	if err := m.readable(ctx); err != nil {
		return journal.Story{}, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	story := journal.Story{Subject: s}
	for _, e := range m.entries {
		if e.Subject == s {
			story.Entries = append(story.Entries, e)
		}
	}
	_, kept := m.find(s)
	if kept != nil {
		story.Episodes, story.Attempts = slices.Clone(kept.episodes), slices.Clone(kept.attempts)
		story.DeadLetters = slices.Clone(kept.deadLetters)
	}
	return story, kept != nil || len(story.Entries) > 0, nil
}

// CountAttempts implements journal.Reader.
func (m *Memory) CountAttempts(ctx context.Context, s journal.Subject) (int64, error) {
	if err := m.readable(ctx); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.history(&journal.Lookup{Subject: s}).Attempts, nil
}

// PendingRetries implements journal.Reader.
func (m *Memory) PendingRetries(ctx context.Context, policy string, after *journal.PendingRetry, limit int) ([]journal.PendingRetry, error) {
	if err := m.readable(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []journal.PendingRetry
	for i, s := range m.subjects {
		if s == nil {
			continue
		}
		for _, e := range s.episodes {
			waits := e.State == journal.Scheduled || e.State == journal.Reprocessing
			p := journal.PendingRetry{Subject: s.name, Key: int64(i) + 1, NextRetryTime: e.NextRetryTime, RetryCount: e.Retries, State: e.State}
			if waits && (policy == "" || s.name.Policy == policy) && (after == nil || byTime(p, *after) > 0) {
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, byTime)
	return all[:min(len(all), max(limit, 0))], nil
}

func byTime(a, b journal.PendingRetry) int {
	return cmp.Or(a.NextRetryTime.Compare(b.NextRetryTime), cmp.Compare(a.Key, b.Key))
}

// Transactions are the calls of Transact so far, each once it returned.
func (m *Memory) Transactions() []Transaction {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.transactions)
}

// Ledger is all its links, from the first on.
func (m *Memory) Ledger() []journal.Link {
	m.mu.Lock()
	defer m.mu.Unlock()
	links := make([]journal.Link, 0, len(m.links))
	for _, l := range m.links {
		links = append(links, copyLink(l))
	}
	return links
}

// End is the ledger's head.
func (m *Memory) End() journal.Head {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.head
}

// Subjects that are known, in the order of their keys, which begin at 1; none of them may be purged.
func (m *Memory) Subjects() []journal.Subject {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []journal.Subject
	for _, s := range m.subjects {
		names = append(names, s.name)
	}
	return names
}

// Entries of the audit that are no attempts, those that name no subject included.
func (m *Memory) Entries() []journal.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.entries)
}

// Outbox holds the messages in the order they came.
func (m *Memory) Outbox() []journal.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.outbox)
}

// Answered tells whether a record is marked: the engine took its answer.
func (m *Memory) Answered(record int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answered[record]
}

// stored is t as it comes back from a store.
func stored(t time.Time) time.Time { return journal.FromMilli(journal.Milli(t)) }

func storedEpisode(e journal.Episode) journal.Episode {
	e.FirstFailure, e.OpenedAt, e.ClosedAt, e.NextRetryTime = stored(e.FirstFailure), stored(e.OpenedAt), stored(e.ClosedAt), stored(e.NextRetryTime)
	return e
}

func storedAttempt(from *journal.Attempt) journal.Attempt {
	a := *from
	d := &a.Decision // its Rejection is nil: a rejection is no attempt
	a.ReceivedAt, d.AnalysedAt, d.NextRetryTime, d.FirstFailure = stored(a.ReceivedAt), stored(d.AnalysedAt), stored(d.NextRetryTime), stored(d.FirstFailure)
	return a
}

func storedDeadLetter(d journal.DeadLetter) journal.DeadLetter {
	d.CreatedAt, d.ChangedAt, d.ReviewSeen = stored(d.CreatedAt), stored(d.ChangedAt), stored(d.ReviewSeen)
	d.Review.At, d.Review.NextRetryTime = stored(d.Review.At), stored(d.Review.NextRetryTime)
	return d
}

func copyLink(l journal.Link) journal.Link {
	l.At, l.Digests = stored(l.At), slices.Clone(l.Digests)
	return l
}

var (
	_ journal.Store            = (*Memory)(nil)
	_ journal.Reader           = (*Memory)(nil)
	_ journal.DeadLetterReader = (*Memory)(nil)
	_ journal.Archive          = (*Memory)(nil)
	_ journal.Statistics       = (*Memory)(nil)
	_ journal.Purger           = (*Memory)(nil)
	_ journal.Outbox           = (*Memory)(nil)
	_ journal.BulkStore        = (*Memory)(nil)
)

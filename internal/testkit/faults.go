package testkit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"retry-worker/internal/journal"
)

// Unstorable in a subject's id makes Memory refuse, as Invalid, the whole transaction that would save
// something of that subject; reading it is allowed. CLM-UNSTORABLE-1 is an id of tiss-submission.
const Unstorable = "UNSTORABLE"

// Fault is what happens to one Transact, once decide was called. Its zero value fails at once as Unavailable,
// with nothing saved.
type Fault struct {
	// Kind of the error.
	Kind journal.Kind
	// After saving, not before: with the Kind Ambiguous, the two halves of an ambiguous commit.
	After bool
	// Hang until the context ends, instead of failing at once.
	Hang bool
	// Twice calls decide twice and fails nothing: a store may do so, and decide must be pure.
	Twice bool
}

// faults are the ones to come.
type faults struct {
	next  []Fault
	down  bool
	delay time.Duration
}

var (
	errPlayed = errors.New("a fault that the test plays")
	errDown   = &journal.StoreError{Kind: journal.Unavailable, Err: errors.New("the store is down")}
)

// Fail makes the next n calls of Transact suffer f, after those that earlier calls of Fail named.
func (m *Memory) Fail(n int, f Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range n {
		m.faults.next = append(m.faults.next, f)
	}
}

// Heal forgets the faults that have not struck yet.
func (m *Memory) Heal() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.next = nil
}

// SetDown makes everything fail as Unavailable, Probe too, until it is called with false.
func (m *Memory) SetDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.down = down
}

// Delay makes every Transact take that long before it begins, or until its context ends, which fails it.
func (m *Memory) Delay(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.delay = d
}

// Probe implements journal.Store.
func (m *Memory) Probe(ctx context.Context) error { return m.readable(ctx) }

// readable tells whether anything can be done at all.
func (m *Memory) readable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &journal.StoreError{Kind: journal.Unavailable, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults.down {
		return errDown
	}
	return nil
}

// begin waits as long as a transaction takes, and gives what it suffers; nil where that is nothing.
func (m *Memory) begin(ctx context.Context) (*Fault, error) {
	m.mu.Lock()
	delay := m.faults.delay
	m.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
	}
	if err := m.readable(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.faults.next) == 0 {
		return nil, nil
	}
	f := m.faults.next[0]
	m.faults.next = m.faults.next[1:]
	return &f, nil
}

// before tells whether it strikes before saving.
func (f *Fault) before() bool { return f != nil && !f.Twice && !f.After }

// strike fails as f says.
func (f *Fault) strike(ctx context.Context) error {
	switch {
	case f == nil || f.Twice:
		return nil
	case f.Hang:
		<-ctx.Done()
		return &journal.StoreError{Kind: f.Kind, Err: ctx.Err()}
	default:
		return &journal.StoreError{Kind: f.Kind, Err: errPlayed}
	}
}

// refuse tells why the changes cannot be saved, as the constraints of a real store would.
func (m *Memory) refuse(c *journal.Changes) error {
	for _, check := range []func(*journal.Changes) error{m.refuseLink, m.refuseSubjects, m.refuseKeys, m.refuseAttempts} {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

// refuseLink holds the link against the ledger's head: records and links have no gap.
func (m *Memory) refuseLink(c *journal.Changes) error {
	l, records := &c.Link, len(c.Attempts)+len(c.Entries)
	switch {
	case len(l.Digests) != records:
		return invalid("%d records have %d digests", records, len(l.Digests))
	case records == 0:
		return nil
	case l.Number != m.head.Link+1 || l.First != m.head.Record+1 || l.Hash != l.HashAfter(m.head.Hash):
		return invalid("link %d from record %d on does not follow link %d, record %d", l.Number, l.First, m.head.Link, m.head.Record)
	}
	seen := map[int64]bool{}
	for _, a := range c.Attempts {
		seen[a.Attempt.Record] = true
	}
	for _, e := range c.Entries {
		seen[e.Record] = true
	}
	for r := l.First; r < l.First+int64(records); r++ {
		if !seen[r] {
			return invalid("record %d is missing", r)
		}
	}
	return nil
}

func (m *Memory) refuseSubjects(c *journal.Changes) error {
	for i, s := range c.Subjects {
		if _, known := m.find(s.Subject); known != nil || s.Key != m.head.Subject+int64(i)+1 {
			return invalid("a new subject's key %d is not the next, or the subject is known", s.Key)
		}
		if strings.Contains(s.Subject.ID, Unstorable) {
			return invalid("a subject's id is marked %s", Unstorable)
		}
	}
	for _, e := range c.Entries {
		if strings.Contains(e.Subject.ID, Unstorable) {
			return invalid("an entry's subject is marked %s", Unstorable)
		}
	}
	return nil
}

// refuseKeys finds rows that belong to nobody.
func (m *Memory) refuseKeys(c *journal.Changes) error {
	var keys []int64
	for _, e := range c.Episodes {
		keys = append(keys, e.Key)
	}
	for _, a := range c.Attempts {
		keys = append(keys, a.Key)
	}
	for _, d := range c.DeadLetters {
		keys = append(keys, d.Key)
	}
	for _, key := range keys {
		known := key <= m.head.Subject && key >= 1 && m.subjects[key-1] != nil
		if !known && (key <= m.head.Subject || key > m.head.Subject+int64(len(c.Subjects))) {
			return invalid("no subject has the key %d", key)
		}
	}
	return nil
}

// refuseAttempts finds attempts that are there already: they are append-only.
func (m *Memory) refuseAttempts(c *journal.Changes) error {
	for _, a := range c.Attempts {
		if a.Key > int64(len(m.subjects)) {
			continue
		}
		for _, kept := range m.subjects[a.Key-1].attempts {
			if kept.Number == a.Attempt.Number && kept.Revision == a.Attempt.Revision {
				return invalid("attempt %d, revision %d is there already", kept.Number, kept.Revision)
			}
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &journal.StoreError{Kind: journal.Invalid, Err: fmt.Errorf(format, args...)}
}

// distinct refuses lookups that name a subject twice.
func distinct(lookups []journal.Lookup) error {
	seen := map[journal.Subject]bool{}
	for _, l := range lookups {
		if seen[l.Subject] && (l.Subject != journal.Subject{} || l.Run == "") {
			return invalid("a subject is looked up twice in one transaction")
		}
		seen[l.Subject] = true
	}
	return nil
}

package testkit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"retry-worker/internal/clock"
	"retry-worker/internal/journal"
)

// Unstorable in a subject's id makes Memory refuse, as Invalid, every transaction that would save something of that
// subject; reading it is allowed. CLM-UNSTORABLE-1 is an id of tiss-submission.
const Unstorable = "UNSTORABLE"

// Fault is what happens to one call of Transact after it called decide. The zero value fails at once as Unavailable,
// with nothing saved.
type Fault struct {
	// Kind is the error's.
	Kind journal.Kind
	// After fails after saving, not before: with the Kind Ambiguous, both are what an ambiguous commit may be.
	After bool
	// Hang waits until the context ends, instead of failing at once.
	Hang bool
	// Twice calls decide twice and fails nothing: a store may do so, as decide must be pure.
	Twice bool
}

// faults are those to come.
type faults struct {
	next  []Fault
	down  bool
	delay time.Duration
}

var (
	errPlayed = errors.New("a fault that the test plays")
	errDown   = &journal.StoreError{Kind: journal.Unavailable, Err: errors.New("the store is down")}
)

// Fail makes the next n calls of Transact suffer f, after the faults of earlier calls of Fail.
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

// SetDown makes everything, even Probe, fail as Unavailable until it is called with false.
func (m *Memory) SetDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.down = down
}

// Delay makes every Transact wait that long before it begins. It fails if its context ends meanwhile.
func (m *Memory) Delay(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.delay = d
}

// Probe implements journal.Store.
func (m *Memory) Probe(ctx context.Context) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	m.mu.Unlock()
	return nil
}

// enter locks the memory for the caller, unless it is down or ctx has ended.
func (m *Memory) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &journal.StoreError{Kind: journal.Unavailable, Err: err}
	}
	m.mu.Lock()
	if m.faults.down {
		m.mu.Unlock()
		return errDown
	}
	return nil
}

// ask calls answer under the lock, unless the memory is down or ctx has ended.
func ask[T any](ctx context.Context, m *Memory, answer func() T) (T, error) {
	if err := m.enter(ctx); err != nil {
		var none T
		return none, err
	}
	defer m.mu.Unlock()
	return answer(), nil
}

// begin waits as long as Delay says, and returns the fault that the transaction suffers; nil for none.
func (m *Memory) begin(ctx context.Context) (*Fault, error) {
	m.mu.Lock()
	delay := m.faults.delay
	m.mu.Unlock()
	clock.Machine{}.Rest(ctx, delay)
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if len(m.faults.next) == 0 {
		return nil, nil
	}
	f := m.faults.next[0]
	m.faults.next = m.faults.next[1:]
	return &f, nil
}

// before reports whether the fault strikes before saving.
func (f *Fault) before() bool { return f != nil && !f.Twice && !f.After }

// strike returns the error of f, if it has one.
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

// refuseLink, refuseSubjects and refuseKeys return why changes cannot be saved, like the constraints of a real store.
// refuseLink compares the link with the ledger's head: records and links have no gap.
func (m *Memory) refuseLink(c *journal.Changes) error {
	l := &c.Link
	switch {
	case len(l.Digests) != len(c.Records):
		return invalid("%d records have %d digests", len(c.Records), len(l.Digests))
	case len(l.Messages) != len(c.Outbox):
		return invalid("%d messages have %d digests", len(c.Outbox), len(l.Messages))
	case len(c.Records)+len(l.Answered)+len(l.Messages)+len(l.LetGo) == 0:
		return nil
	case l.Message != m.head.Message+1:
		return invalid("link %d begins at message %d, the last is %d", l.Number, l.Message, m.head.Message)
	case l.Number != m.head.Link+1 || l.First != m.head.Record+1 || l.Hash != l.HashAfter(m.head.Hash):
		return invalid("link %d from record %d on does not follow link %d, record %d", l.Number, l.First, m.head.Link, m.head.Record)
	}
	for i := range c.Records {
		if c.Records[i].Record != l.First+int64(i) {
			return invalid("record %d is missing", l.First+int64(i))
		}
	}
	for i := range c.Outbox {
		if o := &c.Outbox[i]; o.Sequence != l.Message+int64(i) || o.Digest() != l.Messages[i] {
			return invalid("message %d is not what link %d vouches for", l.Message+int64(i), l.Number)
		}
	}
	return nil
}

func (m *Memory) refuseSubjects(c *journal.Changes) error {
	next := m.head.Subject
	for _, s := range c.Subjects {
		if known := m.keys[s.Subject]; s.Key > m.head.Subject {
			if next++; known != 0 || s.Key != next {
				return invalid("a new subject's key %d is not the next, or the subject is known", s.Key)
			}
		} else if known != s.Key {
			return invalid("no such subject has the key %d", s.Key)
		}
		if strings.Contains(s.Subject.ID, Unstorable) {
			return invalid("a subject's id is marked %s", Unstorable)
		}
	}
	return nil
}

// refuseKeys refuses rows that belong to no subject.
func (m *Memory) refuseKeys(c *journal.Changes) error {
	var keys []int64
	for _, r := range c.Records {
		if r.Subject != (journal.Subject{}) {
			keys = append(keys, r.Key)
		}
	}
	for _, d := range c.DeadLetters {
		keys = append(keys, d.Key)
	}
	for _, key := range keys {
		if m.subjects[key] == nil && !slices.ContainsFunc(c.Subjects, func(s journal.KeyedState) bool { return s.Key == key }) {
			return invalid("no subject has the key %d", key)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &journal.StoreError{Kind: journal.Invalid, Err: fmt.Errorf(format, args...)}
}

// askable refuses text that PostgreSQL does not take.
func askable(s string) error {
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return invalid("%q is no text", s)
	}
	return nil
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

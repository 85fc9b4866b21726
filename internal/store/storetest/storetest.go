// Package storetest is the conformance suite for stores of the journal.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"retry-worker/internal/access"
	"retry-worker/internal/audit"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// Store is a store under test.
type Store interface {
	ports
	journal.Store
	access.EndedSessions
	Close() error
}

// ports are those that the oracle compares.
type ports interface {
	audit.Journal
	journal.PurgeStore
	journal.Reader
	journal.Outbox
	deadletter.Reader
	deadletter.BulkStore
	deadletter.NoticeStore
}

// Reader is a store that is open for reading only.
type Reader interface {
	journal.Reader
	Close() error
}

// Run runs the whole suite; create returns a new database for each test.
func Run(t *testing.T, create func(t *testing.T) Database) {
	open := func(t *testing.T) Store {
		d := create(t)
		return d.opened(t)
	}
	run(t, open, promises)
	RunArchive(t, open)
	for _, test := range ofDatabases {
		t.Run(test.name, func(t *testing.T) {
			d := create(t)
			test.run(t, &d)
		})
	}
}

// RunArchive runs the tests that need no database. open returns a new, empty store for each, and closes it when the
// test ends.
func RunArchive(t *testing.T, open func(t *testing.T) Store) { run(t, open, archived) }

func run(t *testing.T, open func(t *testing.T) Store, tests []test) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// test is a test of the suite, on a store of its own.
type test struct {
	name string
	run  func(t *testing.T, s Store)
}

var (
	promises = []test{
		{"whatever is saved comes back", testOracle},
		{"nothing is half saved", testInvalid},
		{"the ledger is asked for a link", testHolds},
		{"a context that has ended, and a probe, change nothing", testCancelled},
		{"writers take turns, and one fails while others go on", testConcurrent},
		{"readers see whole transactions", testReaders},
		{"odd names", testNames},
		{"runs of several workers lie inside each other", testAnswered},
		{"large batches", testLarge},
		{"a purge of a portal's many states", testPurgeOfAPortal},
		{"what a grown journal recorded since an instant", testGrown},
		{"after it was closed", testClosed},
	}
	archived = []test{
		{"dead letters in pages", testLetterPages},
		{"dead letters in pages beside writers", testLetterPagesBeside},
		{"how far teams were told", testWatermarks},
		{"teams are told once", testNoticeOnce},
		{"a cause is told of once", testTellCause},
		{"sessions that have ended", testSessions},
		{"messages are numbered for good", testSequence},
		{"every record is told", testTold},
		{"admissions", testAdmissions},
		{"leases", testLeases},
		{"a lease ends by itself", testLeaseEnds},
		{"a lease of a wrong clock", testLeaseAhead},
		{"what a purge leaves", testPurge},
		{"a purge that is cut off", testPurgeCut},
		{"a purge beside writers", testPurgeBeside},
		{"a rebuild of nothing", testRebuildOfNothing},
		{"erasures", testErase},
		{"an erasure takes nothing of others", testEraseOne},
		{"an erasure takes words that nobody shares", testEraseWords},
	}
)

// ofDatabases are the tests that change a store's database from outside.
var ofDatabases = []struct {
	name string
	run  func(t *testing.T, d *Database)
}{
	{"a binary that is too old is refused", testTooOld},
	{"what is urgent comes first", testUrgent},
	{"many open a new database at once", testOpeners},
	{"a reader makes nothing", testReaderFirst},
	{"single edits are found", testEdits},
	{"a record that cannot be read", testUnreadable},
	{"gates beside what cannot be read", testUnreadableGates},
	{"what is damaged is made anew", testRebuild},
	{"answers that were forged", testForged},
}

// subject returns a subject of the suite.
func subject(id string) journal.Subject {
	return journal.Subject{Tenant: "<default>", Policy: "tiss-submission", ID: id}
}

// at returns an instant that many milliseconds after the suite's first.
func at(ms int64) time.Time {
	return time.Date(2026, 1, 12, 10, 40, 0, 0, time.UTC).Add(time.Duration(ms) * time.Millisecond)
}

var identities atomic.Int64

// identity returns a new identity.
func identity() journal.Identity {
	n := identities.Add(1)
	return journal.Identity{0xa5, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

// transaction collects records, from which the fold makes the changes, and what is saved with them.
type transaction struct {
	head            journal.Head
	lookups         []journal.Lookup
	histories       []journal.History
	entries         []journal.Entry
	journal.Changes // Outbox, Published and the Link's Answered
	sealed          *journal.Changes
}

// attempt adds an attempt of the i-th subject that was looked up.
func (x *transaction) attempt(i int, a journal.Attempt) {
	s := x.lookups[i].Subject
	a.At, a.Decision.Policy, a.Decision.SubjectID = at(x.head.Link), s.Policy, s.ID
	x.entries = append(x.entries, journal.EntryOf(s, &a))
}

// fail records the next failure of the i-th subject.
func (x *transaction) fail(i int, id journal.Identity) {
	n := x.histories[i].Attempts + 1
	x.attempt(i, journal.Attempt{
		Number: n, Episode: 1, Identity: id, JobKey: 7, ElementInstanceKey: 8, ProcessInstanceKey: 9,
		Rule: decision.RNBIL005, Error: "SocketTimeoutException: connect timed out after 30000 ms at gateway",
		ReceivedAt: at(0), Took: time.Millisecond,
		Decision: decision.Decision{
			Outcome: decision.Retry, ErrorClassification: decision.Transient, Reason: "TIMEOUT", MatchedRule: "TIMEOUT",
			MatchedText: "SocketTimeout", Catalogue: "3f9a1c77d0e2", RetryCount: n, MaxRetries: 5,
			NextRetryTime: at(60_000), RetryReason: "Transient error, retry 1 of 5", AnalysedAt: at(0), FirstFailure: at(0),
		},
	})
}

// seal completes the changes.
func (x *transaction) seal() *journal.Changes {
	if x.sealed != nil {
		return x.sealed
	}
	c, err := journal.Append(x.head, at(x.head.Link), x.lookups, x.histories, x.entries...)
	if err != nil {
		panic(err)
	}
	if c == nil {
		c = &journal.Changes{}
	}
	c.Link.Answered, c.Published, c.Outbox = x.Link.Answered, x.Published, append(c.Outbox, x.Outbox...)
	c.Seal(x.head, at(x.head.Link))
	x.sealed = c
	return c
}

// Record records a decision for each lookup with an unknown identity, and reports which those were.
func Record(ctx context.Context, s journal.Store, lookups ...journal.Lookup) (fresh []bool, err error) {
	err = s.Transact(ctx, lookups, func(head journal.Head, histories []journal.History) *journal.Changes {
		var c *journal.Changes
		c, fresh = Decide(head, lookups, histories)
		return c
	})
	return fresh, err
}

// Decide returns what Record's transaction saves; nil if there is nothing to decide.
func Decide(
	head journal.Head, lookups []journal.Lookup, histories []journal.History,
) (c *journal.Changes, fresh []bool) {
	x := &transaction{head: head, lookups: lookups, histories: histories}
	for _, h := range histories {
		fresh = append(fresh, h.Same == nil)
	}
	for i, l := range lookups {
		if fresh[i] {
			x.fail(i, l.Identity)
		}
	}
	if len(x.entries) == 0 {
		return nil, fresh
	}
	return x.seal(), fresh
}

// transact runs one transaction, whose changes build collects.
func transact(ctx context.Context, s journal.Store, lookups []journal.Lookup, build func(x *transaction)) error {
	return s.Transact(ctx, lookups, func(head journal.Head, histories []journal.History) *journal.Changes {
		x := &transaction{head: head, lookups: lookups, histories: histories}
		build(x)
		return x.seal()
	})
}

// must is transact that fails the test on an error.
func must(t *testing.T, s journal.Store, lookups []journal.Lookup, build func(x *transaction)) {
	t.Helper()
	testkit.Must(t, transact(t.Context(), s, lookups, build))
}

// failure records one failure of the subject.
func failure(t *testing.T, s journal.Store, of journal.Subject, id journal.Identity) {
	t.Helper()
	must(t, s, []journal.Lookup{{Subject: of, Identity: id}}, func(x *transaction) { x.fail(0, id) })
}

// recall returns the head and the histories that the store remembers.
func recall(t *testing.T, s journal.Store, lookups ...journal.Lookup) (journal.Head, []journal.History) {
	t.Helper()
	var head journal.Head
	var histories []journal.History
	err := s.Transact(t.Context(), lookups, func(h journal.Head, hs []journal.History) *journal.Changes {
		head, histories = h, hs
		return nil
	})
	testkit.Must(t, err)
	if len(histories) != len(lookups) {
		t.Fatalf("%d lookups were answered with %d histories", len(lookups), len(histories))
	}
	return head, histories
}

// story returns the subject's story.
func story(t *testing.T, s journal.Reader, of journal.Subject) journal.Story {
	t.Helper()
	st, _, err := s.Story(t.Context(), of)
	if err != nil {
		t.Fatalf("the story of %q could not be read: %v", of.ID, err)
	}
	return st
}

// wantSame fails if got is not want; a nil slice equals an empty one.
func wantSame(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := difference(got, want); d != "" {
		t.Errorf("%s differs (- want, + got):\n%s", what, d)
	}
}

// difference returns how two values differ, without the fields of a history that a store cannot see.
func difference(got, want any) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(journal.History{}))
}

// WantKind fails unless err is a store's error of that kind, in one line that says all this.
func WantKind(t testing.TB, err error, kind journal.Kind, says ...string) {
	t.Helper()
	e, ok := errors.AsType[*journal.StoreError](err)
	if !ok || e.Kind != kind {
		t.Errorf("got %v, expected a StoreError of kind %d", err, kind)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("got %q, expected one line with %q", err, s)
		}
	}
	wantOneLine(t, err)
}

// Verify fails unless the audit finds everything in order; it returns the number of records.
func Verify(t testing.TB, s audit.Journal) int64 {
	t.Helper()
	report, err := audit.Verify(t.Context(), s, journal.Head{}, nil)
	testkit.Must(t, err)
	return report.Records
}

func named(i int) string { return fmt.Sprintf("CLM-%d-%d", i%7, i) }

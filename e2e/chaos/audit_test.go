package chaos_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"retry-worker/e2e/harness/postgres"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/store"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// newURL gives each test a database of its own, by the name of the kind of store.
var newURL = map[string]func(*testing.T) string{
	"SQLite":     func(t *testing.T) string { return "sqlite:" + filepath.Join(folder(t), "journal.db") },
	"PostgreSQL": func(t *testing.T) string { return postgres.Database(t) },
}

// stores in the order they are tried.
var stores = []string{"SQLite", "PostgreSQL"}

// database opens what is at the URL beside the product, to look at its tables.
func database(t *testing.T, url string) *sql.DB {
	t.Helper()
	driver, source := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, source = "sqlite", "file:"+path+"?mode=ro"
	}
	db, err := sql.Open(driver, source)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// audit is everything that a journal holds, held against its own chain.
type audit struct {
	t       *testing.T
	links   []journal.Link
	head    journal.Head
	stories []journal.Story
	// attempts by the key of their job, in the order they were recorded.
	attempts map[int64][]journal.Attempt
	// kinds are how many records there are of each.
	kinds map[journal.EntryKind]int
	// outcomes that were recorded, by the claim.
	outcomes map[string]int
	records  map[int64]journal.Digest
}

// look reads a journal through the product's reader, and its ledger from the tables, and fails the test where
// the chain does not hold, where records have gaps, or where a record is not the one that the ledger vouches for.
func look(t *testing.T, url string) *audit {
	t.Helper()
	ctx := wait.Context(t)
	db := database(t, url)
	a := &audit{t: t, attempts: map[int64][]journal.Attempt{}, outcomes: map[string]int{}, kinds: map[journal.EntryKind]int{}, records: map[int64]journal.Digest{}}
	a.readLedger(ctx, db)
	a.readRecords(ctx, db, url)
	a.verifyChain()
	a.verifyRecords()
	a.verifyAnswered(ctx, db)
	return a
}

func (a *audit) readLedger(ctx context.Context, db *sql.DB) {
	a.t.Helper()
	each(ctx, a.t, db, "SELECT number, at, first, digests, answered, hash FROM ledger ORDER BY number", func(scan func(...any) error) error {
		var l journal.Link
		var at int64
		var digests, hash []byte
		var answered string
		if err := scan(&l.Number, &at, &l.First, &digests, &answered, &hash); err != nil {
			return err
		}
		if answered != "" {
			testkit.Must(a.t, json.Unmarshal([]byte(answered), &l.Answered))
		}
		l.At = journal.FromMilli(at)
		if len(digests)%len(journal.Digest{}) != 0 || copy(l.Hash[:], hash) != len(l.Hash) {
			return fmt.Errorf("link %d: %d bytes of digests, %d of its hash", l.Number, len(digests), len(hash))
		}
		for ; len(digests) > 0; digests = digests[len(journal.Digest{}):] {
			l.Digests = append(l.Digests, journal.Digest(digests[:len(journal.Digest{})]))
		}
		a.links = append(a.links, l)
		return nil
	})
	var hash []byte
	var at int64
	testkit.Must(a.t, db.QueryRowContext(ctx, "SELECT link, record, subject, hash, at FROM ledger_head").
		Scan(&a.head.Link, &a.head.Record, &a.head.Subject, &hash, &at))
	copy(a.head.Hash[:], hash)
	a.head.At = journal.FromMilli(at)
}

// readRecords reads the story of every subject that is no destination, and the records, some of which name no subject, from their table.
func (a *audit) readRecords(ctx context.Context, db *sql.DB, url string) {
	a.t.Helper()
	reader, err := store.OpenReader(ctx, url)
	testkit.Must(a.t, err)
	defer func() { _ = reader.Close() }()
	var subjects []journal.Subject
	each(ctx, a.t, db, "SELECT tenant, policy, id FROM subjects WHERE tenant <> '' ORDER BY key", func(scan func(...any) error) error {
		var s journal.Subject
		defer func() { subjects = append(subjects, s) }()
		return scan(&s.Tenant, &s.Policy, &s.ID)
	})
	for _, s := range subjects {
		story, found, err := reader.Story(ctx, s)
		if err != nil || !found {
			a.t.Fatalf("the story of %v: found %v, %v", s, found, err)
		}
		a.stories = append(a.stories, story)
		for i := range story.Attempts {
			at := &story.Attempts[i]
			a.attempts[at.JobKey] = append(a.attempts[at.JobKey], *at)
		}
	}
	each(ctx, a.t, db, `SELECT r.record, r.kind, r.at, COALESCE(s.tenant, ''), COALESCE(s.policy, ''), COALESCE(s.id, ''), r.body
		FROM records r LEFT JOIN subjects s ON s.key = r.subject ORDER BY r.record`, func(scan func(...any) error) error {
		var e journal.Entry
		var at int64
		if err := scan(&e.Record, &e.Kind, &at, &e.Subject.Tenant, &e.Subject.Policy, &e.Subject.ID, &e.Body); err != nil {
			return err
		}
		e.At = journal.FromMilli(at)
		if a.kinds[e.Kind]++; e.Kind == journal.OutcomeEntry {
			a.outcomes[e.Subject.ID]++
		}
		a.add(e.Record, journal.DigestEntry(e))
		return nil
	})
}

func (a *audit) add(record int64, d journal.Digest) {
	if _, twice := a.records[record]; twice {
		a.t.Errorf("the record %d is there twice", record)
	}
	a.records[record] = d
}

func each(ctx context.Context, t *testing.T, db *sql.DB, query string, row func(scan func(...any) error) error) {
	t.Helper()
	rows, err := db.QueryContext(ctx, query)
	testkit.Must(t, err)
	defer rows.Close()
	for rows.Next() {
		testkit.Must(t, row(rows.Scan))
	}
	testkit.Must(t, rows.Err())
}

// verifyChain: links from 1 on without a gap, each hashed over the one before, the last one in the head.
func (a *audit) verifyChain() {
	a.t.Helper()
	var prev journal.Digest
	next := int64(1)
	for i := range a.links {
		l := &a.links[i]
		if l.Number != int64(i+1) || l.First != next || len(l.Digests)+len(l.Answered) == 0 {
			a.t.Errorf("link %d of %d records is number %d and begins at record %d, want %d", i+1, len(l.Digests), l.Number, l.First, next)
		}
		if l.Hash != l.HashAfter(prev) {
			a.t.Errorf("the chain is broken at link %d", l.Number)
		}
		prev, next = l.Hash, l.First+int64(len(l.Digests))
	}
	if a.head.Link != int64(len(a.links)) || a.head.Record != next-1 || a.head.Hash != prev {
		a.t.Errorf("the head is at link %d, record %d; the ledger ends with link %d, record %d", a.head.Link, a.head.Record, len(a.links), next-1)
	}
}

// verifyRecords: each record that the ledger vouches for is there, unchanged, and no other.
func (a *audit) verifyRecords() {
	a.t.Helper()
	for i := range a.links {
		l := &a.links[i]
		for n, d := range l.Digests {
			if found, there := a.records[l.First+int64(n)]; !there || found != d {
				a.t.Errorf("the record %d of link %d is not the one of the ledger (there: %v)", l.First+int64(n), l.Number, there)
			}
		}
	}
	if int64(len(a.records)) != a.head.Record {
		a.t.Errorf("%d records, want %d", len(a.records), a.head.Record)
	}
}

// verifyAnswered: runs of what was answered do not overlap and are of records that exist.
func (a *audit) verifyAnswered(ctx context.Context, db *sql.DB) {
	a.t.Helper()
	end := int64(0)
	each(ctx, a.t, db, "SELECT first, last FROM answered ORDER BY first", func(scan func(...any) error) error {
		var r journal.Run
		if err := scan(&r.First, &r.Last); err != nil {
			return err
		}
		if r.First <= end || r.Last < r.First || r.Last > a.head.Record {
			a.t.Errorf("answered: %d to %d after %d, of %d records", r.First, r.Last, end, a.head.Record)
		}
		end = r.Last
		return nil
	})
}

// revisions is how many records are re-based decisions.
func (a *audit) revisions() (n int) {
	for _, all := range a.attempts {
		for i := range all {
			if all[i].Revision > 0 {
				n++
			}
		}
	}
	return n
}

// oneAttemptPerCount fails where a claim's attempts are not numbered from 1 and decided on the counts 0, 1, 2…,
// one each: with a revision or more where an attempt may have any. It returns the number of attempts.
func (a *audit) oneAttemptPerCount(mayHaveRevisions bool) (attempts int) {
	a.t.Helper()
	for i := range a.stories {
		s := &a.stories[i]
		last := int64(0)
		for j := range s.Attempts {
			at := &s.Attempts[j]
			if at.Revision > 0 && mayHaveRevisions {
				continue
			}
			attempts++
			if last++; at.Revision != 0 || at.Number != last || at.AnalysedCount != last-1 || at.Episode != 1 {
				a.t.Errorf("%s: attempt %d (revision %d, episode %d) on count %d, want attempt %d on count %d, decided once",
					s.Subject.ID, at.Number, at.Revision, at.Episode, at.AnalysedCount, last, last-1)
			}
		}
		a.saneTimes(s)
	}
	return attempts
}

// saneTimes holds a story's times against each other (R7): a retry lies its backoff after the analysis.
func (a *audit) saneTimes(s *journal.Story) {
	a.t.Helper()
	for j := range s.Attempts {
		at := &s.Attempts[j]
		d := &at.Decision
		if !d.ShouldRetry() {
			if at.DeadLetter == "" || !d.NextRetryTime.IsZero() {
				a.t.Errorf("%s: attempt %d gives up with dead letter %q and a next time %v", s.Subject.ID, at.Number, at.DeadLetter, d.NextRetryTime)
			}
			continue
		}
		wait := d.NextRetryTime.Sub(d.AnalysedAt)
		if (wait-d.Backoff.Delay).Abs() > time.Second || wait < 5*time.Minute || at.Took < 0 || at.Took > time.Minute {
			a.t.Errorf("%s: attempt %d waits %v with a backoff of %v, and took %v", s.Subject.ID, at.Number, wait, d.Backoff.Delay, at.Took)
		}
	}
}

// instant of a decision's next retry as the process sees it.
func instant(at *journal.Attempt) string { return decision.Instant(at.Decision.NextRetryTime) }

// equalFiles tells whether the same files have the same bytes.
func equalFiles(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for name, content := range a {
		if other, there := b[name]; !there || !bytes.Equal(content, other) {
			return false
		}
	}
	return true
}

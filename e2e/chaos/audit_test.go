package chaos_test

import (
	"context"
	"database/sql"
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

// audit is what a journal holds.
type audit struct {
	t       *testing.T
	stories []journal.Story
	// attempts by the key of their job, in the order they were recorded.
	attempts map[int64][]journal.Attempt
	// kinds are how many records there are of each.
	kinds map[journal.EntryKind]int
}

// look reads a journal through the product's reader, the story of every subject that is no destination, and the
// records, some of which name no subject, from their table. It fails the test where the audit does not hold.
func look(t *testing.T, url string) *audit {
	t.Helper()
	if out, code := once(t, url, "audit", "verify"); code != 0 {
		t.Errorf("the audit does not hold: exit status %d, %s", code, out)
	}
	ctx, db := wait.Context(t), database(t, url)
	a := &audit{t: t, attempts: map[int64][]journal.Attempt{}, kinds: map[journal.EntryKind]int{}}
	reader, err := store.OpenReader(ctx, url)
	testkit.Must(t, err)
	defer func() { _ = reader.Close() }()
	var subjects []journal.Subject
	each(ctx, t, db, "SELECT tenant, policy, id FROM subjects WHERE tenant <> '' ORDER BY key", func(scan func(...any) error) error {
		var s journal.Subject
		defer func() { subjects = append(subjects, s) }()
		return scan(&s.Tenant, &s.Policy, &s.ID)
	})
	for _, s := range subjects {
		story, found, err := reader.Story(ctx, s)
		if err != nil || !found {
			t.Fatalf("the story of %v: found %v, %v", s, found, err)
		}
		a.stories = append(a.stories, story)
		for i := range story.Attempts {
			at := &story.Attempts[i]
			a.attempts[at.JobKey] = append(a.attempts[at.JobKey], *at)
		}
	}
	each(ctx, t, db, "SELECT kind FROM records", func(scan func(...any) error) error {
		var kind journal.EntryKind
		defer func() { a.kinds[kind]++ }()
		return scan(&kind)
	})
	return a
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

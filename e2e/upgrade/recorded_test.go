package upgrade

import (
	"context"
	"crypto/sha256"
	"database/sql"
	_ "embed"
	"encoding/hex"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"

	"retry-worker/e2e/harness/postgres"
	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/store"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// recordAnew makes testdata from what the version before does: to be done once, when another version takes its place.
var recordAnew = flag.Bool("record", false, "make testdata anew from the version before")

// What is recorded of the version before: its migrations' digests, and the rows it wrote, a statement a line.
var (
	//go:embed testdata/migrations.sha256
	migrationSums string
	//go:embed testdata/rows.sql
	rowsBefore string
)

// migrationFolders of the stores, by the names of goose's dialects.
var migrationFolders = map[string]string{"sqlite": "../../internal/store/sqlite/migrations", "pgx": "../../internal/store/postgres/migrations"}

// TestReleasedMigrationsStay: those that the version before knows are the ones that its databases were made by, for ever.
func TestReleasedMigrationsStay(t *testing.T) {
	v, err := readPrevious()
	testkit.Must(t, err)
	sums := ""
	for _, driver := range []string{"pgx", "sqlite"} {
		files, err := migrationsUpTo(migrationFolders[driver], v.schema)
		testkit.Must(t, err)
		for _, name := range files {
			content, err := os.ReadFile(filepath.Join(migrationFolders[driver], name))
			testkit.Must(t, err)
			sum := sha256.Sum256(content)
			sums += hex.EncodeToString(sum[:]) + "  " + path.Base(path.Dir(filepath.ToSlash(migrationFolders[driver]))) + "/" + name + "\n"
		}
	}
	if *recordAnew {
		testkit.Must(t, os.WriteFile("testdata/migrations.sha256", []byte(sums), 0o600))
		return
	}
	if sums != migrationSums {
		t.Errorf("migrations of the version before were changed; their digests are\n%swant\n%s", sums, migrationSums)
	}
}

// migrationsUpTo a version, in their order.
func migrationsUpTo(folder string, schema int64) (names []string, err error) {
	files, err := fs.Glob(os.DirFS(folder), "*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if n, err := goose.NumericComponent(name); err != nil || n <= schema {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if int64(len(names)) != schema {
		return nil, fmt.Errorf("%s has %d migrations up to %d", folder, len(names), schema)
	}
	return names, nil
}

var hexBytes = regexp.MustCompile(`\bx'([0-9a-f]*)'`)

// makeBefore makes a journal as the version before made it: its tables by its migrations, and the rows it wrote.
func makeBefore(t *testing.T, driver, source string) {
	t.Helper()
	v, err := readPrevious()
	testkit.Must(t, err)
	db, err := sql.Open(driver, source)
	testkit.Must(t, err)
	defer db.Close()
	dialect := map[string]goose.Dialect{"sqlite": goose.DialectSQLite3, "pgx": goose.DialectPostgres}[driver]
	p, err := goose.NewProvider(dialect, db, os.DirFS(migrationFolders[driver]), goose.WithTableName("schema_migrations"), goose.WithDisableGlobalRegistry(true))
	testkit.Must(t, err)
	_, err = p.UpTo(wait.Context(t), v.schema)
	testkit.Must(t, err)
	if driver == "sqlite" { // whose it is, as every version writes it
		_, err = db.ExecContext(wait.Context(t), "PRAGMA application_id = 0x52657457")
		testkit.Must(t, err)
	}
	tx, err := db.BeginTx(wait.Context(t), nil)
	testkit.Must(t, err)
	for statement := range strings.Lines(rowsBefore) {
		if driver == "pgx" {
			statement = hexBytes.ReplaceAllString(statement, `'\x$1'::bytea`)
		}
		if _, err := tx.ExecContext(wait.Context(t), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	testkit.Must(t, tx.Commit())
}

// TestRecordedRows: a journal of the version before, as it is recorded, is brought up to date with every row in its place.
func TestRecordedRows(t *testing.T) {
	if *recordAnew {
		recordRows(t)
		return
	}
	for _, driver := range []string{"sqlite", "pgx"} {
		t.Run(driver, func(t *testing.T) {
			var url, source string
			if driver == "pgx" {
				url = postgres.Database(t)
				source = url
			} else {
				file := filepath.Join(t.TempDir(), "journal.db")
				url, source = "sqlite:"+file, file
			}
			makeBefore(t, driver, source)
			s := &fixture{t: t, url: url}
			s.counted()
			rows := map[string]map[string]int{}
			for _, table := range keptTables {
				rows[table] = s.rows("SELECT record FROM " + table)
			}
			opened, err := store.Open(wait.Context(t), url)
			testkit.Must(t, err)
			wantRecorded(t, opened)
			testkit.Must(t, opened.Close())
			for _, table := range keptTables {
				if now := s.rows("SELECT record FROM " + table); len(now) != len(rows[table]) || len(now) == 0 {
					t.Errorf("%s had %d rows, and has %d", table, len(rows[table]), len(now))
				}
			}
			s.counted()
		})
	}
}

// keptTables have rows whose number does not change.
var keptTables = []string{"attempts", "entries", "dead_letters"}

// wantRecorded holds that what was recorded is read as what it is, in all that this version adds.
func wantRecorded(t *testing.T, s store.Store) {
	t.Helper()
	report, err := audit.Verify(wait.Context(t), s, audit.VerifyOptions{}, nil)
	if err != nil || report.Records < 30 {
		t.Errorf("the audit finds %d records in order (%v)", report.Records, err)
	}
	states := map[journal.DeadLetterState]int64{}
	counts, err := s.DeadLetterCounts(wait.Context(t))
	testkit.Must(t, err)
	for _, c := range counts {
		states[c.State] += c.N
	}
	if states[journal.DeadLetterOpen] == 0 || states[journal.DeadLetterRecovered] == 0 || states[journal.DeadLetterDiscarded] == 0 {
		t.Errorf("the dead letters are %v, want open, recovered and discarded ones", states)
	}
	groups, next, err := s.DeadLetterGroups(wait.Context(t), journal.DeadLetterFilter{State: "open"}, "", 100)
	testkit.Must(t, err)
	grouped := int64(0)
	for i := range groups {
		grouped += groups[i].N
	}
	if next != "" || grouped != states[journal.DeadLetterOpen] {
		t.Errorf("%d open dead letters are in groups, want %d", grouped, states[journal.DeadLetterOpen])
	}
	page, _, err := s.DeadLetterPage(wait.Context(t), journal.DeadLetterFilter{State: "all"}, "", 100)
	testkit.Must(t, err)
	for i := range page {
		if page[i].Run != "" || page[i].Fingerprint == "" || page[i].Subject.Policy == "" {
			t.Errorf("a dead letter of the version before is %+v", page[i])
		}
	}
	if runs, err := s.ActiveBulkRuns(wait.Context(t)); err != nil || len(runs) != 0 {
		t.Errorf("bulk runs are under way: %+v (%v)", runs, err)
	}
	told, err := s.NewDeadLetters(wait.Context(t), teamOfStays, 0, 10)
	if err != nil || told.N != each {
		t.Errorf("a team is to be told of %d dead letters (%v), want %d", told.N, err, each)
	}
}

// recordRows makes rows.sql of what the version before does alone.
func recordRows(t *testing.T) {
	binaryBefore(t)
	file := filepath.Join(t.TempDir(), "journal.db")
	s := newFixture(t, "sqlite:"+file)
	s.alone().end()
	db := s.database()
	defer db.Close()
	text := ""
	for _, table := range recordedTables {
		text += dump(t, db, table)
	}
	testkit.Must(t, os.WriteFile("testdata/rows.sql", []byte(text), 0o600))
}

// recordedTables are those whose rows no trigger makes, in an order in which they can be made.
var recordedTables = []string{"subjects", "episodes", "attempts", "dead_letters", "entries", "answered", "ledger", "ledger_head", "figures", "fingerprints"}

// truths are the columns that are truth values in one store and numbers in the other.
var truths = []string{"at_maximum", "count_assumed", "review_discard", "review_force", "review_fresh"}

// dump a table as statements that both stores understand.
func dump(t *testing.T, db *sql.DB, table string) (text string) {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), "SELECT * FROM "+table)
	testkit.Must(t, err)
	defer rows.Close()
	names, err := rows.Columns()
	testkit.Must(t, err)
	for rows.Next() {
		values, into, texts := make([]any, len(names)), make([]any, len(names)), make([]string, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		testkit.Must(t, rows.Scan(into...))
		for i, v := range values {
			texts[i] = literal(t, names[i], v)
		}
		if table == "ledger_head" { // its row is there from the first migration on
			text += "DELETE FROM ledger_head\n"
		}
		text += "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(texts, ", ") + ")\n"
	}
	testkit.Must(t, rows.Err())
	return text
}

func literal(t *testing.T, name string, v any) string {
	t.Helper()
	switch v := v.(type) {
	case int64:
		if slices.Contains(truths, name) {
			return fmt.Sprint(v != 0)
		}
		return fmt.Sprint(v)
	case float64:
		return fmt.Sprint(v)
	case []byte:
		return "x'" + hex.EncodeToString(v) + "'"
	case string:
		if strings.Contains(v, "\n") {
			t.Fatalf("%s has a line break in it: %q", name, v)
		}
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	default:
		t.Fatalf("%s is %T", name, v)
		return ""
	}
}

package storetest

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/store/sqlstore"
	"retry-worker/internal/testkit"
)

// The schema and the rows of a journal that 1.0.0 wrote, and today's schema, as paths from the packages under test.
const (
	firstSchema = "../storetest/testdata/1.0.0/schema.sql"
	firstRows   = "../storetest/testdata/1.0.0/rows.json"
	nowSchema   = "../sqlstore/schema.sql"
)

// RunUpgrade checks the rule of upgrades: this version opens a journal of 1.0.0 and goes on with it. Meanwhile 1.0.0
// can still write it, since a statement names its columns and needs no others. The database behind pool is empty;
// open opens it.
func RunUpgrade(t *testing.T, d *sqlstore.Dialect, pool *sql.DB, open func(context.Context) (Store, error)) {
	before, now := tablesOf(t, firstSchema), tablesOf(t, nowSchema)
	for table, lines := range before {
		expectAdded(t, table, lines, now[table])
	}
	restore(t, d, pool)
	s, err := open(t.Context())
	testkit.Must(t, err)
	defer s.Close()
	verify := func() {
		t.Helper()
		if _, err := audit.Verify(t.Context(), s, journal.Head{}, nil); err != nil {
			t.Fatalf("a journal of 1.0.0 is not sound here: %v (until 1.0.0 is tagged, and never afterwards: "+
				"go test ./internal/store/sqlite -run TestUpgrade -update)", err)
		}
	}
	verify()
	failure(t, s, subject("CLM-NEXT-1"), journal.Identity{1})
	verify()
	for table, lines := range now {
		_, err := pool.ExecContext(t.Context(), "SELECT "+strings.Join(columns(lines), ", ")+" FROM "+table+" WHERE 1 = 0")
		testkit.Must(t, err)
	}
}

// tablesOf returns a schema's columns and constraints by table, a line each.
func tablesOf(t *testing.T, schema string) map[string][]string {
	t.Helper()
	all, text := map[string][]string{}, regexp.MustCompile(` *--[^\n]*`).ReplaceAllString(testkit.Read(t, schema), "")
	for _, m := range regexp.MustCompile(`(?s)CREATE TABLE (\w+) \((.*?)\n\)`).FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(strings.TrimSpace(m[2])) {
			all[m[1]] = append(all[m[1]], strings.TrimSuffix(strings.Join(strings.Fields(line), " "), ","))
		}
	}
	for _, m := range regexp.MustCompile(`CREATE UNIQUE INDEX \w+ ON (\w+).*;`).FindAllStringSubmatch(text, -1) {
		all[m[1]] = append(all[m[1]], m[0])
	}
	return all
}

var constraint = regexp.MustCompile(`^(CREATE )?UNIQUE|^PRIMARY|^CHECK|^FOREIGN`)

func columns(lines []string) (names []string) {
	for _, line := range lines {
		if !constraint.MatchString(line) {
			names = append(names, strings.Fields(line)[0])
		}
	}
	return names
}

// expectAdded checks that a table only gained what the earlier version need not know.
func expectAdded(t *testing.T, table string, before, now []string) {
	t.Helper()
	for _, line := range before {
		if !slices.Contains(now, line) {
			t.Errorf("%s no longer has %q, which 1.0.0 uses: it goes a release after nothing uses it", table, line)
		}
	}
	asks := regexp.MustCompile(`UNIQUE|PRIMARY|CHECK|REFERENCES`)
	for _, line := range now {
		must := strings.Contains(line, "NOT NULL") && !strings.Contains(line, "DEFAULT")
		if !slices.Contains(before, line) && (must || asks.MatchString(line)) {
			t.Errorf("%s has %q, which a row of 1.0.0 may not fit: expected a column with a default, or one that may be null", table, line)
		}
	}
}

// row is a table's. Its blobs are in Bytes, by index.
type row struct {
	Table  string
	Values []any
	Bytes  map[int][]byte
}

// restore makes the journal of 1.0.0 in an empty database.
func restore(t *testing.T, d *sqlstore.Dialect, pool *sql.DB) {
	t.Helper()
	words := regexp.MustCompile(`\b(INT|TEXT|BLOB|JSON)\b|\)(STRICT|KEYED);`)
	tables := words.ReplaceAllStringFunc(testkit.Read(t, firstSchema), func(word string) string { return d.Types[word] })
	_, err := pool.ExecContext(t.Context(), tables)
	testkit.Must(t, err)
	decoder := json.NewDecoder(strings.NewReader(testkit.Read(t, firstRows)))
	decoder.UseNumber()
	for decoder.More() {
		var r row
		testkit.Must(t, decoder.Decode(&r))
		var places []string
		for i, v := range r.Values {
			places = append(places, "?")
			if d.Numbered {
				places[i] = fmt.Sprintf("$%d", i+1)
			}
			if n, is := v.(json.Number); is {
				r.Values[i], err = n.Int64()
				testkit.Must(t, err)
			}
			if b, is := r.Bytes[i]; is {
				r.Values[i] = append([]byte{}, b...) // empty is not null
			}
		}
		_, err := pool.ExecContext(t.Context(), "INSERT INTO "+r.Table+" VALUES ("+strings.Join(places, ", ")+")", r.Values...)
		testkit.Must(t, err)
	}
}

// Release saves the journal of an SQLite database as that of 1.0.0.
func Release(t *testing.T, pool *sql.DB) {
	t.Helper()
	var all bytes.Buffer
	for _, table := range slices.Sorted(maps.Keys(tablesOf(t, nowSchema))) {
		rows, err := pool.QueryContext(t.Context(), "SELECT * FROM "+table)
		testkit.Must(t, err)
		names, err := rows.Columns()
		testkit.Must(t, err)
		for rows.Next() {
			r, into := row{Table: table, Values: make([]any, len(names)), Bytes: map[int][]byte{}}, make([]any, len(names))
			for i := range names {
				into[i] = &r.Values[i]
			}
			testkit.Must(t, rows.Scan(into...))
			for i, v := range r.Values {
				if b, is := v.([]byte); is {
					r.Bytes[i], r.Values[i] = b, nil
				}
			}
			testkit.Must(t, json.NewEncoder(&all).Encode(r))
		}
		testkit.Must(t, rows.Err())
		testkit.Must(t, rows.Close())
	}
	testkit.Must(t, os.WriteFile(firstRows, all.Bytes(), 0o644))
	testkit.Must(t, os.WriteFile(firstSchema, []byte(testkit.Read(t, nowSchema)), 0o644))
}

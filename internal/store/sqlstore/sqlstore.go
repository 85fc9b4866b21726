// Package sqlstore keeps the journal in an SQL database, with one schema and one set of statements. A Dialect says what
// differs between databases.
package sqlstore

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/journal"
)

// Version is the schema's version. Additions do not raise it, as the previous release must run beside this one.
// Removing something that only releases before the previous one use raises it.
const Version = 1

//go:embed schema.sql
var schema string

// Dialect is what differs between databases.
type Dialect struct {
	// Types maps the types and table endings of schema.sql to the database's.
	Types map[string]string
	// Made is a query that reports whether there are tables, Making one that begins to create them: that locks, or marks,
	// the database.
	Made, Making string
	// Numbered reports whether parameters are $1 and not ?.
	Numbered bool
	// Now is an expression for the database's clock in milliseconds, for leases; empty to use the process's clock. Lock
	// is a suffix that locks a selected row, such as the ledger's head.
	Now, Lock string
	// Contains is the function that returns the position of a text in another, from 1; 0 if it is not in it. Elements
	// is a table a whose column value holds the elements of a parameter, a JSON array.
	Contains, Elements string
	// Begin begins a transaction that writes. Detached reports whether its statements ignore the caller's context.
	Begin    string
	Detached bool
	// Long is a query that lifts the time-outs of a transaction; empty for none.
	Long string
	// Judge returns the store's error for the database's err. committing says that COMMIT failed.
	Judge func(err error, committing bool) *journal.StoreError
	// Batch executes statements in one round trip; nil to execute them one by one.
	Batch func(ctx context.Context, conn Conn, all []Statement) error
}

var types = regexp.MustCompile(`\b(INT|TEXT|BLOB|JSON)\b|\)(STRICT|KEYED);`)

// Schema returns the statements that create the tables.
func (d *Dialect) Schema() string {
	return types.ReplaceAllStringFunc(schema, func(word string) string { return d.Types[word] })
}

// Create creates the tables unless there are some, and reads the journal's key of identities. Its error says so if the
// tables are of an unknown version. doing begins its errors. Call it first.
func (s *Store) Create(ctx context.Context, doing string) error {
	return s.write(ctx, doing, func(t *tx) {
		t.ask(t.Long) // others may create the tables
		if !t.made() {
			t.ask(t.Making)
			if !t.made() {
				t.createTables()
			}
		}
		t.known()
		s.identityKey = t.identityKey()
	})
}

func (t *tx) made() (there bool) {
	t.one(t.Made, nil, &there)
	return there
}

func (t *tx) createTables() {
	for statement := range strings.SplitSeq(strings.TrimSpace(t.Schema()), ";\n") {
		t.exec(statement)
	}
	key := journal.NewIdentityKey()
	start := key.Start().Hash
	t.add("INSERT INTO ledger_head VALUES (1, 0, 0, 0, 0, ?, 0, 0)", start[:])
	t.add("INSERT INTO identity_key VALUES (?)", key[:])
	t.add("INSERT INTO journal_schema VALUES (?)", Version)
	t.flush()
}

// Known returns an error if the tables are of an unknown version. doing begins it.
func (r *Reader) Known(ctx context.Context, doing string) error {
	_, err := reading(ctx, r, doing, func(t *tx) any { t.known(); return nil })
	return err
}

func (t *tx) known() {
	var version int64
	switch t.one("SELECT coalesce(max(version), 0) FROM journal_schema", nil, &version); {
	case version > Version:
		t.fail(invalid("its schema has version %d, this retry-worker knows up to version %d: start a newer one", version,
			Version))
	case version < 1:
		t.fail(invalid("its schema names no version: restore the database from a backup"))
	}
}

var parameter = regexp.MustCompile(`\?`)

// bind returns the query with the dialect's parameters.
func (d *Dialect) bind(query string) string {
	if !d.Numbered {
		return query
	}
	n := 0
	return parameter.ReplaceAllStringFunc(query, func(string) string { n++; return "$" + strconv.Itoa(n) })
}

// Failed returns the store's error for err. doing says what failed; committing says that it was COMMIT.
func (d *Dialect) Failed(doing string, err error, committing bool) error {
	e := d.judged(err, committing)
	return &journal.StoreError{Kind: e.Kind, Err: fmt.Errorf("%s: %w", doing, e.Err)}
}

func (d *Dialect) judged(err error, committing bool) *journal.StoreError {
	if e, ok := errors.AsType[*journal.StoreError](err); ok {
		return e
	}
	if errors.Is(err, journal.ErrUnreadable) { // only this row
		return &journal.StoreError{Kind: journal.Invalid, Err: err}
	}
	return d.Judge(err, committing)
}

// NotBegunError says that there is no journal yet: the worker creates it at its first start.
type NotBegunError struct{ Err error }

func (e *NotBegunError) Error() string { return e.Err.Error() }
func (e *NotBegunError) Unwrap() error { return e.Err }

// where is a WHERE clause: conditions that must all hold, and their arguments.
type where struct {
	conditions []string
	args       []any
}

func (w *where) and(condition string, args ...any) {
	w.conditions, w.args = append(w.conditions, condition), append(w.args, args...)
}

// is adds the condition that column = value, unless value is empty.
func (w *where) is(column, value string) {
	if value != "" {
		w.and(column+" = ?", value)
	}
}

// at adds a condition on an instant, unless that is zero.
func (w *where) at(condition string, t time.Time) {
	if !t.IsZero() {
		w.and(condition, journal.CeilMilli(t))
	}
}

// oneOf adds the condition that a column has one of the values. There must be at least one.
func oneOf[T ~string | ~int64](w *where, column string, values []T) {
	w.and(column + " IN (?" + strings.Repeat(", ?", len(values)-1) + ")")
	for _, v := range values {
		w.args = append(w.args, v)
	}
}

// String returns the clause; empty if there are no conditions.
func (w *where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

// asJSON scans a column of JSON.
type asJSON struct{ to any }

// Scan implements sql.Scanner.
func (j asJSON) Scan(from any) error {
	text, is := from.(string)
	if b, raw := from.([]byte); raw {
		text, is = string(b), true
	}
	if !is {
		return fmt.Errorf("%w row: it is %T, expected a text", journal.ErrUnreadable, from)
	}
	if err := json.Unmarshal([]byte(text), j.to); err != nil {
		return fmt.Errorf("%w row: %w", journal.ErrUnreadable, err)
	}
	return nil
}

// milli scans an instant in milliseconds.
type milli struct{ at *time.Time }

// Scan implements sql.Scanner.
func (m milli) Scan(from any) error {
	n, is := from.(int64)
	if !is {
		return fmt.Errorf("an instant is %T, expected milliseconds", from)
	}
	*m.at = journal.FromMilli(n)
	return nil
}

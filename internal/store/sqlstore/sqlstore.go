// Package sqlstore keeps the journal in an SQL database, with one schema and one set of statements. A Dialect says what
// differs between databases.
package sqlstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"retry-worker/internal/journal"
)

// Version is the schema's version. Additions do not raise it, as the previous release must run beside this one.
// Removing something that only releases before the previous one use raises it.
const Version = 1

//go:embed schema.sql
var schema string

// Dialect is what differs between databases.
type Dialect struct {
	// Types maps the types and table endings of schema.sql to the database's. Bytes is the format of a literal of
	// bytes.
	Types map[string]string
	Bytes string
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
	key := journal.NewIdentityKey()
	return types.ReplaceAllStringFunc(schema, func(word string) string { return d.Types[word] }) + fmt.Sprintf(`
		INSERT INTO ledger_head VALUES (1, 0, 0, 0, 0, `+d.Bytes+`, 0, 0);
		INSERT INTO identity_key VALUES (`+d.Bytes+`);
		INSERT INTO journal_schema VALUES (%d);`, [32]byte(key.Start().Hash), [32]byte(key), Version)
}

// Known returns an error if this binary does not know the schema's version.
func Known(version int64) error {
	switch {
	case version > Version:
		return fmt.Errorf("its schema has version %d, this retry-worker knows up to version %d: start a newer one", version,
			Version)
	case version < 1:
		return errors.New("its schema names no version: restore the database from a backup")
	}
	return nil
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

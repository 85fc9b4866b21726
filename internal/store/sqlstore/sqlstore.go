// Package sqlstore keeps the journal in an SQL database, with one schema and one set of statements. A Dialect says what
// differs between databases.
package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
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
	Batch func(ctx context.Context, conn *sql.Conn, all []Statement) error
}

// Statement is an SQL statement with its arguments.
type Statement struct {
	Query string
	Args  []any
}

// Querier is a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
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

// Reader reads the journal. Its methods are safe for concurrent use.
type Reader struct {
	*Dialect
	// Pool are the connections.
	Pool *sql.DB
	// Snapshot runs do in a transaction that sees one state of the journal; do may be called again.
	Snapshot func(ctx context.Context, do func(tx Querier) error) error
}

// NewReader returns a Reader that reads through pool.
func NewReader(d *Dialect, pool *sql.DB) Reader {
	return Reader{d, pool, func(ctx context.Context, do func(tx Querier) error) error {
		tx, err := pool.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // nothing was written
		return do(tx)
	}}
}

// Close closes the reader; later calls fail.
func (r *Reader) Close() error { return r.Pool.Close() }

// snapshot is a transaction for reading.
type snapshot struct {
	context.Context
	*Dialect
	tx Querier
}

// read runs do in a transaction that sees one state of the journal.
func (r *Reader) read(ctx context.Context, doing string, do func(s *snapshot) error) error {
	err := r.Snapshot(ctx, func(tx Querier) error { return do(&snapshot{ctx, r.Dialect, tx}) })
	if err != nil {
		return r.Failed(doing, err, false)
	}
	return err
}

// reading returns the result of do in a transaction that sees one state of the journal.
func reading[T any](
	ctx context.Context, r *Reader, doing string, do func(s *snapshot) (T, error),
) (result T, err error) {
	err = r.read(ctx, doing, func(s *snapshot) error {
		var err error
		result, err = do(s)
		return err
	})
	return result, err
}

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

// add adds the conditions of of.
func (w *where) add(of where) {
	w.conditions, w.args = append(w.conditions, of.conditions...), append(w.args, of.args...)
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

// scanner reads the columns of a row.
type scanner = func(to ...any) error

// each calls row for each row of the query's result. Its error is a *journal.StoreError, or row's errEnough.
func (s *snapshot) each(query string, row func(scan scanner) error, args ...any) error {
	rows, err := s.tx.QueryContext(s, s.bind(query), args...)
	if err != nil {
		return s.judged(err, false)
	}
	for err == nil && rows.Next() {
		err = row(rows.Scan)
	}
	err = cmp.Or(err, rows.Err(), rows.Close())
	if err == nil || errors.Is(err, errEnough) {
		return err
	}
	return s.judged(err, false)
}

// stream calls take for each row of a query's result.
func stream[T any](
	s *snapshot, query string, args []any, read func(scan scanner, row *T) error, take func(row *T) error,
) error {
	return s.each(query, func(scan scanner) error {
		var row T
		if err := read(scan, &row); err != nil {
			return err
		}
		return take(&row)
	}, args...)
}

// collect reads the rows of a query's result.
func collect[T any](s *snapshot, query string, args []any, read func(scan scanner, row *T) error) (all []T, err error) {
	err = stream(s, query, args, read, func(row *T) error {
		all = append(all, *row)
		return nil
	})
	return all, err
}

// list returns the rows of a query's result.
func list[T any](
	ctx context.Context, r *Reader, doing, query string, args []any, read func(scan scanner, row *T) error,
) ([]T, error) {
	return reading(ctx, r, doing, func(s *snapshot) ([]T, error) { return collect(s, query, args, read) })
}

// counted returns the rows of a query's result, each a key and a number.
func counted[K comparable](s *snapshot, query string, args ...any) (map[K]int64, error) {
	all := map[K]int64{}
	return all, s.each(query, func(scan scanner) error {
		var key K
		var n int64
		err := scan(&key, &n)
		all[key] = n
		return err
	}, args...)
}

// first returns the first of all, and reports whether there is one.
func first[T any](all []T, err error) (one T, found bool, _ error) {
	if err != nil || len(all) == 0 {
		return one, false, err
	}
	return all[0], true, nil
}

// fromJSON reads a row with one column of JSON.
func fromJSON[T any](scan scanner, row *T) error {
	return scan(asJSON{row})
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

// one reads the only row, and reports whether there is one.
func (s *snapshot) one(query string, args []any, to ...any) (found bool, err error) {
	err = s.each(query, func(scan scanner) error {
		found = true
		return scan(to...)
	}, args...)
	return found && err == nil, err
}

// Store reads and writes the journal. Its methods are safe for concurrent use.
type Store struct {
	Reader
	// Acquire returns a connection for writing. release gives it back, and rolls back unless the transaction has ended.
	Acquire func(ctx context.Context) (conn *Conn, release func(ended bool), err error)
	// Room returns an error if there is no room for a batch; nil if the room is unknown.
	Room func() error

	identityKey journal.IdentityKey
}

// IdentityKey implements journal.Store.
func (s *Store) IdentityKey() journal.IdentityKey { return s.identityKey }

// ReadIdentityKey reads the identity key. Call it first.
func (s *Store) ReadIdentityKey(ctx context.Context) error {
	return s.read(ctx, "read the key of identities", func(of *snapshot) (err error) {
		s.identityKey, err = of.IdentityKey()
		return err
	})
}

// Conn is a connection for writing. Prepared caches its statements; nil if the driver does.
type Conn struct {
	*sql.Conn
	Prepared map[string]*sql.Stmt
}

// writer is a transaction that writes.
type writer struct {
	snapshot
	conn *Conn
}

// write runs do in a transaction, and commits it if do returns true.
func (s *Store) write(ctx context.Context, doing string, do func(w *writer) (bool, error)) error {
	conn, release, err := s.Acquire(ctx)
	if err != nil {
		return s.Failed(doing, err, false)
	}
	ended := false
	defer func() { release(ended) }() // even if do panics
	inner := ctx
	if s.Detached {
		inner = context.WithoutCancel(ctx)
	}
	w := &writer{snapshot{inner, s.Dialect, conn}, conn}
	changed := false
	if err = ctx.Err(); err == nil {
		_, err = w.exec(w.Begin)
	}
	if err == nil {
		changed, err = do(w)
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return s.Failed(doing, err, false)
	}
	end := "ROLLBACK"
	if changed {
		end = "COMMIT"
	}
	if _, err = w.exec(end); err != nil {
		return s.Failed(doing, err, changed)
	}
	ended = true
	return nil
}

// statement returns the prepared query; nil if the driver prepares by itself.
func (c *Conn) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	if s := c.Prepared[query]; s != nil || c.Prepared == nil {
		return s, nil
	}
	s, err := c.PrepareContext(ctx, query)
	if err == nil {
		c.Prepared[query] = s
	}
	return s, err
}

// QueryContext implements Querier.
func (c *Conn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.Conn.QueryContext(ctx, query, args...)
	}
	return s.QueryContext(ctx, args...)
}

// exec executes a statement, and returns how many rows it changed.
func (w *writer) exec(query string, args ...any) (int64, error) {
	query = w.bind(query)
	s, err := w.conn.statement(w, query)
	if err != nil {
		return 0, err
	}
	var r sql.Result
	if s != nil {
		r, err = s.ExecContext(w, args...)
	} else {
		r, err = w.conn.ExecContext(w, query, args...)
	}
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// NotBegunError says that there is no journal yet: the worker creates it at its first start.
type NotBegunError struct{ Err error }

func (e *NotBegunError) Error() string { return e.Err.Error() }
func (e *NotBegunError) Unwrap() error { return e.Err }

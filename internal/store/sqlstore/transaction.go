package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"iter"

	"retry-worker/internal/journal"
)

// Querier runs queries in a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Conn is a connection for writing.
type Conn interface {
	Querier
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Statement is an SQL statement with its arguments.
type Statement struct {
	Query string
	Args  []any
}

// tx is a transaction. It keeps its first error; from then on it does nothing, and what it returns means nothing.
type tx struct {
	context.Context
	*Dialect
	Querier
	err error
	// conn is nil if the transaction only reads.
	conn Conn
	// collected are statements to execute before the commit. changed reports whether there is something to commit.
	collected []Statement
	changed   bool
}

// fail keeps err, unless it is nil or not the first.
func (t *tx) fail(err error) {
	if t.err == nil && err != nil {
		t.err = t.judged(err, false)
	}
}

// scanner reads the columns of a row.
type scanner = func(to ...any)

// rows runs a query, and yields each row of its result.
func (t *tx) rows(query string, args ...any) iter.Seq[scanner] {
	return func(yield func(scanner) bool) {
		if t.err != nil {
			return
		}
		rows, err := t.QueryContext(t, t.bind(query), args...)
		if err != nil {
			t.fail(err)
			return
		}
		defer rows.Close()
		scan := func(to ...any) { t.fail(rows.Scan(to...)) }
		for t.err == nil && rows.Next() && yield(scan) {
		}
		t.fail(rows.Err())
	}
}

// ask runs a query for its effect, unless it is empty.
func (t *tx) ask(query string) {
	if query != "" {
		for range t.rows(query) {
		}
	}
}

// one reads the only row of a query's result, and reports whether there is one.
func (t *tx) one(query string, args []any, to ...any) (found bool) {
	for scan := range t.rows(query, args...) {
		found = true
		scan(to...)
	}
	return found && t.err == nil
}

// collect reads the rows of a query's result.
func collect[T any](t *tx, query string, args []any, read func(scan scanner, row *T)) (all []T) {
	for scan := range t.rows(query, args...) {
		var row T
		read(scan, &row)
		all = append(all, row)
	}
	return all
}

// counted reads the rows of a query's result, each a key and a number.
func counted[K comparable](t *tx, query string, args ...any) map[K]int64 {
	all := map[K]int64{}
	for scan := range t.rows(query, args...) {
		var key K
		var n int64
		scan(&key, &n)
		all[key] = n
	}
	return all
}

// exec executes a statement, and returns how many rows it changed.
func (t *tx) exec(query string, args ...any) (n int64) {
	if t.err == nil {
		r, err := t.conn.ExecContext(t, t.bind(query), args...)
		if err == nil {
			n, err = r.RowsAffected()
		}
		t.fail(err)
	}
	t.changed = t.changed || n > 0
	return n
}

// add has a statement executed before the commit, after those added before.
func (t *tx) add(query string, args ...any) {
	t.collected = append(t.collected, Statement{t.bind(query), args})
}

// flush executes the added statements.
func (t *tx) flush() error {
	all := t.collected
	t.collected, t.changed = nil, t.changed || len(all) > 0
	switch {
	case t.err != nil || len(all) == 0:
	case t.Batch != nil:
		t.fail(t.Batch(t, t.conn, all))
	default:
		for _, s := range all {
			if _, err := t.conn.ExecContext(t, s.Query, s.Args...); err != nil {
				t.fail(err)
				break
			}
		}
	}
	return t.err
}

// Reader reads the journal. Its methods are safe for concurrent use.
type Reader struct {
	*Dialect
	// Pool are the connections.
	Pool *sql.DB
	// Snapshot runs do in a transaction that sees one state of the journal; do may be called again.
	Snapshot func(ctx context.Context, do func(Querier) error) error
}

// NewReader returns a Reader that reads through pool.
func NewReader(d *Dialect, pool *sql.DB) Reader {
	return Reader{d, pool, func(ctx context.Context, do func(Querier) error) error {
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

// reading returns the result of do in a transaction that sees one state of the journal.
func reading[T any](ctx context.Context, r *Reader, doing string, do func(t *tx) T) (result T, err error) {
	err = r.Snapshot(ctx, func(q Querier) error {
		t := &tx{Context: ctx, Dialect: r.Dialect, Querier: q}
		result = do(t)
		return t.err
	})
	if err != nil {
		err = r.Failed(doing, err, false)
	}
	return result, err
}

// list returns the rows of a query's result.
func list[T any](
	ctx context.Context, r *Reader, doing, query string, args []any, read func(scan scanner, row *T),
) ([]T, error) {
	return reading(ctx, r, doing, func(t *tx) []T { return collect(t, query, args, read) })
}

// first returns the first of all, and reports whether there is one.
func first[T any](all []T, err error) (one T, found bool, _ error) {
	if err != nil || len(all) == 0 {
		return one, false, err
	}
	return all[0], true, nil
}

// Store reads and writes the journal. Its methods are safe for concurrent use.
type Store struct {
	Reader
	// Acquire returns a connection for writing. release gives it back, and rolls back unless the transaction has ended.
	Acquire func(ctx context.Context) (conn Conn, release func(ended bool), err error)
	// Room returns an error if there is no room for a batch; nil if the room is unknown.
	Room func() error

	identityKey journal.IdentityKey
}

// IdentityKey implements journal.Store.
func (s *Store) IdentityKey() journal.IdentityKey { return s.identityKey }

// write runs do in a transaction, and commits it if that changes something.
func (s *Store) write(ctx context.Context, doing string, do func(t *tx)) error {
	conn, release, err := s.Acquire(ctx)
	if err != nil {
		return s.Failed(doing, err, false)
	}
	ended := false
	defer func() { release(ended) }() // even if do panics
	t := &tx{Context: ctx, Dialect: s.Dialect, Querier: conn, conn: conn}
	if s.Detached {
		t.Context = context.WithoutCancel(ctx)
	}
	t.fail(ctx.Err())
	if t.exec(s.Begin); t.err == nil {
		t.changed = false // SQLite says of BEGIN what the statement before it changed
		do(t)
	}
	if err = cmp.Or(t.flush(), ctx.Err()); err != nil {
		return s.Failed(doing, err, false)
	}
	end := "ROLLBACK"
	if t.changed {
		end = "COMMIT"
	}
	if _, err = conn.ExecContext(t, end); err != nil {
		return s.Failed(doing, err, t.changed)
	}
	ended = true
	return nil
}

// change runs decide in a transaction that locks the ledger's head, and saves the changes that it returns, if any.
func (s *Store) change(
	ctx context.Context, doing string, decide func(t *tx, head journal.Head) *journal.Changes,
) error {
	return s.write(ctx, doing, func(t *tx) {
		head := t.head(t.Lock)
		if t.err != nil {
			return
		}
		if c := decide(t, head); c != nil && t.err == nil {
			t.save(head, c)
		}
	})
}

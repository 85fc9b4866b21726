package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"sync"
	"time"
)

// Reader reads the journal in a file, beside the process that writes it. It implements journal.Reader,
// journal.DeadLetterReader, journal.Archive and journal.Statistics; its methods are safe for concurrent use.
type Reader struct {
	file *file

	mu   sync.Mutex
	pool *sql.DB
	// still is how the file looked when nobody wrote it, and it was opened as one that does not change; the
	// zero value where somebody may write it.
	still stamp
}

// stamp tells whether a file was written meanwhile: who writes it has a write-ahead log beside it first.
type stamp struct {
	size, log int64
	changed   time.Time
}

// OpenReader opens the journal in the file at path for reading. It makes nothing and changes nothing, the
// schema included. Its errors are one line that names the file.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	f, err := locate(path)
	if err != nil {
		return nil, err
	}
	switch info, err := os.Stat(f.path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, f.wrong("does not exist: name the file that the worker writes (RETRY_WORKER_DATABASE_URL)")
	case err != nil:
		return nil, f.wrong("cannot be read (%v)", cause(err))
	case info.Size() == 0:
		return nil, f.wrong("is empty: the worker has not begun it yet")
	}
	r, err := f.reader(forReading)
	if still := f.stamp(); err == nil && still.log == 0 {
		r.still = still
		err = r.reopen(frozen)
	}
	if err != nil {
		return nil, f.explain(err)
	}
	if err := r.inTransaction(ctx, isJournal(ctx)); err != nil {
		return nil, errors.Join(f.unreadable(err), r.Close())
	}
	return r, nil
}

// isJournal fails where the tables are not as this binary reads them.
func isJournal(ctx context.Context) func(tx *snapshot) error {
	return func(tx *snapshot) error {
		var application int64
		if err := tx.QueryRowContext(ctx, "SELECT application_id FROM pragma_application_id").Scan(&application); err != nil {
			return err
		}
		known, err := latest(embedded)
		if err != nil {
			return err
		}
		s, err := compatible(ctx, tx, known)
		switch {
		case err != nil:
			return err
		case application != applicationID || s == (schema{}):
			return errors.New("found no journal in it: name the file that the worker writes")
		case s.version < known:
			return fmt.Errorf("its schema has version %d, this retry-worker reads version %d: let `retry-worker serve` of this "+
				"version open it once", s.version, known)
		}
		return nil
	}
}

func (f *file) reader(way url.Values) (*Reader, error) {
	r := &Reader{file: f}
	return r, r.reopen(way)
}

func (r *Reader) reopen(way url.Values) error {
	pool, err := r.file.pool(way, readers)
	if err != nil {
		return err
	}
	if r.pool != nil {
		err = r.pool.Close()
	}
	r.pool = pool
	return err
}

func (f *file) stamp() stamp {
	s := stamp{log: f.size("-wal")}
	if info, err := os.Stat(f.path); err == nil {
		s.size, s.changed = info.Size(), info.ModTime()
	}
	return s
}

// Close ends the reader; its methods fail afterwards.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pool.Close()
}

// current are the connections to read with.
func (r *Reader) current() (*sql.DB, stamp, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.still == (stamp{}) || r.file.stamp() == r.still {
		return r.pool, r.still, nil
	}
	r.still = stamp{}
	return r.pool, r.still, r.reopen(forReading)
}

// read runs do in a transaction that sees one state of the journal, and again where the file was taken for
// one that nobody writes, and somebody did.
func (r *Reader) read(ctx context.Context, doing string, do func(tx *snapshot) error) error {
	if err := r.inTransaction(ctx, do); err != nil {
		return failed(doing, err)
	}
	return nil
}

func (r *Reader) inTransaction(ctx context.Context, do func(tx *snapshot) error) error {
	for {
		pool, still, err := r.current()
		if err == nil {
			err = inTransaction(ctx, pool, do)
		}
		if still == (stamp{}) || r.file.stamp() == still {
			return err
		}
	}
}

// snapshot is a transaction that sees one state of the journal.
type snapshot struct {
	*sql.Tx
	conn *sql.Conn
}

func inTransaction(ctx context.Context, pool *sql.DB, do func(tx *snapshot) error) error {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	return do(&snapshot{tx, conn})
}

// scan calls read with the values of each row, which are the callee's until it returns.
func scan(ctx context.Context, tx *snapshot, query string, read func(values []driver.Value) error, args ...any) error {
	return prepare(ctx, tx, query, func(ask asking) error { return ask(read, args...) })
}

// asking runs a prepared query: read is called with the values of each row.
type asking func(read func(values []driver.Value) error, args ...any) error

// prepare has do ask a query, as often as it likes. It goes below database/sql, which takes as long again for rows of
// many columns.
func prepare(ctx context.Context, tx *snapshot, query string, do func(ask asking) error) error {
	return tx.conn.Raw(func(raw any) (err error) {
		c, ok := raw.(driver.ConnPrepareContext)
		if !ok {
			return fmt.Errorf("the driver's %T lacks a method", raw)
		}
		p, err := c.PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.Close()) }()
		s := &statement{}
		if s.raw, ok = p.(prepared); !ok {
			return fmt.Errorf("the driver's %T lacks a method", p)
		}
		return do(func(read func(values []driver.Value) error, args ...any) error {
			s.with()
			for _, a := range args {
				v, err := driver.DefaultParameterConverter.ConvertValue(a)
				if err != nil {
					return err
				}
				s.add(v)
			}
			return s.query(ctx, read)
		})
	})
}

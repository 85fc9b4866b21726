package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"sync"
	"time"

	"retry-worker/internal/smallfile"
	"retry-worker/internal/store/sqlstore"
)

// Reader reads the journal in a file, beside the process that writes it. Its methods are safe for concurrent use.
type Reader struct {
	sqlstore.Reader
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
		return nil, &sqlstore.NotBegunError{Err: f.wrong("does not exist: name the file that the worker writes (RETRY_WORKER_DATABASE_URL)")}
	case err != nil:
		return nil, f.wrong("cannot be read (%v)", smallfile.Cause(err))
	case info.Size() == 0:
		return nil, &sqlstore.NotBegunError{Err: f.wrong("is empty: the worker has not begun it yet")}
	}
	r, err := f.reader(forReading)
	if still := f.stamp(); err == nil && still.log == 0 {
		r.still = still
		err = r.reopen(frozen)
	}
	if err != nil {
		return nil, f.explain(err)
	}
	if err := r.inTransaction(ctx, func(tx sqlstore.Querier) error { return isJournal(ctx, tx) }); err != nil {
		return nil, errors.Join(f.unreadable(err), r.Close())
	}
	return r, nil
}

// isJournal fails where the tables are not as this binary reads them.
func isJournal(ctx context.Context, tx sqlstore.Querier) error {
	var application int64
	if err := tx.QueryRowContext(ctx, "SELECT application_id FROM pragma_application_id").Scan(&application); err != nil {
		return err
	}
	if application != applicationID {
		return errors.New("found no journal in it: name the file that the worker writes")
	}
	return known(ctx, tx)
}

func (f *file) reader(way url.Values) (*Reader, error) {
	r := &Reader{file: f}
	r.Reader = sqlstore.Reader{Dialect: &dialect, Snapshot: r.inTransaction, Free: r.free}
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

func (r *Reader) free() error {
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

// inTransaction runs do in a transaction that sees one state of the journal, and again where the file was taken for
// one that nobody writes, and somebody did.
func (r *Reader) inTransaction(ctx context.Context, do func(tx sqlstore.Querier) error) error {
	for {
		pool, still, err := r.current()
		if err == nil {
			err = sqlstore.InTransaction(ctx, pool, sql.LevelDefault, do)
		}
		if still == (stamp{}) || r.file.stamp() == still {
			return err
		}
	}
}

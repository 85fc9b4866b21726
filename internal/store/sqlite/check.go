package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"retry-worker/internal/smallfile"
)

// check refuses a file that is damaged or none of ours, before anything is opened for writing: SQLite itself
// would throw away what it cannot use. The caller holds the lock.
func (f *file) check(ctx context.Context) error {
	wal := f.size("-wal")
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Size() == 0:
		if wal > 0 {
			return f.damaged("it is empty, but its write-ahead log %s-wal is not", f.path)
		}
		return nil
	case err != nil:
		return f.wrong("cannot be read (%v): give the worker's user access to it", smallfile.Cause(err))
	}
	if err := f.checkHead(); err != nil {
		return err
	}
	way := frozen
	if wal > 0 || f.size("-journal") > 0 {
		way = forReading
	}
	_, err = os.Stat(f.path + "-shm")
	bare := errors.Is(err, fs.ErrNotExist)
	err = f.inspect(ctx, way)
	if err != nil && bare {
		_ = os.Remove(f.path + "-shm") // made while reading; it holds nothing
	}
	return err
}

// damaged is an error that says what was found, and what to do.
func (f *file) damaged(format string, args ...any) error {
	return f.wrong("is damaged (%s): restore the last backup, or move %s and the files beside it away to begin with an "+
		"empty journal; nothing was changed", fmt.Sprintf(format, args...), f.path)
}

// checkHead looks at the file's first bytes, which SQLite does not where the write-ahead log has them too.
func (f *file) checkHead() error {
	const magic = "SQLite format 3\x00"
	var head [len(magic)]byte
	err := f.head("", head[:])
	if err == nil && string(head[:]) != magic {
		err = f.damaged("its head is not that of a SQLite file")
	}
	return err
}

// head reads the first bytes of the file with this ending. No connection to it may be open in this process:
// closing the file gives up the locks that it has on it.
func (f *file) head(ending string, b []byte) error {
	opened, err := os.Open(f.path + ending)
	if err != nil {
		return f.wrong("%s cannot be read (%v): give the worker's user access to it", filepath.Base(f.path+ending),
			smallfile.Cause(err))
	}
	defer opened.Close()
	switch n, err := io.ReadFull(opened, b); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return f.damaged("%s has %d bytes, which is less than the head of a SQLite file", filepath.Base(f.path+ending), n)
	case err != nil:
		return f.damaged("the head of %s cannot be read: %v", filepath.Base(f.path+ending), smallfile.Cause(err))
	}
	return nil
}

// inspect reads whose file it is.
func (f *file) inspect(ctx context.Context, way url.Values) (err error) {
	pool, err := f.pool(way, 1)
	if err != nil {
		return f.explain(err)
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	var objects, application int64
	err = pool.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM sqlite_schema), application_id FROM "+
		"pragma_application_id").
		Scan(&objects, &application)
	if err != nil {
		return f.unreadable(err)
	}
	if objects > 0 && application != applicationID {
		return f.wrong("is another program's SQLite file (its application id is %#x, a journal's is %#x): name another file",
			application, applicationID)
	}
	return nil
}

// unreadable explains an error that reading the file met with.
func (f *file) unreadable(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return f.later("was not read to its end: %w", err)
	case !ok:
		return f.wrong("cannot be read: %w", err)
	case e.Code() == sqlite3.SQLITE_READONLY_ROLLBACK:
		return nil // its making was cut off; SQLite takes that back when it opens it
	case code(err) == sqlite3.SQLITE_NOTADB:
		return f.damaged("its head is not that of a SQLite file")
	case code(err) == sqlite3.SQLITE_CORRUPT, code(err) == sqlite3.SQLITE_IOERR, code(err) == sqlite3.SQLITE_ERROR:
		return f.damaged("%s", oneLine(err.Error()))
	case code(err) == sqlite3.SQLITE_CANTOPEN:
		return f.wrong("cannot be opened (%s): run this as the worker's user, and give it access to the file, those "+
			"beside it and its folder",
			oneLine(err.Error()))
	}
	return f.explain(err)
}

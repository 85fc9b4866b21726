// Package sqlite keeps the journal in a file: one process writes it, others may read it beside that one.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"
)

const (
	// busyTime is how long a lock is waited for that another program holds, such as a backup's.
	busyTime = 2 * time.Second
	// readers at the same time; others wait.
	readers = 4
	// pageCache of the writer in KiB: the upper levels of the indexes. More was measured to cost more (`make bench`), of
	// memory as of time.
	pageCache = 4 << 10
	// checkpointPages of the write-ahead log, after which it is copied into the database.
	checkpointPages = 1000
)

// DB is the journal in a file. It implements all ports of a journal's store; its methods are safe for
// concurrent use.
type DB struct {
	*Reader
	// turn is held by who uses writer, which is nil once the database is closed.
	turn   chan struct{}
	writer *connection
	lock   *lock
}

// Open opens the journal in the file at path for this process alone, makes it where there is none, and
// brings its schema up to date. Its errors are one line that names the file and says what to do. A file that
// is damaged, or none of ours, is left as it is.
func Open(ctx context.Context, path string) (*DB, error) {
	db, err := open(ctx, path, embedded)
	if err != nil {
		return nil, err
	}
	if err := db.nameCauses(ctx); err != nil {
		_ = db.Close() // the first error is the one that tells
		return nil, db.file.interrupted(ctx, db.file.explain(err))
	}
	return db, nil
}

// open is Open with the migrations given.
func open(ctx context.Context, path string, migrations fs.FS) (*DB, error) {
	f, err := locate(path)
	if err != nil {
		return nil, err
	}
	l, err := f.lock()
	if err != nil {
		return nil, err
	}
	db, err := openLocked(ctx, f, migrations)
	if err != nil {
		_ = l.release() // the first error is the one that tells
		return nil, f.interrupted(ctx, err)
	}
	db.lock = l
	return db, nil
}

func openLocked(ctx context.Context, f *file, migrations fs.FS) (*DB, error) {
	err := firstError(
		func() error { return f.check(ctx) },
		f.room,
		f.secure)
	if err != nil {
		return nil, err
	}
	if err := f.migrate(ctx, migrations); err != nil {
		return nil, f.explain(err)
	}
	writer, err := connect(ctx, f.dsn(forWriting))
	if err != nil {
		return nil, f.explain(err)
	}
	r, err := f.reader(forReading)
	if err != nil {
		_ = writer.close()
		return nil, f.explain(err)
	}
	db := &DB{Reader: r, turn: make(chan struct{}, 1), writer: writer}
	if err := db.Probe(ctx); err != nil {
		_ = db.Reader.Close() // the first error is the one that tells
		_ = writer.close()
		return nil, f.explain(err)
	}
	return db, nil
}

// Close ends the transaction that runs, copies the write-ahead log into the database and lets another
// process have it. Every call after it fails; closing again does nothing.
func (db *DB) Close() error {
	db.turn <- struct{}{}
	defer func() { <-db.turn }()
	if db.writer == nil {
		return nil
	}
	err := errors.Join(
		db.Reader.Close(), // first: who closes last copies the log
		db.writer.exec("PRAGMA wal_checkpoint(TRUNCATE)"),
		db.writer.close(),
		db.lock.release())
	db.writer = nil
	if err != nil {
		return failed("close "+db.file.path+"; what it holds is safe", errors.New(oneLine(err.Error())))
	}
	return nil
}

// The ways a database is connected to.
var (
	forWriting = url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTime.Milliseconds()),
		"journal_mode(WAL)", "synchronous(FULL)", "temp_store(MEMORY)", "foreign_keys(1)", "trusted_schema(0)",
		fmt.Sprintf("cache_size(-%d)", pageCache), fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages),
	}}
	forReading = url.Values{"mode": {"ro"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTime.Milliseconds()), "query_only(1)", "trusted_schema(0)",
	}}
	// frozen reads a file that nobody writes, and makes none beside it.
	frozen = url.Values{"mode": {"ro"}, "immutable": {"1"}, "_pragma": {"query_only(1)", "trusted_schema(0)"}}
)

// dsn is the driver's name for the file, opened in one of the ways.
func (f *file) dsn(way url.Values) string {
	u := url.URL{Scheme: "file", Path: f.path, RawQuery: way.Encode()}
	return u.String()
}

func (f *file) pool(way url.Values, connections int) (*sql.DB, error) {
	c, err := connector(f.dsn(way))
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(c)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	return pool, nil
}

// oneLine is text without line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

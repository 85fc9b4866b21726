// Package sqlite keeps the journal in a file. One process writes it, others may read it meanwhile.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	_ "modernc.org/sqlite" // the driver
	sqlite3 "modernc.org/sqlite/lib"

	"retry-worker/internal/journal"
	"retry-worker/internal/smallfile"
	"retry-worker/internal/store/sqlstore"
)

const (
	// busyTime is how long to wait for another program's lock, such as a backup's.
	busyTime = 2 * time.Second
	// readers is how many read at the same time.
	readers = 4
	// pageCache is the writer's cache in KiB: it holds the upper levels of the indexes.
	pageCache = 4 << 10
	// checkpointPages is how far the write-ahead log grows before it is copied into the database: more means fewer
	// pages written twice. At mostPages commits wait for the copy.
	checkpointPages = 4000
	mostPages       = 4 * checkpointPages
	// applicationID tells a journal from other programs' SQLite files: "RetW" in the file's header.
	applicationID = 0x52657457
)

var dialect = sqlstore.Dialect{
	Types: map[string]string{"INT": "INTEGER", "TEXT": "TEXT", "BLOB": "BLOB", "JSON": "TEXT",
		")STRICT;": ") STRICT;", ")KEYED;": ") STRICT, WITHOUT ROWID;"},
	Made:     "SELECT count(*) > 0 FROM sqlite_schema",
	Making:   fmt.Sprintf("PRAGMA application_id = %d", applicationID),
	Contains: "instr", Elements: "json_each(?) a", Begin: "BEGIN IMMEDIATE", Detached: true, Judge: judge,
}

// DB is a journal open for writing. Its methods are safe for concurrent use.
type DB struct {
	sqlstore.Store
	file *file
	held *os.File
	// opened are the database and its write-ahead log, by their endings; nil until they are there.
	opened map[string]os.FileInfo
	// turn is held while writer is used. writer is nil once the database is closed.
	turn   chan struct{}
	pool   *sql.DB
	writer *writer
	// grown is sent to after commits until the database is closed; copied is closed when copyLog has ended.
	grown, copied chan struct{}
}

// Open opens the journal in the file at path for this process alone, and creates it if there is none. Its errors are
// one line that names the file and says what to do. A damaged file or another program's is not changed.
func Open(ctx context.Context, path string) (*DB, error) {
	f, err := locate(path)
	if err == nil {
		err = f.check()
	}
	if err == nil {
		_, err = f.room()
	}
	if err != nil {
		return nil, err
	}
	held, err := f.lock()
	if err != nil {
		return nil, err
	}
	db := &DB{file: f, held: held, turn: make(chan struct{}, 1), grown: make(chan struct{}, 1), copied: make(chan struct{})}
	if db.pool, err = f.pool(forWriting, 2); err == nil {
		if err = db.begin(ctx); err != nil {
			_ = db.pool.Close() // the first error is the one that tells
		}
	}
	if err == nil {
		go db.copyLog()
		return db, nil
	}
	_ = unlock(held)
	if ended := ctx.Err(); ended != nil { // other errors follow from this
		return nil, f.later("was not opened to the end: %w", ended)
	}
	return nil, f.explain(err)
}

// begin creates the tables if there are none, and checks that they can be written.
func (db *DB) begin(ctx context.Context) error {
	conn, err := db.pool.Conn(ctx)
	if err != nil {
		return err
	}
	db.writer = &writer{conn, map[string]*sql.Stmt{}}
	r, err := db.file.reader(forReading)
	if err != nil {
		_ = db.writer.Close() // the first error is the one that tells
		return err
	}
	room := func() error { _, err := db.file.room(); return err }
	db.Store = sqlstore.Store{Reader: r.Reader, Acquire: db.acquire, Room: room}
	if err = db.Create(ctx, db.file.name()); err == nil {
		err = db.Probe(ctx)
	}
	if err == nil { // open the other connections: opened later, they may be to a file put in the place of this
		db.uncopied(ctx)
		err = db.Known(ctx, db.file.name())
	}
	if err == nil {
		db.opened, err = db.file.stat("", "-wal")
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, "DELETE FROM leases") // their holders have ended
	}
	if err != nil {
		_, _ = db.Reader.Close(), db.writer.Close() // the first error is the one that tells
	}
	return err
}

// acquire waits for the writer. Its error says so if the file was taken away, as SQLite would go on writing it.
func (db *DB) acquire(ctx context.Context) (sqlstore.Conn, func(bool), error) {
	select {
	case db.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("wait for the database: %w", ctx.Err())
	}
	if db.writer == nil {
		<-db.turn
		return nil, nil, errors.New("the database is closed")
	}
	if err := db.file.same(db.opened); err != nil {
		<-db.turn
		return nil, nil, err
	}
	return db.writer, func(ended bool) {
		if !ended { // fails if SQLite rolled back itself
			_, _ = db.writer.ExecContext(context.Background(), "ROLLBACK")
		}
		select {
		case db.grown <- struct{}{}:
		default:
		}
		<-db.turn
	}, nil
}

// copyLog copies the write-ahead log into the database when it has grown. It copies while others commit, as long as
// that halves what is left, then holds the turn to copy the rest, so that the log can start over. Failures are tried
// again after the next commit.
func (db *DB) copyLog() {
	defer close(db.copied)
	ctx := context.Background()
	for range db.grown {
		left := db.uncopied(ctx)
		if left < checkpointPages {
			continue
		}
		for was := 2 * left; left > 0 && left <= was/2; {
			_, _ = db.pool.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
			was, left = left, db.uncopied(ctx)
		}
		db.turn <- struct{}{}
		if db.writer != nil {
			_, _ = db.writer.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
		}
		<-db.turn
	}
}

// uncopied returns how many pages of the write-ahead log are not copied yet; 0 if that is unknown.
func (db *DB) uncopied(ctx context.Context) int {
	var busy, pages, copied int
	if db.pool.QueryRowContext(ctx, "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &pages, &copied) != nil {
		return 0
	}
	return pages - copied
}

// Close waits for the running transaction, copies the write-ahead log into the database and unlocks it. Later calls
// fail; closing again does nothing.
func (db *DB) Close() error {
	db.turn <- struct{}{}
	writer := db.writer
	if db.writer = nil; writer != nil {
		close(db.grown)
	}
	<-db.turn
	if <-db.copied; writer == nil {
		return nil
	}
	err := db.Reader.Close() // before the writer, which copies the log
	_, copied := writer.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
	err = errors.Join(err, copied, writer.Close(), db.pool.Close(), unlock(db.held))
	if err != nil {
		return dialect.Failed("close "+db.file.path+"; what it holds is safe", errors.New(oneLine(err.Error())), false)
	}
	return nil
}

// writer is a connection that keeps its prepared statements.
type writer struct {
	*sql.Conn
	prepared map[string]*sql.Stmt
}

// Close closes the statements, too: the pool does not, and SQLite keeps the file open for them.
func (w *writer) Close() (err error) {
	for _, s := range w.prepared {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, w.Conn.Close())
}

func (w *writer) prepare(ctx context.Context, query string) (s *sql.Stmt, err error) {
	if s = w.prepared[query]; s == nil {
		if s, err = w.PrepareContext(ctx, query); err == nil {
			w.prepared[query] = s
		}
	}
	return s, err
}

// QueryContext implements sqlstore.Querier.
func (w *writer) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := w.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

// ExecContext implements sqlstore.Conn.
func (w *writer) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := w.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

// The parameters of connections.
var (
	forWriting = url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTime.Milliseconds()),
		"journal_mode(WAL)", "synchronous(FULL)", "temp_store(MEMORY)", "foreign_keys(1)", "trusted_schema(0)",
		fmt.Sprintf("cache_size(-%d)", pageCache), fmt.Sprintf("wal_autocheckpoint(%d)", mostPages),
	}}
	forReading = url.Values{"mode": {"ro"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTime.Milliseconds()), "trusted_schema(0)",
	}}
	// frozen reads a file that nobody writes, without creating files beside it.
	frozen = url.Values{"mode": {"ro"}, "immutable": {"1"}, "_pragma": {"trusted_schema(0)"}}
)

func (f *file) pool(way url.Values, connections int) (*sql.DB, error) {
	u := url.URL{Scheme: "file", Path: f.path, RawQuery: way.Encode()}
	pool, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	return pool, nil
}

// oneLine returns text without line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// code returns SQLite's primary result code; 0 if err is not SQLite's.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// judge is the dialect's Judge. If the disk is full or the file cannot be written, a transaction's last page is missing
// and nothing was committed; after other errors of COMMIT the transaction may reappear after a crash.
func judge(err error, committing bool) *journal.StoreError {
	kind := journal.Unavailable
	switch code(err) {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_RANGE:
		kind = journal.Invalid
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY:
	case sqlite3.SQLITE_ERROR:
		if strings.Contains(err.Error(), "malformed JSON") { // a damaged record of a subject
			kind, err = journal.Invalid, fmt.Errorf("%w record: %w", journal.ErrUnreadable, err)
		}
	default:
		if committing {
			kind = journal.Ambiguous
		}
	}
	return &journal.StoreError{Kind: kind, Err: fmt.Errorf("%s%w", meaning(code(err)), err)}
}

// meaning returns what a result code means to an operator, to stand before SQLite's own message.
func meaning(code int) string {
	switch code {
	case sqlite3.SQLITE_FULL:
		return "no room is left on the disk (make some; the worker goes on by itself): "
	case sqlite3.SQLITE_READONLY:
		return "the database cannot be written (give the worker's user write access): "
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return "the database file is damaged (stop the worker and restore the last backup): "
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another program holds the database (close it): "
	case sqlite3.SQLITE_IOERR:
		return "the disk cannot be read or written (look at the disk, quotas and limits; the worker goes on by itself once " +
			"it does): "
	}
	return ""
}

// Reader reads the journal in a file while another process writes it. Its methods are safe for concurrent use.
type Reader struct {
	sqlstore.Reader
	file *file
	// still is the file's state if it is read as one that nobody writes; otherwise empty.
	still string
}

// OpenReader opens the journal in the file at path for reading. It creates and changes nothing. Its errors are one line
// that names the file.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	f, err := locate(path)
	if err != nil {
		return nil, err
	}
	switch info, err := os.Stat(f.path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &sqlstore.NotBegunError{
			Err: f.wrong("does not exist: name the file that the worker writes (RETRY_WORKER_DATABASE_URL)")}
	case err != nil:
		return nil, f.wrong("cannot be read (%v)", smallfile.Cause(err))
	case info.Size() == 0:
		return nil, &sqlstore.NotBegunError{Err: f.wrong("is empty: the worker has not begun it yet")}
	}
	way := forReading
	if f.size("-wal") == 0 { // nobody writes it
		way = frozen
	}
	r, err := f.reader(way)
	if err != nil {
		return nil, f.explain(err)
	}
	var application int64
	err = r.Pool.QueryRowContext(ctx, "SELECT application_id FROM pragma_application_id").Scan(&application)
	if err == nil && application != applicationID {
		err = errors.New("found no journal in it: name the file that the worker writes")
	}
	if err == nil {
		err = r.Known(ctx, f.name())
	}
	if err != nil {
		return nil, errors.Join(f.explain(err), r.Close())
	}
	return r, nil
}

func (f *file) reader(way url.Values) (*Reader, error) {
	pool, err := f.pool(way, readers)
	if err != nil {
		return nil, err
	}
	r := &Reader{Reader: sqlstore.NewReader(&dialect, pool), file: f}
	if snapshot := r.Snapshot; way.Has("immutable") {
		r.still = f.state()
		r.Snapshot = func(ctx context.Context, do func(tx sqlstore.Querier) error) error {
			return r.whole(snapshot(ctx, do))
		}
	}
	return r, nil
}

// whole returns err, or an error if a file that nobody wrote was written while it was read.
func (r *Reader) whole(err error) error {
	if r.still != "" && r.file.state() != r.still {
		return r.file.later("the worker began to write it while it was read: try again")
	}
	return err
}

// state returns a text that changes when the file is written: a writer begins by creating a write-ahead log.
func (f *file) state() string {
	info, err := os.Stat(f.path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), info.ModTime(), f.size("-wal"))
}

// Backup writes a copy of the journal as it stands into the file at path, which must be empty or absent. Other
// processes may write the journal meanwhile. After Backup returns nil the copy is durable, but its folder's entry may
// not be.
func (r *Reader) Backup(ctx context.Context, path string) error {
	path, err := filepath.Abs(path)
	if err == nil { // SQLite would take file:… for a URL
		_, err = r.Pool.ExecContext(ctx, "VACUUM INTO ?", path)
	}
	if err = r.whole(err); err != nil {
		return dialect.Failed("copy "+r.file.path+" to "+path, err, false)
	}
	return smallfile.Sync(path)
}

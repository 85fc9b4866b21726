package sqlite

import (
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"retry-worker/internal/journal"
)

// code returns SQLite's primary result code; 0 where err is none of SQLite's.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// judge is the dialect's Judge. Where the disk was full, or the file could not be written at all, the last page of a
// transaction is not there; otherwise a crash may still bring it back.
func judge(err error, committing bool) *journal.StoreError {
	kind := journal.Unavailable
	switch code(err) {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_RANGE:
		kind = journal.Invalid
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY:
	case sqlite3.SQLITE_ERROR:
		if strings.Contains(err.Error(), "malformed JSON") { // a record of a subject that was asked for
			kind, err = journal.Invalid, fmt.Errorf("%w record: %w", journal.ErrUnreadable, err)
		}
	default:
		if committing {
			kind = journal.Ambiguous
		}
	}
	return &journal.StoreError{Kind: kind, Err: fmt.Errorf("%s%w", meaning(code(err)), err)}
}

// meaning returns what a result code tells an operator, to be read before SQLite's own words.
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

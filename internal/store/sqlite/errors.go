package sqlite

import (
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"retry-worker/internal/journal"
)

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

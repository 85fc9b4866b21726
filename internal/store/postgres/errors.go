package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"retry-worker/internal/journal"
)

// Conditions by their SQLSTATE, and classes by its first two letters.
const (
	classData      = "22" // a value that does not fit its type, such as a NUL in a text
	classIntegrity = "23"
	classLimit     = "54" // such as too long for an index
	classAccount   = "28" // the user or host may not connect

	noDatabase  = "3D000"
	noSchema    = "3F000"
	noPrivilege = "42501"
)

// judge is the dialect's Judge.
func judge(err error, committing bool) *journal.StoreError {
	kind := journal.Unavailable
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && slices.Contains([]string{classData, classIntegrity, classLimit}, class(e)) {
		kind = journal.Invalid
	}
	if committing {
		kind = journal.Ambiguous
	}
	return &journal.StoreError{Kind: kind, Err: plain(err)}
}

func class(e *pgconn.PgError) string { return e.Code[:min(2, len(e.Code))] }

// plain returns err on one line, without values of rows, which a server's details and some messages contain. It unwraps
// only to a context's error or ErrNoHead.
func plain(err error) error {
	for _, ended := range [...]error{context.Canceled, context.DeadlineExceeded, journal.ErrNoHead} {
		if errors.Is(err, ended) {
			return ended
		}
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return errors.New(serverText(e))
	}
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}

// serverText returns the server's message on one line.
func serverText(e *pgconn.PgError) string {
	said := strings.Join(strings.Fields(e.Message), " ")
	if class(e) == classData { // the message may quote the value
		said = "a value that it does not take"
	}
	return fmt.Sprintf("PostgreSQL: %s (SQLSTATE %s)", said, e.Code)
}

func refuse(format string, a ...any) error {
	return &journal.StoreError{Kind: journal.Invalid, Err: fmt.Errorf(format, a...)}
}

// openError returns an error of Open: Invalid if trying again does not help, otherwise Unavailable.
func openError(doing string, err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		if advice := advice(e); advice != "" {
			err = refuse("%s: %s", serverText(e), advice)
		}
	}
	return dialect.Failed(doing, err, false)
}

// advice returns what to do about an error that does not pass by itself; empty for other errors.
func advice(e *pgconn.PgError) string {
	switch {
	case class(e) == classAccount:
		return "check the user and the password in the database's address, and the server's pg_hba.conf"
	case e.Code == noDatabase:
		return "create the database, or correct its name in the address"
	case e.Code == noPrivilege, e.Code == noSchema:
		return "make the user the database's owner; where the tables are another user's, GRANT SELECT ON ALL TABLES IN SCHEMA " +
			"public TO it"
	default:
		return ""
	}
}

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
	classData      = "22" // a value that its type does not take, NUL in a text among them
	classIntegrity = "23"
	classLimit     = "54" // too long for an index, say
	classAccount   = "28" // who connects, or from where

	noDatabase  = "3D000"
	noSchema    = "3F000"
	noPrivilege = "42501"
)

// storeError is err as a store's: in one line, with what was being done. committing tells that it came of COMMIT:
// unless the server said that it did not, what became of it is not known.
func storeError(doing string, err error, committing bool) error {
	if e, ok := errors.AsType[*journal.StoreError](err); ok {
		return &journal.StoreError{Kind: e.Kind, Err: fmt.Errorf("%s: %w", doing, e.Err)}
	}
	kind, e := journal.Unavailable, &pgconn.PgError{}
	switch said := errors.As(err, &e); {
	case committing:
		kind = journal.Ambiguous
	case said && isData(e):
		kind = journal.Invalid
	}
	return &journal.StoreError{Kind: kind, Err: fmt.Errorf("%s: %w", doing, plain(err))}
}

// isData reports whether what was to be saved is what is wrong.
func isData(e *pgconn.PgError) bool {
	return slices.Contains([]string{classData, classIntegrity, classLimit}, class(e))
}

func class(e *pgconn.PgError) string { return e.Code[:min(2, len(e.Code))] }

// plain is err without what must not be shown: the values of rows, which a server's details and some of its
// messages name, and line breaks. Of its cause only the context's is kept.
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

// serverText is what the server said.
func serverText(e *pgconn.PgError) string {
	said := strings.Join(strings.Fields(e.Message), " ")
	switch class(e) {
	case classData: // its message may quote the value
		said = "a value that it does not take"
	case classIntegrity, classLimit:
		said += where(e)
	}
	return fmt.Sprintf("PostgreSQL: %s (SQLSTATE %s)", said, e.Code)
}

func where(e *pgconn.PgError) string {
	if e.TableName == "" {
		return ""
	}
	return strings.TrimSuffix(", table "+e.TableName+", column "+e.ColumnName, ", column ")
}

// refusal is an error of Open that trying again does not help: what is wrong, and what to do.
type refusal struct{ text string }

func (r refusal) Error() string { return r.text }

func refuse(format string, a ...any) error { return refusal{fmt.Sprintf(format, a...)} }

// openError is an error of Open: Invalid where it is a refusal, Unavailable where it may pass.
func openError(doing string, err error) *journal.StoreError {
	if e, ok := errors.AsType[*journal.StoreError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		if advice := advice(e); advice != "" {
			err = refuse("%s: %s", serverText(e), advice)
		}
	}
	if r, ok := errors.AsType[refusal](err); ok {
		return &journal.StoreError{Kind: journal.Invalid, Err: fmt.Errorf("%s: %w", doing, r)}
	}
	return &journal.StoreError{Kind: journal.Unavailable, Err: fmt.Errorf("%s: %w", doing, plain(err))}
}

// makingError is an error of making the tables: what the server refuses to do once, it refuses again.
func makingError(err error) error {
	const doing = "make the journal's tables in PostgreSQL"
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.SeverityUnlocalized == "ERROR" && advice(e) == "" &&
		!passes(e) {
		err = refuse("%s: nothing was changed; report this", serverText(e))
	}
	return openError(doing, err)
}

// passes reports whether what a server refuses now, it may do later: connections, conflicts, resources, locks,
// an operator's doing, the system under it.
func passes(e *pgconn.PgError) bool {
	return slices.Contains([]string{"08", "40", "53", "55", "57", "58"}, class(e))
}

// advice on what to do about an error that does not pass by itself; empty for one that may.
func advice(e *pgconn.PgError) string {
	switch {
	case class(e) == classAccount:
		return "check the user and the password in the database's address, and the server's pg_hba.conf"
	case e.Code == noDatabase:
		return "create the database, or correct its name in the address"
	case e.Code == noPrivilege, e.Code == noSchema:
		return "make the user the database's owner, or GRANT CREATE, USAGE ON SCHEMA public TO it; where the tables are " +
			"another user's," +
			" GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO it (SELECT is enough to read)"
	default:
		return ""
	}
}

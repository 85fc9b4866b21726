package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"retry-worker/internal/journal"
	"retry-worker/internal/store/sqlstore"
)

const (
	// oldest is the oldest supported version of PostgreSQL.
	oldest = 15
	// lockID is the advisory lock under which tables are created: an arbitrary number.
	lockID int64 = 7_215_004_118_903
)

// server describes the server and database of a connection.
type server struct {
	number                        int // 150010 is 15.10
	version, encoding, user, size string
	standby, readOnly             bool
	// made reports whether the journal's tables exist, may whether the user may write them, or create them if there are
	// none.
	made, may bool
}

const asked = `SELECT current_setting('server_version_num')::int, current_setting('server_version'),
		current_setting('server_encoding'), current_user, pg_size_pretty(pg_database_size(current_database())),
		pg_is_in_recovery(), current_setting('default_transaction_read_only')::bool, made,
		CASE WHEN made THEN has_table_privilege('records', 'INSERT') AND has_table_privilege('subjects', 'UPDATE')
			ELSE coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) END
	FROM (SELECT ` + made + ` AS made) AS there`

const made = "EXISTS (SELECT FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname = 'journal_schema')"

// ask describes the server, and returns an error if it is not fit.
func (s *server) ask(ctx context.Context, c *pgx.Conn) error {
	err := c.QueryRow(ctx, asked).Scan(&s.number, &s.version, &s.encoding, &s.user, &s.size, &s.standby, &s.readOnly, &s.made, &s.may)
	if err != nil {
		return err
	}
	return s.fit()
}

func (s *server) fit() error {
	switch {
	case s.number < oldest*10000:
		return refuse("the server is PostgreSQL %s; %d or newer is needed: upgrade it, or name another in the address",
			s.version, oldest)
	case s.encoding != "UTF8":
		return refuse("the database's encoding is %s; UTF8 is needed: create it with ENCODING 'UTF8' TEMPLATE template0",
			s.encoding)
	}
	return nil
}

// errStandby is worth a new try: a standby can be promoted.
var errStandby = errors.New("the server is a standby, which may be promoted: name the primary in the address, or all of them " +
	"with target_session_attrs=read-write")

// writable returns an error if the worker cannot write to the server.
func (s *server) writable() error {
	switch {
	case s.standby:
		return errStandby
	case s.readOnly:
		return refuse("default_transaction_read_only is on for the user %s; name the primary in the address, or set it "+
			"off for this user and database", s.user)
	case !s.may && s.made:
		return refuse("the user %q may not write the journal's tables: let it be the worker's user that made them, or "+
			"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO %[1]q", s.user)
	case !s.may:
		return refuse("the user %q may not create tables: GRANT CREATE, USAGE ON SCHEMA public TO %[1]q", s.user)
	}
	return nil
}

// Inspect returns a sentence about the server, or an error like Open's if its user may not write the journal. It
// changes nothing.
func Inspect(ctx context.Context, url string) (string, error) {
	_, s, err := consult(ctx, "inspect the database", url, true)
	if err != nil {
		return "", err
	}
	number, _, _ := strings.Cut(s.version, " ")
	return fmt.Sprintf("PostgreSQL %s, user %s may write, the database has %s", number, s.user, s.size), nil
}

// consult connects to a database, and describes its server. It returns an error if the server is not fit or, if written,
// not writable, otherwise if there are no tables. doing begins its errors.
func consult(ctx context.Context, doing, url string, written bool) (config *pgx.ConnConfig, s server, err error) {
	defer func() {
		if err != nil {
			err = openError(doing, err)
		}
	}()
	if config, err = parse(url); err != nil {
		return nil, s, err
	}
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, s, err
	}
	defer c.Close(ctx)
	switch err = s.ask(ctx, c); {
	case err != nil:
	case written:
		err = s.writable()
	case !s.made:
		err = &journal.StoreError{Kind: journal.Invalid, Err: &sqlstore.NotBegunError{Err: errors.New("the database has no " +
			"journal in it yet; it is made when `retry-worker serve` first starts with this address")}}
	}
	return config, s, err
}

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

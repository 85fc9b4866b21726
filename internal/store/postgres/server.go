package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

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

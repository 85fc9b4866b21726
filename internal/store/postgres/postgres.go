// Package postgres keeps the journal in PostgreSQL 15 or newer. Any number of replicas share a database; their
// transactions take turns at the ledger's head.
package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"retry-worker/internal/journal"
	"retry-worker/internal/store/sqlstore"
)

// opening begins the errors of Open and OpenReader.
const opening = "open the journal in PostgreSQL"

var dialect = sqlstore.Dialect{
	Types: map[string]string{"INT": "bigint", "TEXT": `text COLLATE "C"`, "BLOB": "bytea", "JSON": "json",
		")STRICT;": ");", ")KEYED;": ");"},
	Made: "SELECT " + made, Making: fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", lockID), Numbered: true, Contains: "strpos",
	Elements: "json_array_elements(CAST(? AS json)) AS a(value)",
	Now:      "(extract(epoch FROM clock_timestamp()) * 1000)::bigint", Lock: " FOR UPDATE",
	Begin: "BEGIN ISOLATION LEVEL READ COMMITTED",
	Long: `SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN
		('lock_timeout', 'statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout')`,
	Judge: judge, Batch: batch,
}

// DB is a journal open for writing. Its methods are safe for concurrent use, and several processes may share a
// database. Broken connections are replaced.
type DB struct {
	sqlstore.Store
	writer *sql.DB
}

// Open opens the journal in the database at url, postgres://user:password@host:port/database. The database must exist;
// Open creates the tables, under a lock shared with other processes. The error holds a *journal.StoreError: Unavailable
// if trying again may help (the server cannot be reached, is starting, or is a standby), Invalid if a person must act.
// ctx bounds only Open itself.
func Open(ctx context.Context, url string) (*DB, error) {
	c, _, err := consult(ctx, opening, url, true)
	if err != nil {
		return nil, err
	}
	db := &DB{writer: writerPool(c)}
	db.Store = sqlstore.Store{Reader: sqlstore.NewReader(&dialect, pool(c, readerSessions)), Acquire: db.acquire}
	if err = db.Create(ctx, opening); err != nil {
		_ = db.Close() // the first error is the one that tells
		return nil, openError(err)
	}
	return db, nil
}

// OpenReader opens a journal for reading, also on a standby. It creates nothing. Its error is like Open's.
func OpenReader(ctx context.Context, url string) (*sqlstore.Reader, error) {
	c, _, err := consult(ctx, opening, url, false)
	if err != nil {
		return nil, err
	}
	r := sqlstore.NewReader(&dialect, pool(c, readerSessions))
	if err = r.Known(ctx, opening); err != nil {
		_ = r.Close() // the first error is the one that tells
		return nil, openError(err)
	}
	return &r, nil
}

// acquire returns a connection of the writer's pool.
func (d *DB) acquire(ctx context.Context) (sqlstore.Conn, func(bool), error) {
	conn, err := d.writer.Conn(ctx)
	if err != nil {
		return nil, nil, err
	}
	return conn, func(ended bool) {
		if !ended { // drop the connection, so that the server rolls back
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
		_ = conn.Close() // returns it to the pool unless it is bad
	}, nil
}

// Close closes the connections once they are idle.
func (d *DB) Close() error { return errors.Join(d.writer.Close(), d.Reader.Close()) }

// batch executes statements in one round trip.
func batch(ctx context.Context, conn sqlstore.Conn, all []sqlstore.Statement) error {
	return conn.(*sql.Conn).Raw(func(driver any) error {
		var b pgx.Batch
		for i := range all {
			b.Queue(all[i].Query, all[i].Args...)
		}
		return driver.(*stdlib.Conn).Conn().SendBatch(ctx, &b).Close()
	})
}

const (
	// connections is the size of a pool. The writer's: one commits, others probe, purge, take leases, or replace a
	// broken one.
	connections = 4
	connectTime = 2 * time.Second
)

// Settings of the sessions; those in the address win. The server's time-outs are below the 2.5 s that the journal gives
// a transaction, so that a process that hangs loses the head while others still wait for it.
var (
	allSessions = map[string]string{
		"application_name":        "retry-worker",
		"client_encoding":         "UTF8",
		"lock_timeout":            "2s",
		"plan_cache_mode":         "force_custom_plan", // keep no plan made while a table was empty
		"tcp_keepalives_idle":     "1s",
		"tcp_keepalives_interval": "1s",
		"tcp_keepalives_count":    "2",
		"tcp_user_timeout":        "2s", // a peer that acknowledges nothing is gone
	}
	writerSessions = map[string]string{"statement_timeout": "2200ms", "idle_in_transaction_session_timeout": "1500ms"}
	readerSessions = map[string]string{"statement_timeout": "10s", "idle_in_transaction_session_timeout": "10s"}
)

// parse parses the address. Its error does not quote it, as a password may be anywhere in a wrong one.
func parse(url string) (*pgx.ConnConfig, error) {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, refuse("its address is not of the form postgres://user:password@host:port/database?sslmode=require;" +
			" in a password, characters other than letters and digits must be percent-encoded")
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTime
	}
	// Our side notices a vanished server, too.
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: time.Second,
		Count: 3}}
	c.DialFunc = dialer.DialContext
	set(c, allSessions)
	return c, nil
}

func set(c *pgx.ConnConfig, settings map[string]string) {
	for name, value := range settings {
		if _, given := c.RuntimeParams[name]; !given {
			c.RuntimeParams[name] = value
		}
	}
}

// writerPool returns a pool for writing.
func writerPool(base *pgx.ConnConfig) *sql.DB {
	c := base.Copy()
	if c.ValidateConnect == nil && severalHosts(&c.Config) {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return pool(c, writerSessions, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, durabilityText)
		return err
	}))
}

// pool returns a pool, which connects when it is first used.
func pool(base *pgx.ConnConfig, sessions map[string]string, options ...stdlib.OptionOpenDB) *sql.DB {
	c := base.Copy()
	set(c, sessions)
	db := stdlib.OpenDB(*c, options...)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db
}

// durabilityText sets what depends on the server: commits wait for the disk and, from PostgreSQL 17 on, a transaction
// is bounded as a whole.
const durabilityText = `SELECT set_config(name, value, false)
	FROM (VALUES ('synchronous_commit', 'on', current_setting('synchronous_commit') = 'off'),
		('transaction_timeout', '2500ms', current_setting('server_version_num')::int >= 170000)) AS s (name, value, wanted)
	WHERE wanted`

func severalHosts(c *pgconn.Config) bool {
	return slices.ContainsFunc(c.Fallbacks,
		func(f *pgconn.FallbackConfig) bool { return f.Host != c.Host || f.Port != c.Port })
}

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
	err := c.QueryRow(ctx, asked).Scan(&s.number, &s.version, &s.encoding, &s.user, &s.size,
		&s.standby, &s.readOnly, &s.made, &s.may)
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

// consult connects to a database, and describes its server. It returns an error if the server is not fit or, if
// written, not writable, otherwise if there are no tables. doing begins its errors.
func consult(ctx context.Context, doing, url string, written bool) (config *pgx.ConnConfig, s server, err error) {
	defer func() {
		if err != nil {
			err = openError(dialect.Failed(doing, err, false))
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
	err = plain(err)
	kind := journal.Unavailable
	if e, ok := errors.AsType[*serverError](err); ok &&
		slices.Contains([]string{classData, classIntegrity, classLimit}, class(e)) {
		kind = journal.Invalid
	}
	if committing {
		kind = journal.Ambiguous
	}
	return &journal.StoreError{Kind: kind, Err: err}
}

func class(e *serverError) string { return e.Code[:min(2, len(e.Code))] }

// plain returns err on one line, without values of rows, which a server's details and some messages contain. It unwraps
// only to a context's error, ErrNoHead or a serverError.
func plain(err error) error {
	for _, ended := range [...]error{context.Canceled, context.DeadlineExceeded, journal.ErrNoHead} {
		if errors.Is(err, ended) {
			return ended
		}
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return (*serverError)(e)
	}
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}

// serverError is a server's error on one line.
type serverError pgconn.PgError

func (e *serverError) Error() string {
	said := strings.Join(strings.Fields(e.Message), " ")
	if class(e) == classData { // the message may quote the value
		said = "a value that it does not take"
	}
	return fmt.Sprintf("PostgreSQL: %s (SQLSTATE %s)", said, e.Code)
}

func refuse(format string, a ...any) error {
	return &journal.StoreError{Kind: journal.Invalid, Err: fmt.Errorf(format, a...)}
}

// openError returns err, which says what failed, as an error of Open: Invalid if trying again does not help, with what
// to do.
func openError(err error) error {
	if e, ok := errors.AsType[*serverError](err); ok {
		if advice := advice(e); advice != "" {
			return refuse("%w: %s", err, advice)
		}
	}
	return err
}

// advice returns what to do about an error that does not pass by itself; empty for other errors.
func advice(e *serverError) string {
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

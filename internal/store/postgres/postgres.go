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
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

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
		return nil, err
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
		return nil, err
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

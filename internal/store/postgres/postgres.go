// Package postgres keeps the journal in PostgreSQL 15 or newer. Any number of replicas share a database; their
// transactions take turns at the ledger's head.
package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"retry-worker/internal/store/sqlstore"
)

// opening begins the errors of Open and OpenReader.
const opening = "open the journal in PostgreSQL"

var dialect = sqlstore.Dialect{
	Types: map[string]string{"INT": "bigint", "TEXT": `text COLLATE "C"`, "BLOB": "bytea", "JSON": "json",
		")STRICT;": ");", ")KEYED;": ");"},
	Bytes: `'\x%x'`, Numbered: true, Contains: "strpos",
	Elements: "json_array_elements(CAST(? AS json)) AS a(value)",
	Now:      "(extract(epoch FROM clock_timestamp()) * 1000)::bigint", Lock: " FOR UPDATE",
	Begin: "BEGIN ISOLATION LEVEL READ COMMITTED",
	Long: `SELECT set_config(name, '0', true) FROM pg_settings
		WHERE name IN ('statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout')`,
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
	c, _, err := consult(ctx, opening, url, true, makeTables)
	if err != nil {
		return nil, err
	}
	db := &DB{writer: writerPool(c)}
	db.Store = sqlstore.Store{Reader: sqlstore.NewReader(&dialect, readerPool(c)), Acquire: db.acquire}
	err = db.writer.PingContext(ctx)
	if err == nil {
		err = db.ReadIdentityKey(ctx)
	}
	if err != nil {
		_ = db.Close()
		return nil, openError(opening, err)
	}
	return db, nil
}

// OpenReader opens a journal for reading, also on a standby. It creates nothing. Its error is like Open's.
func OpenReader(ctx context.Context, url string) (*sqlstore.Reader, error) {
	c, _, err := consult(ctx, opening, url, false, known)
	if err != nil {
		return nil, err
	}
	r := sqlstore.NewReader(&dialect, readerPool(c))
	return &r, nil
}

// acquire returns a connection of the writer's pool.
func (d *DB) acquire(ctx context.Context) (*sqlstore.Conn, func(bool), error) {
	conn, err := d.writer.Conn(ctx)
	if err != nil {
		return nil, nil, err
	}
	return &sqlstore.Conn{Conn: conn}, func(ended bool) {
		if !ended { // drop the connection, so that the server rolls back
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
		_ = conn.Close() // returns it to the pool unless it is bad
	}, nil
}

// Close closes the connections once they are idle.
func (d *DB) Close() error { return errors.Join(d.writer.Close(), d.Reader.Close()) }

// batch executes statements in one round trip.
func batch(ctx context.Context, conn *sql.Conn, all []sqlstore.Statement) error {
	return conn.Raw(func(raw any) error {
		c, ok := raw.(*stdlib.Conn)
		if !ok {
			return errors.New("the driver is not pgx's")
		}
		var b pgx.Batch
		for i := range all {
			b.Queue(all[i].Query, all[i].Args...)
		}
		return c.Conn().SendBatch(ctx, &b).Close()
	})
}

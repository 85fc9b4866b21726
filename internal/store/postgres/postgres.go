// Package postgres keeps the journal in PostgreSQL 15 or newer: one database for any number of replicas, whose
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

// opening is what Open and OpenReader do.
const opening = "open the journal in PostgreSQL"

var dialect = sqlstore.Dialect{
	Types: map[string]string{"INT": "bigint", "TEXT": `text COLLATE "C"`, "BLOB": "bytea", "JSON": "json",
		")STRICT;": ");", ")KEYED;": ");"},
	Bytes: `'\x%x'`, Numbered: true, Contains: "strpos",
	Elements: "json_array_elements(CAST(? AS json)) AS a(value)",
	Now:      "(extract(epoch FROM clock_timestamp()) * 1000)::bigint", Lock: " FOR UPDATE",
	Sizes: []int{1, 16, 256}, Begin: "BEGIN ISOLATION LEVEL READ COMMITTED",
	Long: `SELECT set_config(name, '0', true) FROM pg_settings
		WHERE name IN ('statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout')`,
	Judge: judge, Batch: batch,
}

// DB is a journal that is read and written. Its methods may be called concurrently, by several processes on
// one database too. Connections that break are replaced.
type DB struct {
	sqlstore.Store
	writer *sql.DB
}

// Open opens the journal in a database, given by its address: postgres://user:password@host:port/database.
// The database must exist; its tables are made under a lock that several processes share. The error holds a
// *journal.StoreError: Unavailable where trying again may help (the server cannot be reached, is starting, or is a
// standby), Invalid where a person must act. ctx bounds Open alone.
func Open(ctx context.Context, url string) (*DB, error) {
	c, err := connection(ctx, url, true)
	if err != nil {
		return nil, err
	}
	db := &DB{writer: writerPool(c)}
	db.Store = sqlstore.Store{Reader: reader(readerPool(c)), Acquire: db.acquire}
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

// OpenReader opens a journal to be read, on a standby too. It makes nothing. The error is as Open's.
func OpenReader(ctx context.Context, url string) (*sqlstore.Reader, error) {
	c, err := connection(ctx, url, false)
	if err != nil {
		return nil, err
	}
	r := reader(readerPool(c))
	return &r, nil
}

// reader sees one moment in each of its transactions, whatever is written meanwhile.
func reader(pool *sql.DB) sqlstore.Reader {
	return sqlstore.Reader{Dialect: &dialect, Free: pool.Close,
		Snapshot: func(ctx context.Context, do func(tx sqlstore.Querier) error) error {
			return sqlstore.InTransaction(ctx, pool, sql.LevelRepeatableRead, do)
		}}
}

// acquire returns a connection of the writer's.
func (d *DB) acquire(ctx context.Context) (*sqlstore.Conn, func(bool), error) {
	conn, err := d.writer.Conn(ctx)
	if err != nil {
		return nil, nil, err
	}
	return &sqlstore.Conn{Conn: conn}, func(ended bool) {
		if !ended { // then the server rolls back, and the connection may be broken
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
		_ = conn.Close() // it goes back to the pool, but for a bad one
	}, nil
}

// Close ends the connections, once they are idle.
func (d *DB) Close() error { return errors.Join(d.writer.Close(), d.Free()) }

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

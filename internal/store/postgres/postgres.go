// Package postgres keeps the journal in PostgreSQL 15 or newer: one database for any number of replicas, whose
// transactions take turns at the ledger's head.
package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"retry-worker/internal/journal"
)

// opening is what Open and OpenReader do.
const opening = "open the journal in PostgreSQL"

// DB is a journal that is read and written. Its methods may be called concurrently, by several processes on
// one database too. Connections that break are replaced.
type DB struct {
	*Reader
	writer *pgxpool.Pool
}

var _ journal.Store = (*DB)(nil)

// Open opens the journal in a database, given by its address: postgres://user:password@host:port/database.
// The database must exist; its tables are made, or brought up to date, under a lock that several processes
// share. The error holds a *journal.StoreError: Unavailable where trying again may help (the server cannot be
// reached, is starting, or is a standby), Invalid where a person must act. ctx bounds Open alone.
func Open(ctx context.Context, url string) (*DB, error) {
	c, err := parse(url)
	if err != nil {
		return nil, openError(opening, err)
	}
	if err := migrate(ctx, c.ConnConfig, shippedMigrations()); err != nil {
		return nil, openError(opening, err)
	}
	r, err := readerPool(ctx, c)
	if err != nil {
		return nil, openError(opening, err)
	}
	w, err := writerPool(ctx, c)
	if err != nil {
		r.Close()
		return nil, openError(opening, err)
	}
	db := &DB{Reader: &Reader{r}, writer: w}
	err = w.Ping(ctx) // the statements fit the tables
	if err == nil {
		err = db.nameCauses(ctx)
	}
	if err != nil {
		_ = db.Close()
		return nil, openError(opening, err)
	}
	return db, nil
}

// OpenReader opens a journal to be read, on a standby too. It migrates nothing. The error is as Open's.
func OpenReader(ctx context.Context, url string) (*Reader, error) {
	c, err := parse(url)
	if err != nil {
		return nil, openError(opening, err)
	}
	if err := checkReadable(ctx, c.ConnConfig); err != nil {
		return nil, openError(opening, err)
	}
	pool, err := readerPool(ctx, c)
	if err != nil {
		return nil, openError(opening, err)
	}
	return &Reader{pool}, nil
}

// Close ends the connections, once they are idle. It always returns nil.
func (d *DB) Close() error {
	d.writer.Close()
	return d.Reader.Close()
}

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"retry-worker/internal/journal"
)

const (
	begin    = "BEGIN IMMEDIATE"
	rollback = "ROLLBACK"
	commit   = "COMMIT"
	loadHead = "SELECT link, record, subject, hash, at FROM ledger_head WHERE one = 1"
	saveHead = "UPDATE ledger_head SET link = ?, record = ?, subject = ?, hash = ?, at = ? WHERE one = 1"
	// saveLink is asked with the link, and the earliest and the latest instant of its records.
	saveLink = `INSERT INTO ledger (number, at, first, digests, hash, latest, apart)
		SELECT ?1, ?2, ?3, ?4, ?5, latest, max(apart, latest - ?6, ?7 - latest)
		FROM (SELECT max(?2, coalesce(p.latest, ?2)) AS latest, coalesce(p.apart, 0) AS apart
			FROM (SELECT 1) LEFT JOIN ledger p ON p.number = ?1 - 1)`
	letGo   = "DELETE FROM outbox WHERE sequence = ?"
	saveRun = "INSERT INTO answered (first, last) VALUES (?, ?) ON CONFLICT (first) DO UPDATE SET last = max(last, excluded.last)"
	probe   = "UPDATE ledger_head SET probed_at = ? WHERE one = 1"
)

var errClosed = &journal.StoreError{Kind: journal.Unavailable, Err: errors.New("the database is closed")}

// Transact implements journal.Store. It waits for its turn until ctx ends; once it has it, ctx is looked at
// between statements only.
func (db *DB) Transact(ctx context.Context, lookups []journal.Lookup, decide func(journal.Head, []journal.History) *journal.Changes) error {
	return db.write(ctx, func(c *connection) (bool, error) {
		head, err := c.head()
		if err != nil {
			return false, failed("read the ledger's head", err)
		}
		histories, err := c.recall(lookups)
		if err != nil {
			return false, failed("read the subjects' histories", err)
		}
		changes := decide(head, histories)
		if changes == nil {
			return false, nil
		}
		return true, c.save(head, changes)
	})
}

// Probe implements journal.Store. It asks for the room of a batch as well: less would be enough for itself.
func (db *DB) Probe(ctx context.Context) error {
	if err := db.file.room(); err != nil {
		return err
	}
	return db.write(ctx, func(c *connection) (bool, error) {
		if err := c.exec(probe, time.Now().UnixMilli()); err != nil {
			return false, failed("write to try", err)
		}
		return true, nil
	})
}

// write runs do in a transaction of its own, which is committed where do says so.
func (db *DB) write(ctx context.Context, do func(*connection) (bool, error)) (err error) {
	select {
	case db.turn <- struct{}{}:
	case <-ctx.Done():
		return failed("wait for the database", ctx.Err())
	}
	defer func() { <-db.turn }()
	c := db.writer
	switch {
	case c == nil:
		return errClosed
	case ctx.Err() != nil:
		return failed("begin", ctx.Err())
	}
	if err := c.exec(begin); err != nil {
		return failed("begin", err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = c.exec(rollback) // SQLite has rolled back by itself after some errors
		}
	}()
	changed, err := do(c)
	switch {
	case err != nil || !changed:
		return err
	case ctx.Err() != nil:
		return failed("commit", ctx.Err())
	}
	if err := c.exec(commit); err != nil {
		return uncommitted(err)
	}
	ended = true
	return nil
}

func (c *connection) head() (journal.Head, error) {
	row, err := c.row(loadHead)
	if err == nil && row == nil {
		err = errNoHead
	}
	if err != nil {
		return journal.Head{}, err
	}
	return readHead(row)
}

// readHead reads the row of loadHead.
func readHead(row []driver.Value) (journal.Head, error) {
	var h journal.Head
	var at int64
	err := errors.Join(
		into(&h.Link, row[0]), into(&h.Record, row[1]), into(&h.Subject, row[2]), fill(h.Hash[:], row[3]), into(&at, row[4]))
	h.At = journal.FromMilli(at)
	return h, err
}

// into sets a field from a value.
func into[V any](field *V, v driver.Value) (err error) {
	*field, err = as[V](v)
	return err
}

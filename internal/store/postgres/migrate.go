package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"retry-worker/internal/journal"
	"retry-worker/internal/store/sqlstore"
)

// lockID is of the advisory lock that tables are made under: any number that nobody else has.
const lockID int64 = 7_215_004_118_903

// prepare checks the server, and that the tables are as this binary needs them. Where there are none it makes them, if
// the database is to be written.
func prepare(ctx context.Context, config *pgx.ConnConfig, written bool) error {
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	s, err := inspect(ctx, c)
	if err == nil && written {
		err = s.writable()
	}
	if err != nil {
		return err
	}
	switch made, err := look(ctx, c); {
	case err != nil:
		return err
	case made:
		return nil
	case !written:
		none := refuse("the database has no journal in it yet; it is made when `retry-worker serve` first starts with this " +
			"address")
		return &journal.StoreError{Kind: journal.Invalid,
			Err: &sqlstore.NotBegunError{Err: fmt.Errorf("%s: %w", opening, none)}}
	}
	if err := makeTables(ctx, c); err != nil {
		return makingError(err)
	}
	return nil
}

// makeTables makes the tables, while no other process does.
func makeTables(ctx context.Context, c *pgx.Conn) error {
	tx, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // once it is committed that does nothing
	if _, err := tx.Exec(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", lockID)); err != nil {
		return err
	}
	if made, err := look(ctx, c); err != nil || made {
		return err // another process was faster
	}
	for _, statement := range dialect.Schema() {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}

// look reports whether the tables are there, and refuses another version's.
func look(ctx context.Context, c *pgx.Conn) (made bool, err error) {
	err = c.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_class
		WHERE relnamespace = current_schema()::regnamespace AND relname = 'journal_schema')`).Scan(&made)
	if err != nil || !made {
		return false, err
	}
	var version int64
	if err = c.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM journal_schema").Scan(&version); err != nil {
		return false, err
	}
	if err = sqlstore.Known(version); err != nil {
		err = refuse("%s", err.Error())
	}
	return true, err
}

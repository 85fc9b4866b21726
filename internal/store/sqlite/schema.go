package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"retry-worker/internal/store/sqlstore"
)

// checkSchema holds the tables, indexes, triggers and views against those of a database that was just made.
func checkSchema(ctx context.Context, d *sqlstore.Dialect, tx sqlstore.Querier) (string, error) {
	fresh, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return "", err
	}
	defer fresh.Close()
	fresh.SetMaxOpenConns(1)
	for _, statement := range d.Schema() {
		if _, err := fresh.ExecContext(ctx, statement); err != nil {
			return "", err
		}
	}
	want, err := objects(ctx, fresh)
	if err != nil {
		return "", err
	}
	got, err := objects(ctx, tx)
	if err != nil {
		return "", err
	}
	return sqlstore.Differ(got, want), nil
}

// objects are the statements that made everything in a database, by what they made.
func objects(ctx context.Context, tx sqlstore.Querier) (map[string]string, error) {
	rows, err := tx.QueryContext(ctx,
		"SELECT type, name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT IN ('sqlite_sequence', 'sqlite_stat1', "+
			"'sqlite_stat4')")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var kind, name, text string
		if err := rows.Scan(&kind, &name, &text); err != nil {
			return nil, err
		}
		// As a restored table's is.
		all[fmt.Sprintf("%s %s", kind, name)] = oneLine(strings.ReplaceAll(text, strconv.Quote(name), name))
	}
	return all, rows.Err()
}

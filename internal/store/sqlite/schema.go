package sqlite

import (
	"context"
	"database/sql"

	"retry-worker/internal/store/sqlstore"
)

// described are the statements that made the tables, indexes, triggers and views, by what they made; names stand in
// them as in a restored database.
const described = `SELECT type || ' ' || name, replace(coalesce(sql, ''), '"' || name || '"', name)
	FROM sqlite_schema WHERE name NOT IN ('sqlite_sequence', 'sqlite_stat1', 'sqlite_stat4')`

// expected is what is described of a database that was just made.
func expected(ctx context.Context, statements []string) (map[string]string, error) {
	fresh, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer fresh.Close()
	fresh.SetMaxOpenConns(1)
	for _, statement := range statements {
		if _, err := fresh.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	return sqlstore.Describe(ctx, fresh, described)
}

package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

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
		return compatible(ctx, config, written)
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

// compatible refuses tables that are not this binary's.
func compatible(ctx context.Context, config *pgx.ConnConfig, written bool) error {
	pool := stdlib.OpenDB(*config)
	defer pool.Close()
	what, err := dialect.Incompatible(ctx, pool, written)
	if err == nil && what != "" {
		err = refuse("%s", what)
	}
	return err
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
	var ours, older bool
	err = c.QueryRow(ctx, `SELECT coalesce(bool_or(relname = 'journal_schema'), false), coalesce(bool_or(relname = 'schema_migrations'), false)
		FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname IN ('journal_schema', 'schema_migrations')`).Scan(&ours, &older)
	switch {
	case err != nil || !ours && !older:
		return false, err
	case !ours:
		return false, refuse(sqlstore.FirstEdition)
	}
	var version int64
	if err := c.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM journal_schema").Scan(&version); err != nil {
		return false, err
	}
	if err := sqlstore.Known(version); err != nil {
		return false, refuse("%s", err.Error())
	}
	return true, nil
}

// The names of everything that the tables consist of, and what it is.
const described = `SELECT 'column ' || c.relname || '.' || a.attname, format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
		|| CASE WHEN a.attidentity <> '' OR a.attgenerated <> '' OR a.atthasdef THEN ' generated' ELSE '' END
	FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
	WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
UNION ALL SELECT CASE c.relkind WHEN 'r' THEN 'table ' WHEN 'v' THEN 'view ' WHEN 'm' THEN 'view ' ELSE 'relation ' END || c.relname,
		CASE c.relpersistence WHEN 'p' THEN '' ELSE 'not kept by a crash' END || CASE WHEN c.relrowsecurity OR c.relforcerowsecurity THEN ' under row security' ELSE '' END
	FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
UNION ALL SELECT 'trigger ' || t.tgname || ' on ' || c.relname, ''
	FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal
UNION ALL SELECT 'constraint ' || t.conname || ' on ' || c.relname, pg_get_constraintdef(t.oid)
	FROM pg_constraint t JOIN pg_class c ON c.oid = t.conrelid WHERE c.relnamespace = current_schema()::regnamespace AND t.contype NOT IN ('p', 'u', 'n')
UNION ALL SELECT 'policy ' || policyname || ' on ' || tablename, '' FROM pg_policies WHERE schemaname = current_schema()
UNION ALL SELECT 'rule ' || r.rulename || ' on ' || r.tablename, '' FROM pg_rules r WHERE r.schemaname = current_schema()
UNION ALL SELECT 'index ' || i.indexname || ' on ' || i.tablename, '' FROM pg_indexes i WHERE i.schemaname = current_schema()`

// expected are the names of everything that the statements make, as described has them.
func expected(_ context.Context, statements []string) (map[string]string, error) {
	all := map[string]string{}
	for _, statement := range statements {
		words := strings.Fields(statement)
		switch {
		case words[0] == "CREATE" && words[1] == "INDEX":
			all["index "+words[2]+" on "+words[4]] = ""
		case words[0] == "CREATE":
			expectTable(all, words[2], statement)
		}
	}
	return all, nil
}

func expectTable(all map[string]string, table, statement string) {
	all["table "+table] = ""
	for line := range strings.SplitSeq(statement, "\n") {
		line, _, _ = strings.Cut(line, "--")
		words := strings.Fields(strings.TrimSuffix(strings.TrimSpace(line), ","))
		switch {
		case len(words) < 2 || words[0] == "CREATE":
		case words[0] == "PRIMARY":
			all["index "+table+"_pkey on "+table] = ""
		case words[0] == "UNIQUE":
			all["index "+table+"_id_policy_tenant_key on "+table] = ""
		default:
			all["column "+table+"."+words[0]] = columnType(words[1], line)
			if strings.Contains(line, "PRIMARY KEY") {
				all["index "+table+"_pkey on "+table] = ""
			}
			if _, check, is := strings.Cut(line, "CHECK ("); is {
				all["constraint "+table+"_"+words[0]+"_check on "+table] = "CHECK ((" + strings.TrimSuffix(strings.TrimSuffix(check, ","), ")") + "))"
			}
		}
	}
}

func columnType(is, line string) string {
	if strings.Contains(line, "NOT NULL") || strings.Contains(line, "PRIMARY KEY") {
		is += " NOT NULL"
	}
	return is
}

package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// rights asks whether the tables may be written, or made where there are none; and what the database takes up.
const rights = `SELECT current_user, current_setting('server_version'), pg_is_in_recovery(), to_regclass('records') IS NOT NULL,
		CASE WHEN to_regclass('records') IS NULL THEN coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)
			ELSE has_table_privilege('records', 'INSERT') AND has_table_privilege('subjects', 'UPDATE') END,
		pg_size_pretty(pg_database_size(current_database()))`

// Inspect says what the server is, and whether its user may write the journal. It changes nothing. The error is as Open's.
func Inspect(ctx context.Context, url string) (string, error) {
	c, err := parse(url)
	if err != nil {
		return "", openError(inspecting, err)
	}
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return "", openError(inspecting, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var user, version, size string
	var standby, made, may bool
	if err := conn.QueryRow(ctx, rights).Scan(&user, &version, &standby, &made, &may, &size); err != nil {
		return "", openError(inspecting, err)
	}
	switch {
	case standby:
		err = refuse("the server is a standby: name the primary, or all of them with target_session_attrs=read-write")
	case !may && made:
		err = refuse("the user %q may not write the journal's tables: let it be the worker's user that made them", user)
	case !may:
		err = refuse("the user %q may not create tables: GRANT CREATE, USAGE ON SCHEMA public TO %[1]q", user)
	}
	if err != nil {
		return "", openError(inspecting, err)
	}
	number, _, _ := strings.Cut(version, " ")
	return fmt.Sprintf("PostgreSQL %s, user %s may write, the database has %s", number, user, size), nil
}

const inspecting = "inspect the database"

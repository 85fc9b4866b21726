package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

//go:embed migrations/*.sql
var scripts embed.FS

// embedded are the migrations that this binary knows.
var embedded = sub(scripts, "migrations")

func sub(f fs.FS, dir string) fs.FS {
	s, err := fs.Sub(f, dir)
	if err != nil {
		panic(err) // cannot be: the folder is embedded above
	}
	return s
}

// ApplicationID tells a journal from other programs' SQLite files: "RetW" in the file's header.
const ApplicationID = 0x52657457

// migrate brings the schema up to date, unless it says that this binary is too old for it. The process holds
// the lock.
func (f *file) migrate(ctx context.Context, migrations fs.FS) (err error) {
	pool, err := f.pool(forWriting, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	provider, err := goose.NewProvider(goose.DialectCustom, pool, migrations, goose.WithStore(versions()),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	if err := mark(ctx, pool); err != nil {
		return err
	}
	if err := compatible(ctx, pool, provider); err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("bring the schema up to date: %w", err)
	}
	return nil
}

// versions keeps what was applied in schema_migrations.
func versions() database.Store {
	s, err := database.NewStore(goose.DialectSQLite3, "schema_migrations")
	if err != nil {
		panic(err) // cannot be: dialect and name are given above
	}
	return s
}

// mark writes the application's id into a new database.
func mark(ctx context.Context, pool *sql.DB) error {
	var objects int
	if err := pool.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&objects); err != nil || objects > 0 {
		return err
	}
	_, err := pool.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", ApplicationID))
	return err
}

// compatible tells whether the schema allows a binary that knows the provider's migrations.
func compatible(ctx context.Context, pool *sql.DB, provider *goose.Provider) error {
	var tables int
	err := pool.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'schema_compatibility'").Scan(&tables)
	if err != nil || tables == 0 {
		return err
	}
	var oldest, version, known int64
	err = pool.QueryRowContext(ctx, `SELECT min_compatible, (SELECT max(version_id) FROM schema_migrations)
		FROM schema_compatibility WHERE one = 1`).Scan(&oldest, &version)
	if err != nil {
		return err
	}
	for _, s := range provider.ListSources() {
		known = max(known, s.Version)
	}
	if oldest > known {
		return fmt.Errorf("its schema has version %d, which needs a worker that knows version %d; "+
			"this one knows up to %d: start a newer retry-worker", version, oldest, known)
	}
	return nil
}

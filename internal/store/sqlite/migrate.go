package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"

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

// applicationID tells a journal from other programs' SQLite files: "RetW" in the file's header.
const applicationID = 0x52657457

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
	known, err := latest(migrations)
	if err != nil {
		return err
	}
	if _, err := compatible(ctx, pool, known); err != nil {
		return err
	}
	if err := mark(ctx, pool); err != nil {
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
	_, err := pool.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID))
	return err
}

// latest is the highest version among the migrations.
func latest(migrations fs.FS) (int64, error) {
	names, err := fs.Glob(migrations, "*.sql")
	if err != nil || len(names) == 0 {
		return 0, errors.Join(errors.New("this binary has no migrations"), err)
	}
	return goose.NumericComponent(slices.Max(names))
}

// schema is what a database says of its tables; the zero value where it has none yet.
type schema struct{ version, oldest int64 }

// asker is a pool or a transaction.
type asker interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func schemaOf(ctx context.Context, db asker) (schema, error) {
	var s schema
	var tables int
	err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'schema_compatibility'").Scan(&tables)
	if err != nil || tables == 0 {
		return s, err
	}
	err = db.QueryRowContext(ctx, `SELECT min_compatible, (SELECT max(version_id) FROM schema_migrations)
		FROM schema_compatibility WHERE one = 1`).Scan(&s.oldest, &s.version)
	return s, err
}

// compatible tells whether the schema allows a binary that knows versions up to this one.
func compatible(ctx context.Context, db asker, known int64) (schema, error) {
	s, err := schemaOf(ctx, db)
	if err == nil && s.oldest > known {
		err = fmt.Errorf("its schema has version %d, which needs a retry-worker that knows version %d; this one knows up to %d: "+
			"start a newer one", s.version, s.oldest, known)
	}
	return s, err
}

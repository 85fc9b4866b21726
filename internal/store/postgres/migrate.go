package postgres

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

const (
	// versionsTable is where goose notes what was applied.
	versionsTable = "schema_migrations"
	// lockID is of the advisory lock that migrations are made under: any number that nobody else has.
	lockID int64 = 7_215_004_118_903
	// lockSeconds is how long another process's migrations are waited for; the context may end it before.
	lockSeconds = 300
)

// schema is what a database says of its tables; its zero value is one without any.
type schema struct {
	// version is the highest that was applied.
	version int64
	// compatible is the oldest version that a binary must know.
	compatible int64
}

// known is the highest version that this binary knows.
func known(files fs.FS) (int64, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil || len(names) == 0 {
		return 0, errors.Join(err, errors.New("the program has no migrations in it"))
	}
	return goose.NumericComponent(slices.Max(names))
}

// shippedMigrations are the program's own.
func shippedMigrations() fs.FS {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}

// migrate checks the server and brings the tables up to date.
func migrate(ctx context.Context, config *pgx.ConnConfig, files fs.FS) error {
	newest, err := known(files)
	if err != nil {
		return err
	}
	found, err := lookAt(ctx, config, (*server).writable)
	if err != nil {
		return err
	}
	if err := found.allows(newest); err != nil || found.version >= newest {
		return err
	}
	if err := apply(ctx, config, files); err != nil {
		return migrationError(err)
	}
	return nil
}

// checkReadable checks the server and that the tables are as this binary needs them.
func checkReadable(ctx context.Context, config *pgx.ConnConfig) error {
	newest, err := known(shippedMigrations())
	if err != nil {
		return err
	}
	found, err := lookAt(ctx, config, func(*server) error { return nil })
	switch {
	case err != nil:
		return err
	case found.version == 0:
		return refuse("the database has no journal in it yet; it is made when `retry-worker serve` first starts with this address")
	case found.version < newest:
		return refuse("the journal is of version %d, this program reads %d; it is brought up to date when `retry-worker serve` of this version starts",
			found.version, newest)
	}
	return found.allows(newest)
}

// lookAt asks a server for its schema, unless it is not fit or more says so.
func lookAt(ctx context.Context, config *pgx.ConnConfig, more func(*server) error) (schema, error) {
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return schema{}, err
	}
	defer c.Close(ctx)
	s, err := inspect(ctx, c)
	if err == nil {
		err = more(&s)
	}
	if err != nil {
		return schema{}, err
	}
	return readSchema(ctx, c)
}

func readSchema(ctx context.Context, c *pgx.Conn) (s schema, err error) {
	var exists bool
	err = c.QueryRow(ctx, "SELECT to_regclass('"+versionsTable+"') IS NOT NULL AND to_regclass('schema_compatibility') IS NOT NULL").Scan(&exists)
	if err != nil || !exists {
		return schema{}, err
	}
	err = c.QueryRow(ctx, "SELECT (SELECT coalesce(max(version_id), 0) FROM "+versionsTable+" WHERE is_applied),"+
		" (SELECT coalesce(max(min_compatible), 0) FROM schema_compatibility)").Scan(&s.version, &s.compatible)
	return s, err
}

// allows tells whether a binary that knows versions up to newest can work on it.
func (s schema) allows(newest int64) error {
	if s.compatible > newest {
		return refuse("the journal was brought to version %d by a newer program and needs one that knows version %d; this one knows %d: use the newer program",
			s.version, s.compatible, newest)
	}
	return nil
}

// apply runs the migrations that are missing, while no other process does.
func apply(ctx context.Context, config *pgx.ConnConfig, files fs.FS) error {
	db := stdlib.OpenDB(*config)
	defer db.Close()
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(lockID), lock.WithLockTimeout(1, lockSeconds))
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithTableName(versionsTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

package postgres

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

var databases atomic.Int64

// newName is one that no other database made by this process has.
func newName() string {
	return "test_" + strconv.Itoa(os.Getpid()) + "_" + strconv.FormatInt(databases.Add(1), 10)
}

// CreateDatabase makes an empty database and returns its URL, in some tens of milliseconds. An empty
// name is one of its own. An error where there is one of that name, or the server does not answer
// before ctx ends.
func (s *Server) CreateDatabase(ctx context.Context, name string) (url string, err error) {
	if name == "" {
		name = newName()
	}
	if err := s.execute(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" TEMPLATE template0"); err != nil {
		return "", fmt.Errorf("create the database %s: %w", name, err)
	}
	return s.URL(name), nil
}

// DropDatabase removes a database and ends the connections to it; one that is not there is no error.
func (s *Server) DropDatabase(ctx context.Context, name string) error {
	if err := s.execute(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop the database %s: %w", name, err)
	}
	return nil
}

// execute runs a statement in the maintenance database, on a connection of its own.
func (s *Server) execute(ctx context.Context, statement string) error {
	c, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	_, err = c.Exec(ctx, statement)
	return err
}

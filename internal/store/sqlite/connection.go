package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"modernc.org/sqlite"
)

// connection is the one that writes. It is the driver's own: a decision binds some fifty values, and database/sql
// would convert and check each once more. It is for one goroutine at a time.
type connection struct {
	raw        driver.Conn
	statements map[string]*statement
}

// connector makes every connection of this package.
func connector(dsn string) (driver.Connector, error) {
	packPages() // before the first
	return sqlite.NewConnector(dsn)
}

func connect(ctx context.Context, dsn string) (*connection, error) {
	c, err := connector(dsn)
	if err != nil {
		return nil, err
	}
	raw, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{raw: raw, statements: map[string]*statement{}}, nil
}

func (c *connection) close() error {
	var err error
	for _, s := range c.statements {
		err = errors.Join(err, s.raw.Close())
	}
	return errors.Join(err, c.raw.Close())
}

// prepared is the statement of a query, prepared the first time it is asked for.
func (c *connection) prepared(query string) (*statement, error) {
	if s := c.statements[query]; s != nil {
		return s, nil
	}
	raw, err := c.raw.Prepare(query)
	if err != nil {
		return nil, err
	}
	s, ok := raw.(prepared)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's %T lacks a method", raw), raw.Close())
	}
	c.statements[query] = &statement{raw: s}
	return c.statements[query], nil
}

// exec runs a query without rows.
func (c *connection) exec(query string, args ...driver.Value) error {
	s, err := c.prepared(query)
	if err != nil {
		return err
	}
	s.with(args...)
	return s.exec()
}

// row is the only row of a query; nil where there is none.
func (c *connection) row(query string, args ...driver.Value) ([]driver.Value, error) {
	s, err := c.prepared(query)
	if err != nil {
		return nil, err
	}
	s.with(args...)
	var row []driver.Value
	err = s.query(context.Background(), func(values []driver.Value) error {
		row = values
		return nil
	})
	return row, err
}

type prepared interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// statement is a prepared one with its arguments.
type statement struct {
	raw  prepared
	args []driver.NamedValue
}

// with sets the arguments.
func (s *statement) with(args ...driver.Value) {
	s.args = s.args[:0]
	for _, v := range args {
		s.add(v)
	}
}

func (s *statement) add(v driver.Value) {
	s.args = append(s.args, driver.NamedValue{Ordinal: len(s.args) + 1, Value: v})
}

// exec runs the statement. No context is handed down: the driver would watch each in a goroutine of its
// own, and nothing here waits longer than the busy time-out.
func (s *statement) exec() error {
	_, err := s.raw.ExecContext(context.Background(), s.args)
	clear(s.args)
	return err
}

// query calls each with the values of every row; they are the callee's until it returns.
func (s *statement) query(ctx context.Context, each func(values []driver.Value) error) (err error) {
	rows, err := s.raw.QueryContext(ctx, s.args)
	clear(s.args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(values); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := each(values); err != nil {
			return err
		}
	}
}

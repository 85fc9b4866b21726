package sqlite

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"

	"retry-worker/internal/journal"
)

// column ties a column to a field of the row type T, in both directions.
type column[T any] struct {
	name string
	get  func(row *T) driver.Value
	set  func(row *T, v driver.Value) error
	// merge is what the column becomes where the row is there; empty for the new value.
	merge string
}

// table is a table and all of its columns that this binary knows.
type table[T any] struct {
	name    string
	columns []column[T]
	// key is how many of the first columns tell a row apart; upserts whether a row that is there is changed.
	key     int
	upserts bool
	// one and many are the statements that save one row, and together rows.
	one, many string
}

// define completes a table.
func define[T any](t table[T]) *table[T] {
	t.one, t.many = t.insert(1), t.insert(together)
	return &t
}

// names of the columns, each behind prefix.
func (t *table[T]) names(prefix string) string {
	names := make([]string, len(t.columns))
	for i := range t.columns {
		names[i] = prefix + t.columns[i].name
	}
	return strings.Join(names, ", ")
}

// insert is the statement that saves so many rows.
func (t *table[T]) insert(rows int) string {
	row := "(?" + strings.Repeat(", ?", len(t.columns)-1) + ")"
	q := "INSERT INTO " + t.name + " (" + t.names("") + ") VALUES " + row + strings.Repeat(", "+row, rows-1)
	if !t.upserts {
		return q
	}
	sets := make([]string, 0, len(t.columns))
	for i := t.key; i < len(t.columns); i++ {
		sets = append(sets, t.columns[i].name+" = "+cmp.Or(t.columns[i].merge, "excluded."+t.columns[i].name))
	}
	keys := make([]string, t.key)
	for i := range keys {
		keys[i] = t.columns[i].name
	}
	return q + " ON CONFLICT (" + strings.Join(keys, ", ") + ") DO UPDATE SET " + strings.Join(sets, ", ")
}

// summed is a column to which the new value is added.
func summed[T any](c column[T]) column[T] { return c.merged(c.name + " + excluded." + c.name) }

// least and greatest are columns of which the smaller or the greater value stays.
func least[T any](c column[T]) column[T] {
	return c.merged("min(" + c.name + ", excluded." + c.name + ")")
}

func greatest[T any](c column[T]) column[T] {
	return c.merged("max(" + c.name + ", excluded." + c.name + ")")
}

// kept is a column that stays as it is.
func kept[T any](c column[T]) column[T] { return c.merged(c.name) }

func (c column[T]) merged(as string) column[T] {
	c.merge = as
	return c
}

// read fills row from the values of all columns in order.
func (t *table[T]) read(row *T, values []driver.Value) error {
	for i := range t.columns {
		if err := t.columns[i].set(row, values[i]); err != nil {
			return fmt.Errorf("column %s of %s: %w", t.columns[i].name, t.name, err)
		}
	}
	return nil
}

// as is v, of the type that SQLite gives for the column.
func as[V any](v driver.Value) (V, error) {
	got, ok := v.(V)
	if !ok {
		return got, fmt.Errorf("found %T, expected %T", v, got)
	}
	return got, nil
}

func number[T any](name string, field func(*T) *int64) column[T] {
	return column[T]{name: name,
		get: func(row *T) driver.Value { return *field(row) },
		set: func(row *T, v driver.Value) (err error) { *field(row), err = as[int64](v); return err }}
}

func text[T any, S ~string](name string, field func(*T) *S) column[T] {
	return column[T]{name: name,
		get: func(row *T) driver.Value { return string(*field(row)) },
		set: func(row *T, v driver.Value) error {
			s, err := as[string](v)
			*field(row) = S(s)
			return err
		}}
}

// instant is a time in milliseconds, 0 for none.
func instant[T any](name string, field func(*T) *time.Time) column[T] {
	return column[T]{name: name,
		get: func(row *T) driver.Value { return journal.Milli(*field(row)) },
		set: func(row *T, v driver.Value) error {
			ms, err := as[int64](v)
			*field(row) = journal.FromMilli(ms)
			return err
		}}
}

// span is a duration in whole units.
func span[T any](name string, unit time.Duration, field func(*T) *time.Duration) column[T] {
	return column[T]{name: name,
		get: func(row *T) driver.Value { return int64(*field(row) / unit) },
		set: func(row *T, v driver.Value) error {
			n, err := as[int64](v)
			*field(row) = time.Duration(n) * unit
			return err
		}}
}

func truth[T any](name string, field func(*T) *bool) column[T] {
	return column[T]{name: name,
		get: func(row *T) driver.Value {
			if *field(row) {
				return int64(1)
			}
			return int64(0)
		},
		set: func(row *T, v driver.Value) error {
			n, err := as[int64](v)
			*field(row) = n != 0
			return err
		}}
}

func fraction[T any](name string, field func(*T) *float64) column[T] {
	return column[T]{name: name,
		get: func(row *T) driver.Value { return *field(row) },
		set: func(row *T, v driver.Value) (err error) { *field(row), err = as[float64](v); return err }}
}

// octets is a fixed number of bytes.
func octets[T any](name string, field func(*T) []byte) column[T] {
	return column[T]{name: name,
		get: func(row *T) driver.Value { return field(row) },
		set: func(row *T, v driver.Value) error { return fill(field(row), v) }}
}

// fill copies bytes of just that number.
func fill(to []byte, v driver.Value) error {
	b, err := as[[]byte](v)
	if err == nil && copy(to, b) != len(b) || len(b) != len(to) {
		return fmt.Errorf("found %d bytes, expected %d", len(b), len(to))
	}
	return err
}

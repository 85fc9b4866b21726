package sqlstore

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"retry-worker/internal/journal"
)

// where is a WHERE clause: conditions that must all hold, and their arguments.
type where struct {
	conditions []string
	args       []any
}

func (w *where) and(condition string, args ...any) {
	w.conditions, w.args = append(w.conditions, condition), append(w.args, args...)
}

// is adds the condition that column = value, unless value is empty.
func (w *where) is(column, value string) {
	if value != "" {
		w.and(column+" = ?", value)
	}
}

// at adds a condition on an instant, unless that is zero.
func (w *where) at(condition string, t time.Time) {
	if !t.IsZero() {
		w.and(condition, journal.CeilMilli(t))
	}
}

// oneOf adds the condition that a column has one of the values. There must be at least one.
func oneOf[T ~string | ~int64](w *where, column string, values []T) {
	w.and(column + " IN (?" + strings.Repeat(", ?", len(values)-1) + ")")
	for _, v := range values {
		w.args = append(w.args, v)
	}
}

// String returns the clause; empty if there are no conditions.
func (w *where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

// asJSON scans a column of JSON.
type asJSON struct{ to any }

// Scan implements sql.Scanner.
func (j asJSON) Scan(from any) error {
	text, is := from.(string)
	if b, raw := from.([]byte); raw {
		text, is = string(b), true
	}
	if !is {
		return fmt.Errorf("%w row: it is %T, expected a text", journal.ErrUnreadable, from)
	}
	if err := json.Unmarshal([]byte(text), j.to); err != nil {
		return fmt.Errorf("%w row: %w", journal.ErrUnreadable, err)
	}
	return nil
}

// milli scans an instant in milliseconds.
type milli struct{ at *time.Time }

// Scan implements sql.Scanner.
func (m milli) Scan(from any) error {
	n, is := from.(int64)
	if !is {
		return fmt.Errorf("an instant is %T, expected milliseconds", from)
	}
	*m.at = journal.FromMilli(n)
	return nil
}

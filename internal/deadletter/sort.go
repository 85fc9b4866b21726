package deadletter

import (
	"cmp"

	"retry-worker/internal/journal"
)

// The orders of a list of dead letters, which journal.DeadLetterFilter names by Sort. What has no deadline comes last.
const (
	Newest     = ""         // the newest first
	ByAge      = "age"      // what waits longest first
	ByAmount   = "amount"   // the largest amount first, then what waits longest
	ByDeadline = "deadline" // the nearest deadline first, then the larger amount, then what waits longest
)

// Sorts lists every order that has a name.
func Sorts() []string { return []string{ByDeadline, ByAmount, ByAge} }

// Key is a column of dead letters that a list is sorted by.
type Key struct {
	Column     string
	Descending bool
}

// Keys are the columns of an order, the last of which tells all apart.
func Keys(sort string) []Key {
	deadline, cents, record := Key{Column: "deadline"}, Key{"cents", true}, Key{Column: "record"}
	switch sort {
	case ByDeadline:
		return []Key{deadline, cents, record}
	case ByAmount:
		return []Key{cents, record}
	case ByAge:
		return []Key{record}
	default:
		return []Key{{"record", true}}
	}
}

// Of returns what the column holds.
func (k Key) Of(p *journal.Place) int64 {
	switch k.Column {
	case "deadline":
		return p.Deadline
	case "cents":
		return p.Cents
	default:
		return p.Record
	}
}

// Compare compares two places in an order.
func Compare(sort string, a, b *journal.Place) int {
	for _, k := range Keys(sort) {
		c := cmp.Compare(k.Of(a), k.Of(b))
		if k.Descending {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// Cursor goes on behind a dead letter at that place. It is of this filter alone.
func (p *Query) Cursor(at journal.Place) string {
	return newCursor(p.list("dead letters"), at.Deadline, at.Cents, at.Record)
}

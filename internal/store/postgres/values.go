package postgres

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"retry-worker/internal/journal"
)

// values reads a row's columns, in PostgreSQL's binary format. A null reads as the zero value.
type values struct {
	raw [][]byte
	at  int // the column to read next
	err error
}

// next is the next column where it has the width, nil where it is null.
func (v *values) next(column string, width int) []byte {
	if v.at >= len(v.raw) {
		v.err = fmt.Errorf("the column %s was not sent", column)
		return nil
	}
	b := v.raw[v.at]
	v.at++
	if b != nil && len(b) != width {
		v.err = fmt.Errorf("the column %s has %d bytes, %d were expected", column, len(b), width)
		return nil
	}
	return b
}

func (v *values) eight(column string) uint64 {
	b := v.next(column, 8)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

func (v *values) integer(column string) (n int64) {
	v.number(column, &n)
	return n
}

func (v *values) number(column string, n *int64)      { *n = int64(v.eight(column)) }
func (v *values) instant(column string, t *time.Time) { *t = journal.FromMilli(int64(v.eight(column))) }
func (v *values) ratio(column string, r *float64)     { *r = math.Float64frombits(v.eight(column)) }
func (v *values) duration(column string, d *time.Duration, unit time.Duration) {
	*d = time.Duration(v.eight(column)) * unit
}

func (v *values) truth(column string, t *bool) {
	b := v.next(column, 1)
	*t = b != nil && b[0] != 0
}

func (v *values) text(column string, s *string) {
	if v.at < len(v.raw) {
		*s = string(v.next(column, len(v.raw[v.at])))
		return
	}
	v.next(column, 0)
}

func (v *values) fixed(column string, b []byte) { copy(b, v.next(column, len(b))) }

// null tells whether the next column is; then it passes over n of them.
func (v *values) null(n int) bool {
	if v.at < len(v.raw) && v.raw[v.at] != nil {
		return false
	}
	v.at += n
	return true
}

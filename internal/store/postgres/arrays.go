package postgres

import (
	"encoding/binary"
	"math"
	"time"

	"retry-worker/internal/journal"
)

// arrays writes rows into one array per column, in PostgreSQL's binary format. The driver's own arrays take
// several times as long (BenchmarkArrays), and most of a decision's time in this process is spent on them.
type arrays struct {
	columns [][]byte
	at      int // the column to write next
	rows    int
}

// Sizes of an array's head: dimensions, a flag for nulls, the elements' type, then length and lower bound.
const (
	headBytes = 20
	lengthAt  = 12
)

// begin clears the arrays for columns of these kinds; their memory is used again.
func (a *arrays) begin(of []kind) {
	for len(a.columns) < len(of) {
		a.columns = append(a.columns, nil)
	}
	for i, k := range of {
		head := [headBytes]byte{3: 1, 19: 1} // one dimension, counted from 1
		binary.BigEndian.PutUint32(head[8:], kinds[k].oid)
		a.columns[i] = append(a.columns[i][:0], head[:]...)
	}
	a.at, a.rows = len(of), 0
}

// row begins the next row.
func (a *arrays) row() { a.at, a.rows = 0, a.rows+1 }

// arguments of the statement; good until the next begin. There must be a row.
func (a *arrays) arguments() [][]byte {
	all := a.columns[:a.at]
	for i := range all {
		binary.BigEndian.PutUint32(all[i][lengthAt:], uint32(a.rows))
	}
	return all
}

func (a *arrays) eight(v uint64) {
	c := &a.columns[a.at]
	a.at++
	*c = binary.BigEndian.AppendUint64(append(*c, 0, 0, 0, 8), v)
}

func (a *arrays) number(_ string, v *int64)      { a.eight(uint64(*v)) }
func (a *arrays) instant(_ string, v *time.Time) { a.eight(uint64(journal.Milli(*v))) }
func (a *arrays) ratio(_ string, v *float64)     { a.eight(math.Float64bits(*v)) }
func (a *arrays) duration(_ string, v *time.Duration, unit time.Duration) {
	a.eight(uint64(*v / unit))
}

func (a *arrays) truth(_ string, v *bool) {
	c := &a.columns[a.at]
	a.at++
	*c = append(*c, 0, 0, 0, 1, asByte(*v))
}

func (a *arrays) text(_ string, v *string) {
	c := &a.columns[a.at]
	a.at++
	*c = append(binary.BigEndian.AppendUint32(*c, uint32(len(*v))), *v...)
}

func (a *arrays) fixed(_ string, v []byte) {
	c := &a.columns[a.at]
	a.at++
	*c = append(binary.BigEndian.AppendUint32(*c, uint32(len(v))), v...)
}

func asByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// scalar is one number as an argument.
func scalar(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

// numbers are one array as an argument; good until the arrays are used again. There must be one.
func numbers(a *arrays, all []int64) []byte {
	a.begin([]kind{kindNumber})
	for i := range all {
		a.row()
		a.number("", &all[i])
	}
	return a.arguments()[0]
}

// texts are one array as an argument; good until the arrays are used again. There must be one.
func texts(a *arrays, all []string) []byte {
	a.begin([]kind{kindText})
	for i := range all {
		a.row()
		a.text("", &all[i])
	}
	return a.arguments()[0]
}

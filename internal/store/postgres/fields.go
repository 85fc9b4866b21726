package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fields is what a table's columns are shown to, one after the other and always in the same order. So the
// columns of a table stand in one place, whether they are named, written or read.
type fields interface {
	number(column string, v *int64)
	// instant in milliseconds, 0 for none.
	instant(column string, v *time.Time)
	// duration in whole units.
	duration(column string, v *time.Duration, unit time.Duration)
	ratio(column string, v *float64)
	truth(column string, v *bool)
	text(column string, v *string)
	// fixed is bytes of a length that is known beforehand.
	fixed(column string, v []byte)
}

// kind of a column.
type kind int

const (
	kindNumber kind = iota
	kindRatio
	kindTruth
	kindText
	kindBytes
)

// kinds' names and the numbers of their types, which PostgreSQL never changes.
var kinds = [...]struct {
	name string
	oid  uint32
}{
	kindNumber: {"bigint", 20},
	kindRatio:  {"double precision", 701},
	kindTruth:  {"boolean", 16},
	kindText:   {"text", 25},
	kindBytes:  {"bytea", 17},
}

// table is a table's columns, and how a row's fields are shown.
type table[T any] struct {
	name  string
	names []string
	kinds []kind
	visit func(fields, *T)
	// empty is a row to be read into.
	empty func() T
}

// tableOf asks an empty row for its columns.
func tableOf[T any](name string, visit func(fields, *T), empty func() T) *table[T] {
	l, row := list{}, empty()
	visit(&l, &row)
	return &table[T]{name: name, names: l.names, kinds: l.kinds, visit: visit, empty: empty}
}

// zero is an empty row of a type that needs nothing more.
func zero[T any]() (row T) { return row }

// columns of the table, as they are asked for under an alias.
func (t *table[T]) columns(alias string) string {
	return alias + "." + strings.Join(t.names, ", "+alias+".")
}

// list of the table's columns.
func (t *table[T]) list() string { return strings.Join(t.names, ", ") }

// insert is the statement that saves rows given as one array per column.
func (t *table[T]) insert(conflict string) string {
	names := t.list()
	return "INSERT INTO " + t.name + " (" + names + ") SELECT " + names + " FROM " + unnest(t.kinds) + " AS row (" + names + ") " + conflict
}

// replace is insert, or update where there is a row with the same key, of which the columns kept stay as they are.
func (t *table[T]) replace(key string, kept ...string) string {
	set := make([]string, 0, len(t.names))
	for _, name := range t.names {
		if !slices.Contains(kept, name) {
			set = append(set, name+" = excluded."+name)
		}
	}
	return t.insert("ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(set, ", "))
}

// merge is the statement that merges rows into those that are there, and those with one key into one: the first
// keys columns tell them apart, sums says which of the others are added up (sum) or compared (min, max); what it
// does not name stays as it is.
func (t *table[T]) merge(keys int, sums map[string]string) string {
	chosen, set := slices.Clone(t.names), []string(nil)
	for i := keys; i < len(t.names); i++ {
		name := t.names[i]
		how := sums[name]
		chosen[i] = cmp.Or(how, "min") + "(" + name + ")::" + kinds[t.kinds[i]].name
		if how != "" {
			set = append(set, name+" = "+fmt.Sprintf(mergers[how], t.name+"."+name, "excluded."+name))
		}
	}
	key := strings.Join(t.names[:keys], ", ")
	return "INSERT INTO " + t.name + " (" + t.list() + ") SELECT " + strings.Join(chosen, ", ") + " FROM " + unnest(t.kinds) +
		" AS row (" + t.list() + ") GROUP BY " + key + " ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(set, ", ")
}

// mergers of an old value and a new one.
var mergers = map[string]string{"sum": "%s + %s", "min": "least(%s, %s)", "max": "greatest(%s, %s)"}

// unnest makes rows of the statement's arguments.
func unnest(of []kind) string {
	arrays := make([]string, len(of))
	for i, k := range of {
		arrays[i] = "$" + strconv.Itoa(i+1) + "::" + kinds[k].name + "[]"
	}
	return "unnest(" + strings.Join(arrays, ", ") + ")"
}

// list gathers a table's columns.
type list struct {
	names []string
	kinds []kind
}

func (l *list) add(column string, k kind) {
	l.names, l.kinds = append(l.names, column), append(l.kinds, k)
}

func (l *list) number(column string, _ *int64)      { l.add(column, kindNumber) }
func (l *list) instant(column string, _ *time.Time) { l.add(column, kindNumber) }
func (l *list) ratio(column string, _ *float64)     { l.add(column, kindRatio) }
func (l *list) truth(column string, _ *bool)        { l.add(column, kindTruth) }
func (l *list) text(column string, _ *string)       { l.add(column, kindText) }
func (l *list) fixed(column string, _ []byte)       { l.add(column, kindBytes) }
func (l *list) duration(column string, _ *time.Duration, _ time.Duration) {
	l.add(column, kindNumber)
}

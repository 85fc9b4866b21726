package console

import (
	"slices"
	"strings"
)

const columnsCookie = "columns"

// columns of the list that a reader may leave out, in their order, each with the key of its name.
var columns = []struct{ name, key string }{
	{"context", "list.column.context"}, {"team", "col.who_acts"}, {"amount", "col.amount"},
	{"deadline", "col.deadline"}, {"age", "col.age"}, {"process", "col.process"},
}

// columns that the reader chose, now (?columns=, once for each and once for none) or before; all where he did not.
func (v *visit) columns() (all []option) {
	chosen, known := v.r.URL.Query()[columnsCookie]
	if known {
		chosen = slices.DeleteFunc(chosen, func(name string) bool { return name == "" || strings.ContainsFunc(name, notLetter) })
		v.keep(columnsCookie, strings.Join(chosen, "."), false)
	} else if c, err := v.r.Cookie(columnsCookie); err == nil {
		chosen, known = strings.Split(c.Value, "."), true
	}
	for _, c := range columns {
		all = append(all, option{c.name, v.T(c.key), !known || slices.Contains(chosen, c.name)})
	}
	return all
}

func notLetter(r rune) bool { return r < 'a' || r > 'z' }

// Shows reports whether the reader wants to see a column.
func (d *listData) Shows(column string) bool {
	return slices.ContainsFunc(d.Columns, func(o option) bool { return o.Value == column && o.Selected })
}

// Fields are those of the list's address that its filter's form does not have.
func (d *listData) Fields() []field {
	return append(fieldsOf(&d.Filter), field{"state", d.Filter.State}, field{"sort", d.Filter.Sort})
}

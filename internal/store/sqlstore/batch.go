package sqlstore

import (
	"encoding/json"
	"strings"

	"retry-worker/internal/journal"
)

// batch collects statements to execute in order.
type batch struct {
	*Dialect
	statements []Statement
}

func (b *batch) add(query string, args ...any) {
	b.statements = append(b.statements, Statement{query, args})
}

// insert adds statements that insert the rows. head is the table with its columns, tail what follows the values.
func (b *batch) insert(head, tail string, rows []journal.Row) {
	for len(rows) > 0 {
		n := 1
		for n*16 <= min(len(rows), 256) { // few statements, whatever the number of rows
			n *= 16
		}
		args := make([]any, 0, n*len(rows[0]))
		for _, row := range rows[:n] {
			args = append(args, row...)
		}
		values := "(" + strings.Repeat("?, ", len(rows[0])-1) + "?)"
		b.add("INSERT INTO "+head+" VALUES "+strings.Repeat(values+", ", n-1)+values+tail, args...)
		rows = rows[n:]
	}
}

// upsert adds statements that save rows of a projection. set is what to change in existing rows; empty for new rows
// only.
func (b *batch) upsert(t *journal.Table, rows []journal.Row, set string) {
	if set != "" {
		set = " ON CONFLICT (" + strings.Join(t.Columns[:t.Keys], ", ") + ") DO UPDATE SET " + set
	}
	b.insert(t.Name+" ("+strings.Join(t.Columns, ", ")+")", set, rows)
}

// textOf returns runs as JSON; empty for none.
func textOf(runs []journal.Run) string {
	if len(runs) == 0 {
		return ""
	}
	text, _ := json.Marshal(runs)
	return string(text)
}

func (b *batch) answered(runs []journal.Run) {
	var all []journal.Row
	known := map[[2]int64]int64{} // PostgreSQL refuses to change a row twice in a statement
	for _, r := range runs {
		for ; r.First <= r.Last; r.First += journal.MostRun {
			key := [2]int64{r.First, r.Until}
			known[key] = max(known[key], min(r.Last, r.First+journal.MostRun-1))
		}
	}
	for key, last := range known {
		all = append(all, journal.Row{key[0], last, key[1]})
	}
	b.insert("answered (first, last, until)", " ON CONFLICT (first, until) DO UPDATE SET "+replaceAnswered, all)
}

// rows returns the rows of the values.
func rows[T any, P interface {
	*T
	Row() journal.Row
}](values []T) []journal.Row {
	all := make([]journal.Row, len(values))
	for i := range values {
		all[i] = P(&values[i]).Row()
	}
	return all
}

// execute executes the collected statements.
func (w *writer) execute(b *batch) error {
	if w.Batch != nil && len(b.statements) > 0 {
		for i := range b.statements {
			b.statements[i].Query = w.bind(b.statements[i].Query)
		}
		return w.Batch(w, w.conn.Conn, b.statements)
	}
	for i := range b.statements {
		if _, err := w.exec(b.statements[i].Query, b.statements[i].Args...); err != nil {
			return err
		}
	}
	return nil
}

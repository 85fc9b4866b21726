package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"retry-worker/internal/console"
)

const (
	// columnGap between two columns.
	columnGap = 2
	// maxCell characters of a cell that is not elastic, and maxError of one that is where there is no terminal.
	maxCell, maxError = 40, 100
	// leastError characters of an elastic cell are worth a column.
	leastError = 16
	// maxWidth that COLUMNS is believed.
	maxWidth = 1000
)

// listTable prints a list page by page. Its columns are chosen by the first page.
type listTable[T any] struct {
	out     io.Writer
	width   int // of the terminal; 0: there is none
	columns []column[T]
	rows    int
}

// column of a table. The last may be cut to what room is left, where it is elastic.
type column[T any] struct {
	name    string
	rank    int // the highest goes first where the terminal is too narrow; 0 always stays
	of      func(*T) string
	elastic bool
	width   int
}

func tableOf[T any](c *cli, columns ...column[T]) *listTable[T] {
	return &listTable[T]{out: c.out, width: terminalWidth(c.out), columns: columns}
}

func (c *cli) deadLetterTable() *listTable[console.DeadLetter] {
	return tableOf(c,
		column[console.DeadLetter]{name: "ID", of: func(d *console.DeadLetter) string { return d.ID }},
		column[console.DeadLetter]{name: "SUBJECT", rank: 1, of: func(d *console.DeadLetter) string { return d.Subject.ID }},
		column[console.DeadLetter]{name: "SINCE", rank: 6, of: func(d *console.DeadLetter) string { return minute(d.CreatedAt) }},
		column[console.DeadLetter]{name: "STATE", rank: 5, of: func(d *console.DeadLetter) string { return string(d.State) }},
		column[console.DeadLetter]{name: "TEAM", rank: 3, of: func(d *console.DeadLetter) string { return string(d.ResponsibleTeam) }},
		column[console.DeadLetter]{name: "REASON", rank: 2, of: func(d *console.DeadLetter) string { return string(d.Reason) }},
		column[console.DeadLetter]{name: "TRIES", rank: 7, of: func(d *console.DeadLetter) string { return fmt.Sprintf("%d/%d", d.RetryCount, d.MaxRetries) }},
		column[console.DeadLetter]{name: "ERROR", rank: 4, of: func(d *console.DeadLetter) string { return d.Error }, elastic: true},
	)
}

// minute is an instant without its seconds.
func minute(instant string) string {
	if len(instant) < len("2026-03-02T10:00") || strings.ContainsFunc(instant, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return instant // none
	}
	return instant[:len("2026-03-02")] + " " + instant[len("2026-03-02T"):len("2026-03-02T10:00")]
}

// print adds a page.
func (t *listTable[T]) print(items []T) {
	if len(items) == 0 {
		return
	}
	if t.rows == 0 {
		t.fit(items)
		t.row(func(c *column[T]) string { return c.name })
	}
	for i := range items {
		t.row(func(c *column[T]) string { return c.of(&items[i]) })
	}
	t.rows += len(items)
}

// fit gives each column the width that its cells take, and leaves out what the terminal has no room for.
func (t *listTable[T]) fit(items []T) {
	for i := range t.columns {
		c := &t.columns[i]
		most := maxCell
		if c.elastic {
			most = maxError
		}
		c.width = len(c.name)
		for j := range items {
			c.width = max(c.width, utf8.RuneCountInString(inertLine(c.of(&items[j]), most)))
		}
	}
	if t.width == 0 {
		return
	}
	last := &t.columns[len(t.columns)-1]
	wanted := last.width
	if last.elastic {
		last.width = min(last.width, leastError)
	}
	for t.taken() > t.width && len(t.columns) > 1 {
		worst := 0
		for i := range t.columns {
			if t.columns[i].rank > t.columns[worst].rank {
				worst = i
			}
		}
		t.columns = append(t.columns[:worst:worst], t.columns[worst+1:]...)
	}
	if last = &t.columns[len(t.columns)-1]; last.elastic {
		last.width = min(wanted, last.width+t.width-t.taken())
	}
}

// taken is how wide a row is.
func (t *listTable[T]) taken() int {
	width := -columnGap
	for i := range t.columns {
		width += t.columns[i].width + columnGap
	}
	return width
}

func (t *listTable[T]) row(cell func(*column[T]) string) {
	var line strings.Builder
	for i := range t.columns {
		c := &t.columns[i]
		text := inertLine(cell(c), c.width)
		line.WriteString(text)
		if i < len(t.columns)-1 {
			line.WriteString(strings.Repeat(" ", c.width-utf8.RuneCountInString(text)+columnGap))
		}
	}
	fmt.Fprintln(t.out, strings.TrimRight(line.String(), " "))
}

// terminalWidth is how many characters a line of the output may have; 0 where that is no terminal and COLUMNS does not
// say.
func terminalWidth(out io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 && n <= maxWidth {
		return n
	}
	if checked, is := out.(*checkedWriter); is {
		out = checked.w
	}
	if file, is := out.(*os.File); is {
		return columnsOf(file)
	}
	return 0
}

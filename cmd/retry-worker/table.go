package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	// columnGap between two columns.
	columnGap = 2
	// maxCell characters of a cell that is not elastic, and maxError of one that is where there is no terminal.
	maxCell, maxError = 40, 100
	// maxText characters of a text beside a name.
	maxText = 2000
	// leastError characters of an elastic cell are worth a column.
	leastError = 16
	// maxWidth that COLUMNS is believed.
	maxWidth = 1000
)

// table prints rows page by page. Its columns are chosen by the first page; without names there is no head.
type table[T any] struct {
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
	// optional tells that it is left out where nothing stands in it.
	optional bool
	most     int // characters of a cell that is not elastic; 0: maxCell
	width    int
}

func tableOf[T any](c *cli, columns []column[T]) *table[T] {
	return &table[T]{out: c.out, width: terminalWidth(c.out.w), columns: columns}
}

// rowsOf returns a table of rows that are texts already, each column under its name and none left out.
func rowsOf(c *cli, names ...string) *table[[]string] {
	t := tableOf[[]string](c, nil)
	for i, name := range names {
		t.columns = append(t.columns, column[[]string]{name: name, most: maxText,
			of: func(row *[]string) string { return (*row)[i] }})
	}
	return t
}

// minute returns an instant without its seconds.
func minute(instant string) string {
	if len(instant) < len("2026-03-02T10:00") ||
		strings.ContainsFunc(instant, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return instant // none
	}
	return instant[:len("2026-03-02")] + " " + instant[len("2026-03-02T"):len("2026-03-02T10:00")]
}

// minuteOrNone returns an instant without its seconds, or - where there is none.
func minuteOrNone(instant *string) string { return cmp.Or(minute(value(instant)), "-") }

// print adds a page.
func (t *table[T]) print(items []T) {
	if len(items) == 0 {
		return
	}
	if t.rows == 0 {
		t.fit(items)
		if slices.ContainsFunc(t.columns, func(c column[T]) bool { return c.name != "" }) {
			t.row(func(c *column[T]) string { return c.name })
		}
	}
	for i := range items {
		t.row(func(c *column[T]) string { return c.of(&items[i]) })
	}
	t.rows += len(items)
}

// fit gives each column the width that its cells take, and leaves out what the terminal has no room for.
func (t *table[T]) fit(items []T) {
	t.columns = slices.DeleteFunc(t.columns, func(c column[T]) bool {
		return c.optional && !slices.ContainsFunc(items, func(i T) bool { return c.of(&i) != "" })
	})
	for i := range t.columns {
		c := &t.columns[i]
		most := cmp.Or(c.most, maxCell)
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
	for t.taken() > t.width {
		worst := 0
		for i := range t.columns {
			if t.columns[i].rank > t.columns[worst].rank {
				worst = i
			}
		}
		if t.columns[worst].rank == 0 {
			break
		}
		t.columns = slices.Delete(t.columns, worst, worst+1)
	}
	if last = &t.columns[len(t.columns)-1]; last.elastic {
		last.width = max(leastError, min(wanted, last.width+t.width-t.taken()))
	}
}

// taken returns how wide a row is.
func (t *table[T]) taken() int {
	width := -columnGap
	for i := range t.columns {
		width += t.columns[i].width + columnGap
	}
	return width
}

func (t *table[T]) row(cell func(*column[T]) string) {
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

// sheet prints lines of a name and a text, those without a text left out, when done is called.
func (c *cli) sheet() (line func(name, text string), done func()) {
	var rows [][]string
	return func(name, text string) {
		if text != "" {
			rows = append(rows, []string{name, text})
		}
	}, func() { rowsOf(c, "", "").print(rows) }
}

// terminalWidth returns how many characters a line of the output may have; 0 where that is no terminal and COLUMNS does
// not say.
func terminalWidth(out io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 && n <= maxWidth {
		return n
	}
	if file, is := out.(*os.File); is {
		width, _, _ := term.GetSize(int(file.Fd())) // 0 where it is no terminal
		return width
	}
	return 0
}

// progressBar shows how far a long walk has come, in one line that it writes over again.
type progressBar struct {
	w    io.Writer // nil where nobody looks
	what string
	now  func() time.Time

	began, drawn time.Time
}

const (
	// barWidth in characters, and barPause between two drawings.
	barWidth = 30
	barPause = 100 * time.Millisecond
)

// progress returns a bar on standard error if that is a terminal.
func (c *cli) progress(what string) *progressBar {
	b := &progressBar{what: what, now: time.Now}
	if f, ok := c.errOut.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		b.w = f
	}
	b.began = b.now()
	return b
}

// show draws: at is the number of the last record gone past, of how many; counted are those that count.
func (b *progressBar) show(at, of, counted int64) {
	words := fmt.Sprintf("%d %s", counted, b.what)
	if spent := b.now().Sub(b.began); spent > time.Second && at > 0 {
		part := min(float64(at)/float64(of), 1)
		left := time.Duration(float64(spent) / part * (1 - part))
		words += fmt.Sprintf(", %d/s, %s left", int64(float64(counted)/spent.Seconds()), left.Round(time.Second))
	}
	b.draw(at, of, words)
}

// draw draws how much is done of all, and words behind it (nothing in them acts), cut to the terminal's width.
func (b *progressBar) draw(done, of int64, words string) {
	now := b.now()
	if b.w == nil || of < 1 || now.Sub(b.drawn) < barPause {
		return
	}
	b.drawn = now
	part := min(max(float64(done)/float64(of), 0), 1)
	full := int(part * barWidth)
	line := fmt.Sprintf("[%s%s] %3.0f %%  %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), part*100,
		words)
	if width := terminalWidth(b.w); width > 1 && utf8.RuneCountInString(line) >= width {
		line = cutLine(line, width-1)
	}
	fmt.Fprint(b.w, "\r"+line+"\x1b[K")
}

// end clears the line.
func (b *progressBar) end() {
	if b.w != nil && !b.drawn.IsZero() {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

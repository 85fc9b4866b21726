package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	// columnGap between two columns.
	columnGap = 2
	// maxCell characters of a cell in a list, maxText of one that is to be read whole.
	maxCell, maxText = 80, 2000
	// maxWidth that COLUMNS is believed.
	maxWidth = 1000
)

// table prints rows page by page; what matters least stands last, where a narrow terminal has no room for it.
type table[T any] struct {
	c    *cli
	head string // of the first page, names with commas; empty: none
	most int    // characters of a cell; above maxCell lines may be wider than the terminal
	of   func(*T) []any
	rows int
}

// tableOf returns a table of a list, of which of returns an item's cells.
func tableOf[T any](c *cli, head string, of func(*T) []any) *table[T] {
	return &table[T]{c: c, head: head, most: maxCell, of: of}
}

// rows prints texts that are to be read whole.
func (c *cli) rows(head string, rows [][]any) {
	t := table[[]any]{c: c, head: head, most: maxText, of: func(row *[]any) []any { return *row }}
	t.print(rows)
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
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, columnGap, ' ', 0)
	if t.rows == 0 && t.head != "" {
		fmt.Fprintln(w, strings.ReplaceAll(t.head, ", ", "\t"))
	}
	least := 0 // the first cell stays whole: it is what other commands take
	for i := range items {
		cells := t.of(&items[i])
		line := make([]string, len(cells))
		for j := range cells {
			line[j] = inertLine(fmt.Sprint(cells[j]), t.most)
		}
		least = max(least, utf8.RuneCountInString(line[0]))
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	_ = w.Flush() // text takes everything
	t.rows += len(items)
	width := 0
	if t.most == maxCell {
		width = terminalWidth(t.c.out.w)
	}
	for line := range strings.Lines(text.String()) {
		runes := []rune(strings.TrimRight(line, " \n"))
		switch {
		case width == 0 || len(runes) <= width:
		case width <= least+columnGap:
			runes = runes[:min(len(runes), least)]
		default:
			runes = append(runes[:width-1], '…')
		}
		fmt.Fprintln(t.c.out, strings.TrimRight(string(runes), " "))
	}
}

// sheet prints lines of a name and what is known of it, those without a text left out, when done is called.
func (c *cli) sheet() (line func(name string, what any), done func()) {
	var rows [][]any
	return func(name string, what any) {
		if fmt.Sprint(what) != "" {
			rows = append(rows, []any{name, what})
		}
	}, func() { c.rows("", rows) }
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

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

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

// progress is a bar on standard error if that is a terminal.
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

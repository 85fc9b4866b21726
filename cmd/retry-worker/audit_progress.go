package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
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
	if f, ok := c.errOut.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		b.w = f
	}
	b.began = b.now()
	return b
}

// show draws: at is the number of the last record gone past, of how many; counted are those that count.
func (b *progressBar) show(at, of, counted int64) {
	now := b.now()
	if b.w == nil || of < 1 || now.Sub(b.drawn) < barPause {
		return
	}
	b.drawn = now
	part := min(float64(at)/float64(of), 1)
	done := int(part * barWidth)
	spent := now.Sub(b.began)
	fmt.Fprintf(b.w, "\r[%s%s] %3.0f %%  %d %s", strings.Repeat("#", done), strings.Repeat(".", barWidth-done), part*100, counted, b.what)
	if spent > time.Second && part > 0 {
		left := time.Duration(float64(spent) / part * (1 - part))
		fmt.Fprintf(b.w, ", %d/s, %s left", int64(float64(counted)/spent.Seconds()), left.Round(time.Second))
	}
	fmt.Fprint(b.w, "\x1b[K")
}

// end clears the line.
func (b *progressBar) end() {
	if b.w != nil && !b.drawn.IsZero() {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

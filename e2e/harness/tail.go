package harness

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
)

// tailLines is how many lines a Tail keeps; maxLine cuts one, in bytes.
const (
	tailLines = 200
	maxLine   = 2000
)

// Tail passes on what is written to it and keeps the last lines; the zero value only keeps them. Several goroutines may
// use it.
type Tail struct {
	mu      sync.Mutex
	to      io.Writer // may be nil
	lines   []string
	pending []byte
}

// Write never fails: a program must not die of its reader. What cannot be passed on is only kept.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to != nil {
		_, _ = t.to.Write(b)
	}
	if t.pending = CutLines(t.pending, b, t.keep); len(t.pending) > maxLine {
		t.keep(t.pending)
		t.pending = nil
	}
	return len(b), nil
}

// CutLines calls take with each whole line of what was pending and what came, and returns the rest.
func CutLines(pending, came []byte, take func(line []byte)) (rest []byte) {
	rest = slices.Concat(pending, came)
	for {
		line, more, found := bytes.Cut(rest, []byte("\n"))
		if !found {
			return rest
		}
		take(line)
		rest = more
	}
}

func (t *Tail) keep(line []byte) {
	t.lines = append(t.lines, strings.TrimRight(string(line[:min(len(line), maxLine)]), " \t\r"))
	if len(t.lines) > 2*tailLines {
		t.lines = slices.Clone(t.lines[len(t.lines)-tailLines:])
	}
}

// Lines are the lines kept, oldest first, an unfinished one at the end.
func (t *Tail) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := slices.Clone(t.lines)
	if len(t.pending) > 0 {
		lines = append(lines, string(t.pending))
	}
	return lines
}

// telling mark the lines that say why a program ended, the best first; every line has the last.
var telling = []string{"lready in use", "FATAL:", `"level":"error"`, "Error:", "panic:", ""}

// LastLine is the last line that tells of an error; without one the last that says anything; empty where nothing was written.
func (t *Tail) LastLine() string {
	lines := t.Lines()
	for _, mark := range telling {
		for _, line := range slices.Backward(lines) {
			if line = strings.TrimSpace(line); line != "" && strings.Contains(line, mark) {
				return line
			}
		}
	}
	return ""
}

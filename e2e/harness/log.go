package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"retry-worker/internal/testkit/wait"
)

// Board is a lock whose changes others can wait for. Its zero value is ready.
type Board struct {
	sync.Mutex
	changed chan struct{}
}

// Change calls change under the lock, and wakes those who wait.
func (b *Board) Change(change func()) {
	b.Lock()
	defer b.Unlock()
	change()
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// Look calls look under the lock.
func (b *Board) Look(look func()) {
	b.Lock()
	defer b.Unlock()
	look()
}

// Await waits until met, called under the lock, returns true, or fails the test.
func (b *Board) Await(t *testing.T, what string, met func() bool) {
	t.Helper()
	if !b.Until(wait.Context(t), met) {
		t.Fatalf("waited %v for %s", wait.Limit, what)
	}
}

// Until waits until met, called under the lock, returns true. It reports whether that was before ctx ended.
func (b *Board) Until(ctx context.Context, met func() bool) bool {
	for {
		holds := false
		var changed chan struct{}
		b.Look(func() {
			holds = met()
			if b.changed == nil {
				b.changed = make(chan struct{})
			}
			changed = b.changed
		})
		if holds {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// Line is a line of a worker's log, by its fields.
type Line map[string]any

// Text returns a field's text; empty if it has none.
func (l Line) Text(field string) string {
	s, _ := l[field].(string)
	return s
}

// Log collects a worker's output. Safe for concurrent use.
type Log struct {
	board   Board
	pending []byte
	lines   []Line
	all     bytes.Buffer
}

// Write adds a part of the output.
func (l *Log) Write(b []byte) (int, error) {
	l.board.Change(func() {
		l.all.Write(b)
		for l.pending = append(l.pending, b...); ; {
			line, rest, whole := bytes.Cut(l.pending, []byte("\n"))
			if !whole {
				break
			}
			fields := make(Line)
			if json.Unmarshal(line, &fields) == nil { // other lines are in Text only
				l.lines = append(l.lines, fields)
			}
			l.pending = rest
		}
	})
	return len(b), nil
}

// Await waits until met, called with all lines so far, returns true, or fails the test.
func (l *Log) Await(t *testing.T, what string, met func([]Line) bool) {
	t.Helper()
	l.board.Await(t, what, func() bool { return met(l.lines) })
}

// AwaitEvent waits for a line with an event.
func (l *Log) AwaitEvent(t *testing.T, event string) {
	t.Helper()
	l.Await(t, "the log to tell of "+event, func(lines []Line) bool {
		return slices.ContainsFunc(lines, func(l Line) bool { return l.Text("event") == event })
	})
}

// About waits until an instance has n events in the log, which is written with a delay, and returns all it has.
func (l *Log) About(t *testing.T, instance int64, n int) (found []Line) {
	t.Helper()
	l.Await(t, "the worker's log", func(lines []Line) bool {
		found = nil
		for _, line := range lines {
			if of, _ := line["processInstanceKey"].(float64); int64(of) == instance && line.Text("event") != "" {
				found = append(found, line)
			}
		}
		return len(found) >= n
	})
	return found
}

// Text returns the whole output.
func (l *Log) Text() (text string) {
	l.board.Look(func() { text = l.all.String() })
	return text
}

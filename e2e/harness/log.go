package harness

import (
	"bytes"
	"encoding/json"
	"sync"
	"testing"

	"retry-worker/internal/testkit/wait"
)

// Line is a line of a worker's log, by its fields.
type Line map[string]any

// Text returns a field's text; empty if it has none.
func (l Line) Text(field string) string {
	s, _ := l[field].(string)
	return s
}

// Log collects a worker's output. Safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	pending []byte
	lines   []Line
	all     bytes.Buffer
}

// Write adds a part of the output.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Write(b)
	for l.pending = append(l.pending, b...); ; {
		line, rest, whole := bytes.Cut(l.pending, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		fields := make(Line)
		if json.Unmarshal(line, &fields) == nil { // other lines are in Text only
			l.lines = append(l.lines, fields)
		}
		l.pending = rest
	}
}

// Await waits until met, called with all lines so far, returns true, or fails the test.
func (l *Log) Await(t *testing.T, what string, met func([]Line) bool) {
	t.Helper()
	wait.Until(t, what, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return met(l.lines)
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
func (l *Log) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

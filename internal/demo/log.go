package demo

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// logLine is what the demo reads of a line of the worker's log. Which sample it is about follows from the instance: the
// line names it by a variable of its policy's own.
type logLine struct {
	Event              string    `json:"event"`
	Message            string    `json:"message"`
	Detail             string    `json:"detail"`
	MatchedRule        string    `json:"matchedRule"`
	BackoffMinutes     int64     `json:"backoffMinutes"`
	NextRetryTime      string    `json:"nextRetryTime"`
	Timestamp          time.Time `json:"timestamp"`
	ResponsibleTeam    string    `json:"responsibleTeam"`
	ProcessInstanceKey int64     `json:"processInstanceKey"`
}

// wait is the backoff for people; where it is below a minute, as far as the line's own time tells.
func (l *logLine) wait() string {
	const tick = 500 * time.Millisecond // the line is written a moment after the decision
	next, err := time.Parse(time.RFC3339, l.NextRetryTime)
	if d := next.Sub(l.Timestamp).Round(tick); err == nil && l.BackoffMinutes == 1 && d < time.Minute-tick {
		return fmt.Sprintf("%g s", d.Seconds())
	}
	return fmt.Sprintf("%d min", l.BackoffMinutes)
}

// Log takes the worker's log, a line with each Write, for the demo to tell its decisions. Its zero value is ready; it is safe
// for concurrent use.
type Log struct {
	mu   sync.Mutex
	take func(logLine) // nil: nobody reads
}

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var line logLine
	if l.take != nil && json.Unmarshal(b, &line) == nil && line.Event != "" {
		l.take(line)
	}
	return len(b), nil
}

// follow hands what is written from now on to take, until the function it returns is called.
func (l *Log) follow(take func(logLine)) (end func()) {
	set := func(take func(logLine)) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.take = take
	}
	set(take)
	return func() { set(nil) }
}

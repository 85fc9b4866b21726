package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"retry-worker/internal/clock"
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

// followPause between two looks at the end of the log.
const followPause = 10 * time.Millisecond

// follow hands every line that the worker writes to its log from now on to take, until ctx ends.
func follow(ctx context.Context, path string, take func(logLine)) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("--worker-log: %w; expected the file the worker's output goes to", err)
	}
	defer f.Close()
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return fmt.Errorf("--worker-log %s: %w", path, err)
	}
	reader := bufio.NewReader(f)
	var pending []byte
	for ctx.Err() == nil {
		part, err := reader.ReadBytes('\n')
		pending = append(pending, part...)
		if errors.Is(err, io.EOF) {
			clock.Machine{}.Rest(ctx, followPause)
			continue
		}
		if err != nil {
			return fmt.Errorf("read the worker's log %s: %w", path, err)
		}
		var line logLine
		if json.Unmarshal(pending, &line) == nil && line.Event != "" {
			take(line)
		}
		pending = pending[:0]
	}
	return nil
}

package app

import (
	"bufio"
	"bytes"
	"io"
	"sync/atomic"
	"time"
)

const (
	// logDelay is how long a log line may wait, up to logBytes, for others to be written with it: writing each line
	// alone takes a tenth of the CPU time under load.
	logDelay = 100 * time.Millisecond
	logBytes = 64 << 10
	// mostPending is how many lines may wait for a reader of standard output. Lines beyond it are lost and counted.
	mostPending = 8 << 10
	// logEnd is how long Stop waits for the last lines.
	logEnd = time.Second
)

// LogLines writes a log in the background, so that nobody waits for a reader. It is safe for concurrent use.
type LogLines struct {
	to     io.Writer
	lost   func(lines int64)
	lines  chan []byte
	missed atomic.Int64

	end, ended chan struct{}
}

// NewLogLines returns a LogLines that writes to to. It calls lost with the number of lost lines once some are written
// again.
func NewLogLines(to io.Writer, lost func(lines int64)) *LogLines {
	l := &LogLines{to: to, lost: lost, lines: make(chan []byte, mostPending), end: make(chan struct{}),
		ended: make(chan struct{})}
	go l.run()
	return l
}

// Write queues one line. It never fails or waits.
func (l *LogLines) Write(line []byte) (int, error) {
	select {
	case l.lines <- bytes.Clone(line):
	default:
		l.missed.Add(1)
	}
	return len(line), nil
}

func (l *LogLines) run() {
	defer close(l.ended)
	w := bufio.NewWriterSize(l.to, logBytes)
	written := func(err error) {
		if err != nil {
			w.Reset(l.to) // no place to report it; later writes may succeed
		}
	}
	write := func(line []byte) { _, err := w.Write(line); written(err) }
	every := time.NewTicker(logDelay)
	defer every.Stop()
	for {
		select {
		case line := <-l.lines:
			write(line)
		case <-every.C:
			written(w.Flush())
			if n := l.missed.Swap(0); n > 0 {
				l.lost(n)
			}
		case <-l.end:
			for len(l.lines) > 0 {
				write(<-l.lines)
			}
			written(w.Flush())
			return
		}
	}
}

// Stop writes the waiting lines, for at most logEnd.
func (l *LogLines) Stop() {
	close(l.end)
	select {
	case <-l.ended:
	case <-time.After(logEnd):
	}
}

package app

import (
	"bufio"
	"bytes"
	"io"
	"sync/atomic"
	"time"
)

const (
	// logDelay is how long a line of the log waits for others, up to logBytes: one write for many lines is a tenth of
	// the worker's CPU time under load.
	logDelay = 100 * time.Millisecond
	logBytes = 64 << 10
	// mostPending lines wait for a reader of standard output; those beyond them are lost, and counted.
	mostPending = 8 << 10
	// logEnd is how long the last lines may take at the end.
	logEnd = time.Second
)

// LogLines writes a log in the background: whoever logs goes on, whether anybody reads it or not. Safe for concurrent
// use.
type LogLines struct {
	to     io.Writer
	lost   func(lines int64)
	lines  chan []byte
	missed atomic.Int64

	end, ended chan struct{}
}

// NewLogLines returns one that writes to to, and calls lost with how many lines were lost, once some are written again.
func NewLogLines(to io.Writer, lost func(lines int64)) *LogLines {
	l := &LogLines{to: to, lost: lost, lines: make(chan []byte, mostPending), end: make(chan struct{}),
		ended: make(chan struct{})}
	go l.run()
	return l
}

// Write takes one line, and never fails nor waits.
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
			w.Reset(l.to) // there is nowhere to say so; the next lines may be taken
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

// Stop writes what waits, as far as somebody reads it soon.
func (l *LogLines) Stop() {
	close(l.end)
	select {
	case <-l.ended:
	case <-time.After(logEnd):
	}
}

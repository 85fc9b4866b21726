package main

import (
	"io"
	"sync"
	"time"
)

// A line of the log waits for others up to logDelay, or until there are logBytes of them: one write for many lines is a
// tenth of the worker's CPU time under load.
const (
	logDelay = 100 * time.Millisecond
	logBytes = 64 << 10
	// mostPending bytes wait for a reader of standard output; lines beyond them are lost, and counted.
	mostPending = 4 << 20
	// logEnd is how long the last lines may take at the end.
	logEnd = time.Second
)

// logLines writes a log in the background: whoever logs goes on, whether anybody reads it or not. Safe for concurrent
// use.
type logLines struct {
	to io.Writer
	// lost is told how many lines were, once some are taken again.
	lost func(lines int)

	wake, end, ended chan struct{}
	mu               sync.Mutex
	pending          []byte
	missed           int
}

func newLogLines(to io.Writer, lost func(lines int)) *logLines {
	l := &logLines{to: to, lost: lost, wake: make(chan struct{}, 1), end: make(chan struct{}), ended: make(chan struct{})}
	go l.run()
	return l
}

// Write takes one line, and never fails nor waits.
func (l *logLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending)+len(line) > mostPending {
		l.missed++
	} else {
		l.pending = append(l.pending, line...)
	}
	if len(l.pending) >= logBytes {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	return len(line), nil
}

func (l *logLines) run() {
	defer close(l.ended)
	every := time.NewTicker(logDelay)
	defer every.Stop()
	for ending := false; !ending; {
		select {
		case <-every.C:
		case <-l.wake:
		case <-l.end:
			ending = true
		}
		l.mu.Lock()
		lines, missed := l.pending, l.missed
		l.pending, l.missed = nil, 0
		l.mu.Unlock()
		if len(lines) > 0 {
			_, _ = l.to.Write(lines) // there is nowhere else to say so
		}
		if missed > 0 {
			l.lost(missed)
		}
	}
}

// Stop writes what waits, as far as somebody reads it soon.
func (l *logLines) Stop() {
	close(l.end)
	select {
	case <-l.ended:
	case <-time.After(logEnd):
	}
}

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// progressEvery is the time between two lines about progress where one cannot be written over.
const progressEvery = 5 * time.Second

// screen is what the viewer reads. Safe for concurrent use.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	width    int // of a line that the next one writes over
	reported time.Time
}

func newScreen(out *os.File) *screen {
	return &screen{out: out, terminal: term.IsTerminal(int(out.Fd()))}
}

// Write passes on what another program says to the viewer.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	return s.out.Write(b)
}

func (s *screen) say(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// rowFormat is one line of a table: a label and its text.
const rowFormat = "  %-9s %s\n"

func (s *screen) row(label, format string, args ...any) {
	fmt.Fprintf(s, rowFormat, label, fmt.Sprintf(format, args...))
}

// progress writes over the last progress on a terminal, and now and then a line elsewhere.
func (s *screen) progress(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal {
		if time.Since(s.reported) >= progressEvery {
			s.reported = time.Now()
			fmt.Fprintf(s.out, rowFormat, "", line)
		}
		return
	}
	s.wipe()
	n, _ := fmt.Fprintf(s.out, "  %-9s %s", "", line)
	s.width = n
}

// wipe clears a line that may be written over.
func (s *screen) wipe() {
	if s.width > 0 {
		fmt.Fprint(s.out, "\r", strings.Repeat(" ", s.width), "\r")
		s.width = 0
	}
}

package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/engine"
)

// header is the first line of a log.
const header = "retry-worker development engine log 1\n"

// logFile keeps events, one line for each command: a checksum and a JSON array. Events are written before anybody sees
// them. A nil *logFile keeps nothing.
type logFile struct {
	file      *os.File
	fsync     bool
	size      int64  // of the complete lines
	unwritten []byte // events that could not be written yet
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openLog opens the log in a folder, which it makes if need be, and passes its events to replay. A torn last line,
// after a kill or on a full disk, is cut off: nobody has seen its events.
func openLog(folder string, fsync bool, replay func([]engine.Event) error) (_ *logFile, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the engine's data folder: %w", err)
	}
	path := filepath.Join(folder, "engine.log")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the engine's log: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("%s is in use by another engine; stop it, or give this one another --data folder", path)
	}
	l := &logFile{file: file, fsync: fsync}
	if err := l.read(replay); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := file.Truncate(l.size); err != nil {
		return nil, fmt.Errorf("cut a torn end of the engine's log: %w", err)
	}
	if l.size == 0 {
		l.unwritten = []byte(header)
	}
	return l, l.write(nil)
}

func (l *logFile) read(replay func([]engine.Event) error) error {
	lines := bufio.NewReaderSize(l.file, 1<<20)
	first, err := lines.ReadString('\n')
	switch {
	case errors.Is(err, io.EOF) && (first == "" || bytes.HasPrefix([]byte(header), []byte(first))):
		return nil // new, or torn at once
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case first != header:
		return fmt.Errorf("it begins with %.60q, expected %q: another version's, or no engine's log; give --data another folder", first, header)
	}
	l.size = int64(len(header))
	torn := 0 // number of the first incomplete line
	for n := 2; ; n++ {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		events, ok := parseLine(line)
		switch {
		case ok && torn > 0:
			return fmt.Errorf("line %d is damaged, and others follow it; restore the folder, or give --data another one", torn)
		case ok:
			if err := replay(events); err != nil {
				return fmt.Errorf("line %d: %w; give --data another folder", n, err)
			}
			l.size += int64(len(line))
		case torn == 0:
			torn = n
		}
	}
}

// checksumLength is the length of a checksum and the space after it.
const checksumLength = 9

func parseLine(line []byte) (events []engine.Event, ok bool) {
	if len(line) < checksumLength || line[len(line)-1] != '\n' {
		return nil, false
	}
	sum, err := strconv.ParseUint(string(line[:checksumLength-1]), 16, 32)
	body := line[checksumLength : len(line)-1]
	if err != nil || uint32(sum) != crc32.Checksum(body, castagnoli) || json.Unmarshal(body, &events) != nil {
		return nil, false
	}
	return events, true
}

// behind reports whether events could not be written yet.
func (l *logFile) behind() bool { return l != nil && len(l.unwritten) > 0 }

// write writes the events of commands, after those that could not be written before. If writing fails, the events stay
// for the next time, and the error is a gRPC status.
func (l *logFile) write(commands [][]engine.Event) error {
	if l == nil {
		return nil
	}
	for _, events := range commands {
		body, err := json.Marshal(events)
		if err != nil {
			panic(err) // cannot fail for texts and numbers
		}
		l.unwritten = fmt.Appendf(l.unwritten, "%08x ", crc32.Checksum(body, castagnoli))
		l.unwritten = append(append(l.unwritten, body...), '\n')
	}
	if len(l.unwritten) == 0 {
		return nil
	}
	n, err := l.file.WriteAt(l.unwritten, l.size)
	if err == nil && l.fsync {
		err = l.file.Sync()
	}
	if err != nil {
		_ = l.file.Truncate(l.size) // otherwise the torn line is overwritten later
		return status.Errorf(codes.ResourceExhausted, "the engine's log cannot be written: %v; it goes on once it can", err)
	}
	l.size += int64(n)
	l.unwritten = l.unwritten[:0]
	return nil
}

// close writes the remaining events and closes the file.
func (l *logFile) close() error { return errors.Join(l.write(nil), l.file.Close()) }

// recent keeps the newest events for readers.
type recent struct {
	mu      sync.Mutex
	events  []engine.Event
	bytes   int
	changed chan struct{} // closed and replaced with each event
	closed  bool
}

// recentBytes is roughly the memory that the newest events take.
const recentBytes = 32 << 20

func newRecent() *recent { return &recent{changed: make(chan struct{})} }

func (r *recent) add(events []engine.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, events...)
	for i := range events {
		r.bytes += events[i].Size()
	}
	drop := 0
	for ; r.bytes > recentBytes && drop < len(r.events)-1; drop++ {
		r.bytes -= r.events[drop].Size()
	}
	if drop > 0 {
		clear(r.events[:drop])
		r.events = r.events[drop:]
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *recent) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	close(r.changed)
	r.changed = make(chan struct{})
}

// from returns up to a thousand events from a position on. gone reports that the event at that position is no longer
// kept. more is closed when new events come, and nil if there will be none.
func (r *recent) from(position int64) (events []engine.Event, gone bool, more <-chan struct{}) {
	const most = 1000
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		more = r.changed
	}
	if len(r.events) == 0 {
		return nil, false, more
	}
	at := position - r.events[0].Position
	if at < 0 {
		return nil, true, more
	}
	if at >= int64(len(r.events)) {
		return nil, false, more
	}
	rest := r.events[at:min(at+most, int64(len(r.events)))]
	return append([]engine.Event(nil), rest...), false, more
}

// oldest returns the position of the oldest event kept; 0 if there is none.
func (r *recent) oldest() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 {
		return 0
	}
	return r.events[0].Position
}

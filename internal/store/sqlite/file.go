package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"retry-worker/internal/journal"
	"retry-worker/internal/smallfile"
)

// file is the journal's file, by its absolute path.
type file struct{ path string }

// locate resolves path. The folder must exist, the file need not.
func locate(path string) (*file, error) {
	if path == "" || path == ":memory:" {
		return nil, errors.New("the database URL names no file; expected sqlite:/path/to/retry-worker.db")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", path, err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // SQLite's other files are beside the real one
	}
	f := &file{path}
	switch folder, err := os.Stat(filepath.Dir(path)); {
	case err != nil:
		return nil, f.wrong("its folder %s cannot be used (%v): create it, give the worker's user access to it, or name "+
			"another", filepath.Dir(path), smallfile.Cause(err))
	case !folder.IsDir():
		return nil, f.wrong("its folder %s is a file: name a folder that is one", filepath.Dir(path))
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, f.wrong("found no regular file (%s): name a file", info.Mode().Type())
	}
	return f, nil
}

// wrong returns an error about the file that a person must act on.
func (f *file) wrong(format string, args ...any) error {
	return &journal.StoreError{Kind: journal.Invalid, Err: f.says(format, args...)}
}

// later returns an error about the file that may be gone on the next try.
func (f *file) later(format string, args ...any) error {
	return &journal.StoreError{Kind: journal.Unavailable, Err: f.says(format, args...)}
}

func (f *file) says(format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{f.name()}, args...)...)
}

// name returns the beginning of an error about the file.
func (f *file) name() string { return "database " + f.path }

// damaged returns an error that says what is damaged, and what to do.
func (f *file) damaged(format string, args ...any) error {
	return f.wrong("is damaged (%s): restore the last backup, or move %s and the files beside it away to begin with an "+
		"empty journal; nothing was changed", fmt.Sprintf(format, args...), f.path)
}

// explain returns an error of opening as one line that says what to do.
func (f *file) explain(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		err = e // which step met it does not matter
	} else if e, ok := errors.AsType[*journal.StoreError](err); ok {
		return e
	}
	text := oneLine(err.Error())
	switch code(err) {
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return f.wrong("cannot be opened (%s): give the worker's user access to it, to the files beside it and to its folder",
			text)
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return f.later("%s%s", meaning(code(err)), text)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return f.later("was not read to its end: %w", err)
	}
	return f.wrong("%s%s", meaning(code(err)), text)
}

// unwritable explains an operating system's error.
func (f *file) unwritable(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return f.later("no room is left on the disk: make some")
	case errors.Is(err, syscall.EROFS):
		return f.wrong("its disk is mounted read-only: mount it for writing, or name another place")
	}
	return f.wrong("cannot be written (%v): give the worker's user write access to it and to its folder",
		smallfile.Cause(err))
}

// size returns the size of the file with this ending; 0 if there is none.
func (f *file) size(ending string) int64 {
	info, err := os.Stat(f.path + ending)
	if err != nil {
		return 0
	}
	return info.Size()
}

// stat describes the files with these endings.
func (f *file) stat(endings ...string) (map[string]os.FileInfo, error) {
	all := map[string]os.FileInfo{}
	for _, ending := range endings {
		info, err := os.Stat(f.path + ending)
		if err != nil {
			return nil, f.later("cannot be found (%v)", smallfile.Cause(err))
		}
		all[ending] = info
	}
	return all, nil
}

// same returns an error if a file is no longer the opened one.
func (f *file) same(opened map[string]os.FileInfo) error {
	for ending, before := range opened {
		if now, err := os.Stat(f.path + ending); err != nil || !os.SameFile(before, now) {
			return f.later("%s%s was moved, removed or replaced while it was open, and what is written would be lost: restart "+
				"the worker", filepath.Base(f.path), ending)
		}
	}
	return nil
}

// The header of a SQLite file, and offsets in it: https://sqlite.org/fileformat2.html#the_database_header.
const (
	headSize   = 100
	magic      = "SQLite format 3\x00"
	pagesAt    = 28
	idAt       = 68
	pageSizeAt = 16
)

// check returns an error if the file is damaged or another program's. SQLite would change such a file, or delete its
// write-ahead log, on opening it for writing. No connection to it may be open in this process, as closing the file
// drops the connection's locks.
func (f *file) check() error {
	head := make([]byte, headSize)
	n, err := f.read(head)
	size, log := f.size(""), f.size("-wal")
	order := binary.BigEndian
	switch pageSize := int64(order.Uint16(head[pageSizeAt:])); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return f.wrong("cannot be read (%v): give the worker's user access to it", smallfile.Cause(err))
	case n == 0 && log > 0:
		return f.damaged("it is empty, but its write-ahead log %s-wal is not", f.path)
	case n == 0:
		return nil
	case n < headSize || string(head[:len(magic)]) != magic:
		return f.damaged("its head is not that of a SQLite file")
	case order.Uint32(head[idAt:]) != applicationID && size > pageSize: // a file of one page has no tables yet
		return f.wrong("is another program's SQLite file: name another file")
	case log == 0 && size < pageSize*int64(order.Uint32(head[pagesAt:])):
		return f.damaged("it has %d bytes, which is less than its head says", size)
	}
	return nil
}

func (f *file) read(head []byte) (int, error) {
	opened, err := os.Open(f.path)
	if err != nil {
		return 0, err
	}
	defer opened.Close()
	n, err := io.ReadFull(opened, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}

// lock creates the file if there is none, hides it from other users (SQLite copies its permissions to the files beside
// it), and locks it for this process. The lock ends with the process, however it ends. Close the file last: that drops
// SQLite's own locks, which are of another kind.
func (f *file) lock() (*os.File, error) {
	held, err := os.OpenFile(f.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, f.unwritable(err)
	}
	switch err = syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = f.later("another retry-worker writes it already: stop that one, name another file, or use PostgreSQL for several " +
			"workers")
	case err != nil:
		err = f.wrong("its lock cannot be taken (%v): name a file on a local disk", err)
	default:
		err = f.hide()
	}
	if err != nil {
		_ = held.Close()
		return nil, err
	}
	return held, nil
}

// unlock releases the lock, even while a child process that is just starting still has the file open.
func unlock(held *os.File) error {
	return errors.Join(syscall.Flock(int(held.Fd()), syscall.LOCK_UN), held.Close())
}

// hide removes the permissions of other users.
func (f *file) hide() error {
	for _, name := range []string{f.path, f.path + "-wal", f.path + "-shm"} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm()&0o007 == 0 {
			continue
		}
		if err := os.Chmod(name, info.Mode().Perm()&^0o007); err != nil {
			return f.wrong("everybody may read %s, and that cannot be changed (%v): take the permissions of others away",
				filepath.Base(name), smallfile.Cause(err))
		}
	}
	return nil
}

// leastRoom is the room that the disk must have: the most that a large batch writes.
const leastRoom = 2 << 20

// room returns the disk's free bytes, and an error if they are not enough for a batch.
func (f *file) room() (free uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(f.path), &s); err != nil {
		return 0, f.later("its disk cannot be asked how much room it has: %v", err)
	}
	if free = s.Bavail * uint64(s.Bsize); free < leastRoom {
		err = f.later("no room is left on its disk (%d KiB, %d are needed): make some", free>>10, leastRoom>>10)
	}
	return free, err
}

// mayWrite is W_OK of access(2).
const mayWrite = 2

// Inspect returns a sentence about the journal's file: that it may be written, and how much room its disk has. It
// changes nothing.
func Inspect(path string) (string, error) {
	f, err := locate(path)
	if err != nil {
		return "", err
	}
	for _, needed := range []string{filepath.Dir(f.path), f.path} {
		if err := syscall.Access(needed, mayWrite); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", f.wrong("%s may not be written (%v): give the worker's user write access to the file and its folder",
				needed, smallfile.Cause(err))
		}
	}
	free, err := f.room()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s may be written, %d MiB are free on its disk", f.path, free>>20), nil
}

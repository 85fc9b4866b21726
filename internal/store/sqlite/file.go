package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	sqlite3 "modernc.org/sqlite/lib"

	"retry-worker/internal/journal"
	"retry-worker/internal/smallfile"
)

// file is where the journal is, by its absolute path.
type file struct{ path string }

// locate finds the file's place: the folder must be there, the file need not.
func locate(path string) (*file, error) {
	if path == "" || path == ":memory:" {
		return nil, errors.New("the database URL names no file; expected sqlite:/path/to/retry-worker.db")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", path, err)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // one file has one lock, whatever it is called
	}
	f := &file{path}
	switch folder, err := os.Stat(filepath.Dir(path)); {
	case errors.Is(err, syscall.ENOTDIR), err == nil && !folder.IsDir():
		return nil, f.wrong("its folder %s is a file: name a folder that is one", filepath.Dir(path))
	case errors.Is(err, fs.ErrNotExist):
		return nil, f.wrong("its folder %s does not exist: create it, or name another", filepath.Dir(path))
	case err != nil:
		return nil, f.wrong("its folder cannot be read (%v): give the worker's user access to it", smallfile.Cause(err))
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, f.wrong("found no regular file (%s): name a file", info.Mode().Type())
	}
	return f, nil
}

// wrong is an error about the file that a person must act on.
func (f *file) wrong(format string, args ...any) error {
	return &journal.StoreError{Kind: journal.Invalid, Err: f.says(format, args...)}
}

// later is an error about the file that may be gone when it is tried again.
func (f *file) later(format string, args ...any) error {
	return &journal.StoreError{Kind: journal.Unavailable, Err: f.says(format, args...)}
}

func (f *file) says(format string, args ...any) error {
	return fmt.Errorf("database %s: "+format, append([]any{f.path}, args...)...)
}

// explain says in one line what an error while opening means for the file.
func (f *file) explain(err error) error {
	switch code(err) {
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return f.wrong("cannot be opened for writing (%s): give the worker's user write access to it, to the files "+
			"beside it and to its folder", oneLine(err.Error()))
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return f.later("%s%s", meaning(code(err)), oneLine(err.Error()))
	case 0:
		return f.wrong("%s", oneLine(err.Error()))
	}
	return f.wrong("%s%s", meaning(code(err)), oneLine(err.Error()))
}

// secure makes the file where there is none, and takes it out of everybody's sight: SQLite gives those beside
// it the same permissions.
func (f *file) secure() error {
	made, err := os.OpenFile(f.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case err == nil:
		return made.Close()
	case !errors.Is(err, fs.ErrExist):
		return f.unwritable(err)
	}
	if made, err = os.OpenFile(f.path, os.O_RDWR, 0); err != nil {
		return f.wrong("cannot be opened for writing (%v): give the worker's user write access to it", smallfile.Cause(err))
	}
	_ = made.Close() // nothing was written
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

func (f *file) unwritable(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return f.later("no room is left on the disk: make some")
	case errors.Is(err, syscall.EROFS):
		return f.wrong("its disk is mounted read-only: mount it for writing, or name another place")
	case errors.Is(err, fs.ErrPermission):
		return f.wrong("this user cannot write in its folder: give it write access to %s", filepath.Dir(f.path))
	}
	return f.wrong("cannot be written (%v)", smallfile.Cause(err))
}

// size of the file with this ending; 0 where there is none.
func (f *file) size(ending string) int64 {
	info, err := os.Stat(f.path + ending)
	if err != nil {
		return 0
	}
	return info.Size()
}

//go:build linux || darwin

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"retry-worker/internal/smallfile"
)

// mayWrite is access(2)'s W_OK.
const mayWrite = 2

// Inspect says whether the journal's file may be written, and how much room its disk has. It changes nothing.
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
	if err := f.room(); err != nil {
		return "", err
	}
	var s syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(f.path), &s); err != nil {
		return "", f.later("its disk cannot be asked how much room it has: %v", err)
	}
	return fmt.Sprintf("%s may be written, %d MiB are free on its disk", f.path, s.Bavail*uint64(s.Bsize)>>20), nil
}

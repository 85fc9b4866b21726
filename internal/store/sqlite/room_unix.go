//go:build linux || darwin

package sqlite

import (
	"fmt"
	"path/filepath"
	"syscall"

	"retry-worker/internal/journal"
)

// leastRoom on the disk for the journal to be open: what a large batch writes at most.
const leastRoom = 2 << 20

// room fails where the disk has no room for a batch.
func (f *file) room() error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(f.path), &s); err != nil {
		return nil //nolint:nilerr // then the write that follows tells
	}
	if free := s.Bavail * uint64(s.Bsize); free < leastRoom {
		return &journal.StoreError{Kind: journal.Unavailable, Err: fmt.Errorf(
			"no room is left on the disk of %s (%d KiB, %d are needed): make some; the worker goes on by itself", f.path, free>>10, leastRoom>>10)}
	}
	return nil
}

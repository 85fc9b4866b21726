//go:build linux || darwin

package sqlite

import (
	"path/filepath"
	"syscall"
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
		return f.later("no room is left on its disk (%d KiB, %d are needed): make some", free>>10, leastRoom>>10)
	}
	return nil
}

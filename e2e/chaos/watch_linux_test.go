package chaos_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"retry-worker/internal/testkit"
)

// watchWrites calls wrote at each write to a file, which need not be there yet, until the test or its own end.
func watchWrites(t *testing.T, path string, wrote func()) (end func()) {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	testkit.Must(t, err)
	_, err = syscall.InotifyAddWatch(fd, filepath.Dir(path), syscall.IN_MODIFY)
	testkit.Must(t, err)
	events := os.NewFile(uintptr(fd), "inotify")
	name, done := []byte(filepath.Base(path)), make(chan struct{})
	go func() {
		defer close(done)
		for b := make([]byte, 16<<10); ; {
			n, err := events.Read(b)
			if err != nil {
				return // it was closed
			}
			for rest := b[:n]; len(rest) >= syscall.SizeofInotifyEvent; {
				size := syscall.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
				if bytes.Equal(bytes.TrimRight(rest[syscall.SizeofInotifyEvent:size], "\x00"), name) {
					wrote()
				}
				rest = rest[size:]
			}
		}
	}()
	return func() {
		_ = events.Close()
		<-done
	}
}

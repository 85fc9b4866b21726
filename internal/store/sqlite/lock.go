//go:build unix && !solaris && !aix

package sqlite

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// lock is the right to write a database. The system takes it back when the process ends, however it ends.
type lock struct{ held *os.File }

// lock takes the right, which a file beside the database stands for. That file is never removed: another
// process might be about to lock it.
func (f *file) lock() (*lock, error) {
	held, err := os.OpenFile(f.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, f.unwritable(err)
	}
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		by := holder(held)
		_ = held.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, f.later("another retry-worker%s writes it already: stop that one, name another file, or use "+
				"PostgreSQL for several workers", by)
		}
		return nil, f.wrong("its lock %s.lock cannot be taken (%v): name a file on a local disk", f.path, err)
	}
	l := &lock{held}
	if err := l.sign(); err != nil {
		_ = l.release()
		return nil, f.unwritable(err)
	}
	return l, nil
}

// sign notes who holds the lock, for the one that is refused.
func (l *lock) sign() error {
	if err := l.held.Truncate(0); err != nil {
		return err
	}
	_, err := l.held.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func holder(held *os.File) string {
	b := make([]byte, 32)
	n, _ := held.ReadAt(b, 0)
	if pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n]))); err == nil {
		return " (process " + strconv.Itoa(pid) + ")"
	}
	return ""
}

// release gives the right back.
func (l *lock) release() error { return l.held.Close() }

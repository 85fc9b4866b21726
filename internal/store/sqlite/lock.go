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
type lock struct {
	held *os.File
	// itself is the database: another name of it, or another place where it is mounted, has another lock beside it. Nil
	// while there is none. SQLite's own locks are of another kind, and end where the process closes the file: it is
	// closed last.
	itself *os.File
}

// lock takes the right, which a file beside the database stands for, and the database. That file is never removed:
// another process might be about to lock it.
func (f *file) lock() (*lock, error) {
	held, err := os.OpenFile(f.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, f.unwritable(err)
	}
	l := &lock{held: held}
	if err := f.flock(held, holder(held)); err != nil {
		_ = held.Close()
		return nil, err
	}
	if err := l.sign(); err != nil {
		_ = l.release()
		return nil, f.unwritable(err)
	}
	if err := l.take(f); err != nil {
		_ = l.release()
		return nil, err
	}
	return l, nil
}

// take locks the database where there is one, unless it is locked already.
func (l *lock) take(f *file) error {
	if l.itself != nil {
		return nil
	}
	var err error
	if itself, failed := os.Open(f.path); failed == nil { // else who opens it to write says what is wrong with it
		l.itself = itself
		err = f.flock(itself, " that knows it by another name")
	}
	return err
}

// flock locks the file for this process alone; by is who has it otherwise.
func (f *file) flock(held *os.File, by string) error {
	switch err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return f.later("another retry-worker%s writes it already: stop that one, name another file, or use "+
			"PostgreSQL for several workers", by)
	case err != nil:
		return f.wrong("its lock %s cannot be taken (%v): name a file on a local disk", held.Name(), err)
	}
	return nil
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

// release gives the right back, whatever child process has the files open still that is just being started.
func (l *lock) release() (err error) {
	for _, file := range []*os.File{l.itself, l.held} {
		if file != nil {
			err = errors.Join(err, syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
		}
	}
	return err
}

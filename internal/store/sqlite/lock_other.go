//go:build !unix || solaris || aix

package sqlite

type lock struct{}

// lock refuses: without it two processes could write one file.
func (f *file) lock() (*lock, error) {
	return nil, f.wrong("this system has no lock that keeps a second process away: use PostgreSQL")
}

func (l *lock) take(*file) error { return nil }

func (l *lock) release() error { return nil }

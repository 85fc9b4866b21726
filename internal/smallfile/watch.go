package smallfile

import (
	"context"
	"crypto/sha256"
	"sync/atomic"
	"time"
)

const (
	// LookEvery is how often a Watcher looks at its file, by its content: a file of a ConfigMap or a Secret changes by
	// links being swapped above it, which neither its time nor its size need tell.
	LookEvery = 10 * time.Second
	// Settle is how long a content must stay the same before it is taken up: an editor may empty the file before it
	// writes it.
	Settle = 500 * time.Millisecond
	// mostSettles in one look; a file that keeps changing is looked at again at the next.
	mostSettles = 10
)

// Watcher keeps the value that a file was made of last.
type Watcher[T any] struct {
	path    string
	read    func(path string) ([]byte, error)
	parse   func(path string, content []byte) (*T, error)
	told    func(inForce *T, rejected error)
	current atomic.Pointer[T]
	// inForce is the content that current was made of, rejected what was refused last; zero if nothing is.
	inForce  [sha256.Size]byte
	rejected snapshot
}

// snapshot is what a file was at one moment: its content by its hash, or why it could not be read.
type snapshot struct {
	sum    [sha256.Size]byte
	reason string
}

// Watch reads the file at path, makes its first value and returns a Watcher of it, which Run starts. Its error is read's
// or parse's.
func Watch[T any](
	path string, read func(path string) ([]byte, error), parse func(path string, content []byte) (*T, error),
) (*Watcher[T], error) {
	w := &Watcher[T]{path: path, read: read, parse: parse}
	content, seen, err := w.see()
	if err != nil {
		return nil, err
	}
	first, err := parse(path, content)
	if err != nil {
		return nil, err
	}
	w.inForce = seen.sum
	w.current.Store(first)
	return w, nil
}

// Current returns the value in force; never nil. Safe for concurrent use, and never waits: who works with it keeps it
// until the work is done.
func (w *Watcher[T]) Current() *T { return w.current.Load() }

// Run looks at the file every 10 s until ctx ends. It calls told with the value that a change, or the end of a rejection,
// has put in force; or, once for each content, with the reason why the file is not taken up: what is in force stays. It
// must be called once.
func (w *Watcher[T]) Run(ctx context.Context, told func(inForce *T, rejected error)) {
	w.told = told
	ticker := time.NewTicker(LookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.look(ctx)
		}
	}
}

// look takes the file up if it is new and has settled.
func (w *Watcher[T]) look(ctx context.Context) {
	_, seen, err := w.see()
	for range mostSettles {
		switch {
		case err == nil && seen.sum == w.inForce:
			if w.rejected != (snapshot{}) {
				w.take(w.Current(), seen)
			}
			return
		case seen == w.rejected:
			return // said already
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(Settle):
		}
		before := seen
		var content []byte
		if content, seen, err = w.see(); seen == before {
			var next *T
			if err == nil {
				next, err = w.parse(w.path, content)
			}
			if err == nil {
				w.take(next, seen)
				return
			}
			w.rejected = seen
			w.told(nil, err)
			return
		}
	}
}

// take puts a value in force, which ends a rejection.
func (w *Watcher[T]) take(value *T, seen snapshot) {
	w.inForce, w.rejected = seen.sum, snapshot{}
	w.current.Store(value)
	w.told(value, nil)
}

func (w *Watcher[T]) see() (content []byte, seen snapshot, err error) {
	if content, err = w.read(w.path); err != nil {
		return nil, snapshot{reason: err.Error()}, err
	}
	return content, snapshot{sum: sha256.Sum256(content)}, nil
}

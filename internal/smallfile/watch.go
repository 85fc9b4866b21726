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

// Hooks tell what a Watcher did. They are called one at a time by Run's goroutine, which needs all of them.
type Hooks[T any] struct {
	// Changed tells that next is in force in place of previous.
	Changed func(previous, next *T)
	// Rejected tells, once for each content, why the file is not taken up; what is in force stays.
	Rejected func(err error)
	// Recovered tells, after Changed if there was a change, that a file which was rejected is the one in force now.
	Recovered func(current *T)
}

// Watcher keeps the value that a file was made of last.
type Watcher[T any] struct {
	path    string
	read    func(path string) ([]byte, error)
	parse   func(path string, content []byte) (*T, error)
	hooks   Hooks[T]
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

// Run looks at the file every 10 s until ctx ends, and tells hooks what it did. It must be called once.
func (w *Watcher[T]) Run(ctx context.Context, hooks Hooks[T]) {
	w.hooks = hooks
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
			w.recovered()
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
			w.take(content, seen, err)
			return
		}
	}
}

// take puts a settled content in force, or rejects it.
func (w *Watcher[T]) take(content []byte, seen snapshot, err error) {
	var next *T
	if err == nil {
		next, err = w.parse(w.path, content)
	}
	if err != nil {
		w.rejected = seen
		w.hooks.Rejected(err)
		return
	}
	w.inForce = seen.sum
	previous := w.current.Swap(next)
	w.hooks.Changed(previous, next)
	w.recovered()
}

// recovered ends a rejection, if there was one.
func (w *Watcher[T]) recovered() {
	if w.rejected == (snapshot{}) {
		return
	}
	w.rejected = snapshot{}
	w.hooks.Recovered(w.Current())
}

func (w *Watcher[T]) see() (content []byte, seen snapshot, err error) {
	if content, err = w.read(w.path); err != nil {
		return nil, snapshot{reason: err.Error()}, err
	}
	return content, snapshot{sum: sha256.Sum256(content)}, nil
}

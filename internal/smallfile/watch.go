package smallfile

import (
	"context"
	"crypto/sha256"
	"sync/atomic"
	"time"
)

const (
	// LookEvery is how often a Watcher reads its file. It compares contents: Kubernetes changes files by swapping
	// links, which may leave time and size as they were.
	LookEvery = 10 * time.Second
	// Settle is how long a content must stay unchanged before it is taken up, since an editor may first empty the file.
	Settle = 500 * time.Millisecond
	// mostSettles bounds the waits in one look. A file that keeps changing is looked at again later.
	mostSettles = 10
)

// Watcher keeps the latest valid value of a file.
type Watcher[T any] struct {
	path    string
	read    func(path string) ([]byte, error)
	parse   func(path string, content []byte) (*T, error)
	told    func(inForce *T, rejected error)
	current atomic.Pointer[T]
	// inForce is the sum of current's content; rejected is what was refused last, or zero.
	inForce  [sha256.Size]byte
	rejected snapshot
}

// snapshot is a file at one moment: the hash of its content, or why it could not be read.
type snapshot struct {
	sum    [sha256.Size]byte
	reason string
}

// Watch reads and parses the file at path and returns a Watcher, which Run starts. Its error is that of read or parse.
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

// Current returns the value in force, never nil. It is safe for concurrent use and never waits. Callers keep the value
// until their work is done.
func (w *Watcher[T]) Current() *T { return w.current.Load() }

// Run looks at the file every 10 s until ctx ends. It calls told with the value that a change, or the end of a
// rejection, has put in force. If a content is refused, it calls told once with the reason; the old value stays in
// force. Call it once.
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
			return // already told
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

// take puts a value in force and ends a rejection.
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

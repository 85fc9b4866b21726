package smallfile

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync/atomic"
	"time"
)

// LookEvery is how often a Watcher reads its file. It compares contents: Kubernetes changes files by swapping links,
// which may leave time and size as they were.
const LookEvery = 5 * time.Second

// Watcher keeps the latest valid value of a file.
type Watcher[T any] struct {
	path    string
	read    func(path string) ([]byte, error)
	parse   func(path string, content []byte) (*T, error)
	current atomic.Pointer[T]
	// seen is the hash of the content at the last look, or why it could not be read; judged is what was put in force or
	// rejected last.
	seen, judged string
}

// Watch reads and parses the file at path and returns a Watcher, which Run starts. Its error is that of read or parse.
func Watch[T any](
	path string, read func(path string) ([]byte, error), parse func(path string, content []byte) (*T, error),
) (*Watcher[T], error) {
	w := &Watcher[T]{path: path, read: read, parse: parse}
	value, err := w.see()()
	if err != nil {
		return nil, err
	}
	w.judged = w.seen
	w.current.Store(value)
	return w, nil
}

// Current returns the value in force, never nil. It is safe for concurrent use and never waits. Callers keep the value
// until their work is done.
func (w *Watcher[T]) Current() *T { return w.current.Load() }

// Run looks at the file every 5 s until ctx ends. It calls told with the value that a change has put in force. If a
// content is refused, it calls told once with the reason; the old value stays in force. Call it once.
func (w *Watcher[T]) Run(ctx context.Context, told func(inForce *T, rejected error)) {
	ticker := time.NewTicker(LookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.look(told)
		}
	}
}

// look takes the file up if it is new, and as it was at the last look: an editor may first empty a file.
func (w *Watcher[T]) look(told func(inForce *T, rejected error)) {
	before := w.seen
	value := w.see()
	if w.seen != before || w.seen == w.judged {
		return
	}
	w.judged = w.seen
	next, err := value()
	if err == nil {
		w.current.Store(next)
	}
	told(next, err)
}

// see reads the file, and returns what parses it.
func (w *Watcher[T]) see() (value func() (*T, error)) {
	content, err := w.read(w.path)
	if err != nil {
		w.seen = err.Error()
		return func() (*T, error) { return nil, err }
	}
	w.seen = fmt.Sprint(sha256.Sum256(content))
	return func() (*T, error) { return w.parse(w.path, content) }
}

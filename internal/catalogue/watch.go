package catalogue

import (
	"context"
	"crypto/sha256"
	"sync/atomic"
	"time"
)

const (
	// lookEvery is how often a Watcher looks at its file, by its content: a ConfigMap's file changes by links being
	// swapped above it, which neither its time nor its size need tell.
	lookEvery = 10 * time.Second
	// settle is how long a content must stay the same before it is taken up: an editor may empty the file before it
	// writes it.
	settle = 500 * time.Millisecond
	// mostSettles in one look; a file that keeps changing is looked at again at the next.
	mostSettles = 10
)

// Hooks tell what a Watcher did. They are called one at a time by Run's goroutine and may be nil.
type Hooks struct {
	// Changed tells that next is in force in place of previous.
	Changed func(previous, next *Catalogue)
	// Rejected tells, once for each content, why the file is not taken up; the catalogue in force stays. err is an
	// *Error where the content is wrong, and otherwise says why the file cannot be read.
	Rejected func(err error)
	// Recovered tells, after Changed if there was a change, that a file which was rejected is the one in force now.
	Recovered func(current *Catalogue)
}

// Watcher takes a changed catalogue up while the program runs: whole or not at all.
type Watcher struct {
	path  string
	hooks Hooks

	current   atomic.Pointer[Catalogue]
	rejection atomic.Pointer[error]
	// rejected is what was refused last; zero if nothing is.
	rejected snapshot
}

// snapshot is what a file was at one moment: its content by its hash, or why it could not be read.
type snapshot struct {
	sum    [sha256.Size]byte
	reason string
}

// Watch makes a Watcher of the file at path, of which first was loaded. Run starts it. Where path is empty there is no
// file, and first stays in force.
func Watch(path string, first *Catalogue, hooks Hooks) *Watcher {
	w := &Watcher{path: path, hooks: hooks}
	w.current.Store(first)
	return w
}

// Current is the catalogue in force; never nil. Safe for concurrent use, and never waits: who works with it keeps it
// until the work is done.
func (w *Watcher) Current() *Catalogue { return w.current.Load() }

// Rejection is why the file, as it was seen last, is not the catalogue in force; nil if it is. Safe for concurrent use.
func (w *Watcher) Rejection() error {
	if err := w.rejection.Load(); err != nil {
		return *err
	}
	return nil
}

// Run looks at the file every 10 s until ctx ends. It must be called once.
func (w *Watcher) Run(ctx context.Context) {
	if w.path == "" {
		<-ctx.Done()
		return
	}
	ticker := time.NewTicker(lookEvery)
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
func (w *Watcher) look(ctx context.Context) {
	_, seen, err := w.read()
	for range mostSettles {
		if seen == w.rejected && w.Rejection() != nil {
			return // said already
		}
		if err == nil && seen.sum == sha256.Sum256(w.Current().content) {
			w.recovered()
			return
		}
		if !pause(ctx, settle) {
			return
		}
		before := seen
		var content []byte
		if content, seen, err = w.read(); seen == before {
			w.take(content, seen, err)
			return
		}
	}
}

// take puts a settled content in force, or rejects it.
func (w *Watcher) take(content []byte, seen snapshot, err error) {
	var next *Catalogue
	if err == nil {
		next, err = Parse(w.path, content)
	}
	if err != nil {
		w.rejected = seen
		w.rejection.Store(&err)
		if w.hooks.Rejected != nil {
			w.hooks.Rejected(err)
		}
		return
	}
	previous := w.current.Swap(next)
	if w.hooks.Changed != nil {
		w.hooks.Changed(previous, next)
	}
	w.recovered()
}

// recovered ends a rejection, if there was one.
func (w *Watcher) recovered() {
	if w.rejection.Swap(nil) != nil && w.hooks.Recovered != nil {
		w.hooks.Recovered(w.Current())
	}
}

func (w *Watcher) read() (content []byte, seen snapshot, err error) {
	if content, err = readFile(w.path); err != nil {
		return nil, snapshot{reason: err.Error()}, err
	}
	return content, snapshot{sum: sha256.Sum256(content)}, nil
}

// pause waits for d; false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

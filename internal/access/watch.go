package access

import (
	"context"
	"crypto/sha256"
	"sync/atomic"
	"time"
)

const (
	// lookEvery is how often a Watcher looks at its file, by its content: a Secret's file changes by links being swapped
	// above it, which neither its time nor its size need tell.
	lookEvery = 10 * time.Second
	// settle is how long a content must stay the same before it is taken up: an editor may empty the file before it
	// writes it.
	settle = 500 * time.Millisecond
	// mostSettles in one look; a file that keeps changing is looked at again at the next.
	mostSettles = 10
)

// WatchHooks tell what a Watcher did. They are called one at a time by Run's goroutine and may be nil.
type WatchHooks struct {
	// Changed tells that next is in force in place of previous.
	Changed func(previous, next *Tokens)
	// Rejected tells, once for each content, why the file is not taken up; the tokens in force stay. err is as Load's.
	Rejected func(err error)
	// Recovered tells, after Changed if there was a change, that a file which was rejected is the one in force now.
	Recovered func(current *Tokens)
}

// Watcher takes a changed tokens file up while the program runs: whole or not at all. A token taken out of it, and one
// whose role was lowered, has its effect within 11 s, on its sessions too. A file that is gone or without tokens is
// rejected like a wrong one: to shut everybody out, leave one token that nobody has, or stop the worker.
type Watcher struct {
	path     string
	hooks    WatchHooks
	current  atomic.Pointer[Tokens]
	rejected snapshot // what was refused last; zero if nothing is
}

// snapshot is what a file was at one moment: its content by its hash, or why it could not be read.
type snapshot struct {
	sum    [sha256.Size]byte
	reason string
}

// Watch makes a Watcher of the file at path, of which first was loaded. Run starts it.
func Watch(path string, first *Tokens, hooks WatchHooks) *Watcher {
	w := &Watcher{path: path, hooks: hooks}
	w.current.Store(first)
	return w
}

// Current is the tokens in force; never nil. Safe for concurrent use.
func (w *Watcher) Current() *Tokens { return w.current.Load() }

// Run looks at the file every 10 s until ctx ends. It must be called once.
func (w *Watcher) Run(ctx context.Context) {
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
		switch {
		case err == nil && seen.sum == w.Current().sum:
			w.recovered()
			return
		case seen == w.rejected:
			return // said already
		case !pause(ctx, settle):
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
	var next *Tokens
	if err == nil {
		next, err = Parse(w.path, content)
	}
	if err != nil {
		w.rejected = seen
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
	if w.rejected == (snapshot{}) {
		return
	}
	w.rejected = snapshot{}
	if w.hooks.Recovered != nil {
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

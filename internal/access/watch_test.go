package access_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/access"
)

const (
	maria    = "maria operator - "
	lookTime = 10*time.Second + 500*time.Millisecond // a look, and the time for which a change must stand
)

// watched is a Watcher of a file, and what it told.
type watched struct {
	t    *testing.T
	path string
	*access.Watcher

	mu      sync.Mutex // synctest.Wait is no edge for the race detector when the bubble slept last
	allTold []string
}

func (w *watched) tell(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.allTold = append(w.allTold, line)
}

// told since it was last asked.
func (w *watched) told() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.allTold
	w.allTold = nil
	return all
}

// watch starts a watcher in a synctest bubble, whose clock only moves when everybody waits.
func watch(t *testing.T, path string, test func(w *watched)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		first, err := access.Load(path)
		must(t, err)
		w := &watched{t: t, path: path}
		w.Watcher = access.Watch(path, first, access.WatchHooks{
			Changed: func(previous, next *access.Tokens) {
				w.tell(fmt.Sprintf("changed %s to %s", summary(previous), summary(next)))
			},
			Rejected:  func(err error) { w.tell("rejected " + err.Error()) },
			Recovered: func(current *access.Tokens) { w.tell("recovered " + summary(current)) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		test(w)
		cancel()
		<-done
	})
}

// summary is who has which role.
func summary(tokens *access.Tokens) string {
	var all []string
	for _, holder := range tokens.Holders() {
		all = append(all, holder.Name+"="+holder.Role.String())
	}
	return strings.Join(all, ",")
}

func (w *watched) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// want fails unless the watcher told exactly that since it was last asked, and these hold tokens now.
func (w *watched) want(holders string, told ...string) {
	w.t.Helper()
	if got := w.told(); !slices.Equal(got, told) {
		w.t.Errorf("told %q, want %q", got, told)
	}
	if got := summary(w.Current()); got != holders {
		w.t.Errorf("tokens in force: %s, want %s", got, holders)
	}
}

func TestWatcherTakesAChangeUp(t *testing.T) {
	watch(t, tokensFile(t, 0o600, maria+hashes[0]), func(w *watched) {
		w.wait(25 * time.Second)
		w.want("maria=operator")
		rewrite(t, w.path, "maria viewer - "+hashes[0], "ana admin - "+hashes[1])
		w.wait(5*time.Second + 499*time.Millisecond)
		w.want("maria=operator")
		w.wait(time.Millisecond)
		w.want("maria=viewer,ana=admin", "changed maria=operator to maria=viewer,ana=admin")
		w.wait(time.Minute)
		w.want("maria=viewer,ana=admin")
	})
}

func TestWatcherKeepsTheOldOne(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(t *testing.T, path string)
		want  string
	}{
		"wrong content":  {func(t *testing.T, path string) { rewrite(t, path, "maria boss - "+hashes[0]) }, ":1: role is"},
		"empty":          {func(t *testing.T, path string) { rewrite(t, path) }, ":1: there is no token"},
		"too large":      {func(t *testing.T, path string) { rewrite(t, path, strings.Repeat("#", 256<<10)) }, "more than 256 KiB"},
		"world-readable": {func(t *testing.T, path string) { must(t, os.Chmod(path, 0o644)) }, "has mode 0644"},
		"vanished":       {func(t *testing.T, path string) { must(t, os.Remove(path)) }, "no such file"},
		"a directory": {func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, os.Mkdir(path, 0o700))
		}, "no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			watch(t, tokensFile(t, 0o600, maria+hashes[0]), func(w *watched) {
				test.spoil(t, w.path)
				w.wait(lookTime)
				if told := w.told(); len(told) != 1 || !strings.HasPrefix(told[0], "rejected ") || !strings.Contains(told[0], test.want) || !strings.Contains(told[0], w.path) {
					t.Errorf("told %q, want a rejection with the file and %q", told, test.want)
				}
				w.wait(time.Minute)
				w.want("maria=operator") // nothing more is said
				must(t, os.RemoveAll(w.path))
				rewrite(t, w.path, maria+hashes[0])
				w.wait(time.Minute)
				w.want("maria=operator", "recovered maria=operator")
			})
		})
	}
}

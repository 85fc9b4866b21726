package catalogue

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/smallfile"
)

// watched is a Watcher of a file in a directory of its own, and what it told.
type watched struct {
	t    *testing.T
	path string
	*smallfile.Watcher[Catalogue]
	mu   sync.Mutex
	told []string
}

// tell is what is told.
func (w *watched) tell(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, text)
}

// heard is what was told since it was last asked.
func (w *watched) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := w.told
	w.told = nil
	return told
}

// watch starts a watcher in a synctest bubble, whose clock only moves when everybody waits. The file is what setUp
// makes of the path.
func watch(t *testing.T, content []byte, test func(w *watched)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policies.yaml")
	write(t, path, content)
	watchPath(t, path, test)
}

func watchPath(t *testing.T, path string, test func(w *watched)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		watcher, err := Open(path)
		mustDo(t, err)
		w := &watched{t: t, path: path, Watcher: watcher}
		told := func(next *Catalogue, err error) {
			if err != nil {
				w.tell("rejected " + strings.Split(err.Error(), "\n")[0])
				return
			}
			w.tell("in force " + retriesOf(next))
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx, told) }()
		test(w)
		cancel()
		<-done
	})
}

func retriesOf(c *Catalogue) string { return fmt.Sprint(c.Policies["tiss-submission"].MaxRetries) }

// wait lets d pass, and then everything that is to happen by then.
func (w *watched) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// look lets two looks at the file pass.
func (w *watched) look() { w.wait(2 * smallfile.LookEvery) }

// want fails unless the watcher told exactly that since it was last asked, and the retries in force are these.
func (w *watched) want(retries string, told ...string) {
	w.t.Helper()
	if heard := w.heard(); !slices.Equal(heard, told) {
		w.t.Errorf("told %q, want %q", heard, told)
	}
	if got := retriesOf(w.Current()); got != retries {
		w.t.Errorf("%s retries are in force, want %s", got, retries)
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	mustDo(t, os.WriteFile(path, content, 0o600))
}

// withRetries is the default with another maxRetries for tiss-submission.
func withRetries(n int) []byte {
	return bytes.Replace(defaultYAML, []byte("maxRetries: 5"), fmt.Appendf(nil, "maxRetries: %d", n), 1)
}

func TestWatcherTakesAChangeUp(t *testing.T) {
	watch(t, withRetries(5), func(w *watched) {
		kept := w.Current() // as an activation does
		w.wait(25 * time.Second)
		w.want("5")
		write(t, w.path, withRetries(2))
		w.wait(2*smallfile.LookEvery - time.Millisecond)
		w.want("5")
		w.wait(time.Millisecond)
		w.want("2", "in force 2")
		if kept.Policies["tiss-submission"].MaxRetries != 5 {
			t.Error("the catalogue that an activation began with was changed")
		}
		if v := w.Current().Version; v != versionOf(withRetries(2)) || w.Current().Policies["no-retry"].Catalogue != v {
			t.Errorf("version %s is in force, and the policies say %s", v, w.Current().Policies["no-retry"].Catalogue)
		}
		w.look()
		w.want("2")
	})
}

func TestWatcherKeepsTheOldOne(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(t *testing.T, path string)
		want  string
	}{
		"wrong content": {func(t *testing.T, path string) { write(t, path, withRetries(-2)) },
			"policies.tiss-submission.maxRetries: found -2, expected a whole number from 0 to 1000"},
		"empty":    {func(t *testing.T, path string) { write(t, path, nil) }, "file: found nothing"},
		"too long": {func(t *testing.T, path string) { write(t, path, make([]byte, 10<<20)) }, "file: found more than 1 MiB"},
		"vanished": {func(t *testing.T, path string) { mustDo(t, os.Remove(path)) }, "cannot be read: no such file"},
		"a directory": {func(t *testing.T, path string) {
			mustDo(t, os.Remove(path))
			mustDo(t, os.Mkdir(path, 0o700))
		}, "cannot be read: it is no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			watch(t, withRetries(5), func(w *watched) {
				test.spoil(t, w.path)
				w.look()
				if told := w.heard(); len(told) != 1 || !strings.HasPrefix(told[0], "rejected "+w.path) || !strings.Contains(told[0], test.want) {
					t.Errorf("told %q, want a rejection with the file and %q", told, test.want)
				}
				w.wait(time.Minute)
				w.want("5") // nothing more is said
				mustDo(t, os.RemoveAll(w.path))
				write(t, w.path, withRetries(5))
				w.wait(time.Minute)
				w.want("5", "in force 5")
			})
		})
	}
}

func mustDo(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWatcherWaitsForAnEditor: a file that is empty, or half, while it is written is never read so, and what is written
// in pieces is taken up once it stands still.
func TestWatcherWaitsForAnEditor(t *testing.T) {
	watch(t, withRetries(5), func(w *watched) {
		whole := withRetries(4)
		w.wait(smallfile.LookEvery - time.Millisecond)
		write(t, w.path, nil)
		for part := 1; part <= 5; part++ {
			w.wait(smallfile.LookEvery - 100*time.Millisecond)
			write(t, w.path, whole[:len(whole)*part/5])
			w.want("5")
		}
		w.look()
		w.want("4", "in force 4")
	})
}

// TestWatcherFollowsAConfigMap: Kubernetes mounts a file as a link to ..data/FILE, where ..data is a link to a dated
// directory, and swaps ..data by a rename. The old directory is gone afterwards.
func TestWatcherFollowsAConfigMap(t *testing.T) {
	dir := t.TempDir()
	publish := func(version string, content []byte) {
		mustDo(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		write(t, filepath.Join(dir, version, "policies.yaml"), content)
		mustDo(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
		mustDo(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	publish("..2026_01_01", withRetries(5))
	mustDo(t, os.Symlink("..data/policies.yaml", filepath.Join(dir, "policies.yaml")))
	watchPath(t, filepath.Join(dir, "policies.yaml"), func(w *watched) {
		publish("..2026_01_02", withRetries(6))
		mustDo(t, os.RemoveAll(filepath.Join(dir, "..2026_01_01")))
		w.look()
		w.want("6", "in force 6")
		publish("..2026_01_03", []byte("version: 1\n"))
		w.look()
		if told := w.heard(); len(told) != 1 || !strings.HasPrefix(told[0], "rejected ") {
			t.Errorf("told %q, want a rejection", told)
		}
		publish("..2026_01_04", withRetries(6))
		w.look()
		w.want("6", "in force 6")
	})
}

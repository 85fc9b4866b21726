package smallfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/smallfile"
	"retry-worker/internal/testkit"
)

// watched is a Watcher of a file, and what it told.
type watched struct {
	t    *testing.T
	path string
	*smallfile.Watcher[string]
	mu   sync.Mutex
	told []string
}

// watch watches a file in a bubble, whose clock only moves when everybody waits. A content that begins with a sign is refused.
func watch(t *testing.T, path string, test func(w *watched)) {
	t.Helper()
	read := func(path string) ([]byte, error) { return smallfile.Read(path, most) }
	parse := func(_ string, content []byte) (*string, error) {
		if text := string(content); text != "" && text[0] != '!' {
			return &text, nil
		}
		return nil, errors.New("found " + string(content))
	}
	synctest.Test(t, func(t *testing.T) {
		watcher, err := smallfile.Watch(path, read, parse)
		testkit.Must(t, err)
		w := &watched{t: t, path: path, Watcher: watcher}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			w.Run(ctx, func(next *string, err error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				if err != nil {
					w.told = append(w.told, "refused: "+err.Error())
				} else {
					w.told = append(w.told, *next)
				}
			})
		})
		test(w)
		cancel()
		running.Wait()
	})
}

func (w *watched) write(content string) {
	w.t.Helper()
	testkit.Must(w.t, os.WriteFile(w.path, []byte(content), 0o600))
}

// after lets d pass, and what is to happen by then. The watcher must have told this since it was last asked, a part of each, and
// that content be in force.
func (w *watched) after(d time.Duration, inForce string, told ...string) {
	w.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.EqualFunc(w.told, told, strings.Contains) || *w.Current() != inForce {
		w.t.Errorf("told %q, want %q; in force is %.20s, want %.20s", w.told, told, *w.Current(), inForce)
	}
	w.told = nil
}

// twoLooks at a file take up what stands still.
const twoLooks = 2 * smallfile.LookEvery

func TestWatcherTakesAChangeUp(t *testing.T) {
	watch(t, testkit.File(t, "file", []byte("a")), func(w *watched) {
		kept := w.Current() // as an activation does
		w.after(25*time.Second, "a")
		w.write("b")
		w.after(twoLooks-time.Millisecond, "a")
		w.after(time.Millisecond, "b", "b")
		w.after(twoLooks, "b")
		if *kept != "a" {
			t.Error("what was in force before was changed")
		}
	})
}

func TestWatcherKeepsTheOldOne(t *testing.T) {
	for want, spoil := range map[string]func(w *watched) error{
		"refused: found !": func(w *watched) error { w.write("!"); return nil },
		"refused: found ":  func(w *watched) error { w.write(""); return nil },
		"more than":        func(w *watched) error { w.write(strings.Repeat("x", most+1)); return nil },
		"no such file":     func(w *watched) error { return os.Remove(w.path) },
		"no regular file":  func(w *watched) error { return errors.Join(os.Remove(w.path), os.Mkdir(w.path, 0o700)) },
	} {
		watch(t, testkit.File(t, "file", []byte("a")), func(w *watched) {
			testkit.Must(t, spoil(w))
			w.after(twoLooks, "a", want)
			w.after(time.Minute, "a") // nothing more is said
			testkit.Must(t, os.RemoveAll(w.path))
			w.write("a")
			w.after(time.Minute, "a", "a")
		})
	}
}

// TestWatcherWaitsForAnEditor: a file that is empty, or half, while it is written is never read so, and what is written in pieces
// is taken up once it stands still.
func TestWatcherWaitsForAnEditor(t *testing.T) {
	watch(t, testkit.File(t, "file", []byte("a")), func(w *watched) {
		w.after(smallfile.LookEvery-time.Millisecond, "a")
		for _, written := range []string{"", "b", "bc", "bcd", "bcde"} {
			w.write(written)
			w.after(smallfile.LookEvery-100*time.Millisecond, "a")
		}
		w.after(twoLooks, "bcde", "bcde")
	})
}

// TestWatcherFollowsAConfigMap: Kubernetes mounts a file as a link to ..data/FILE, where ..data is a link to a dated directory, and
// swaps ..data by a rename. The old directory is gone afterwards.
func TestWatcherFollowsAConfigMap(t *testing.T) {
	dir := t.TempDir()
	publish := func(version, content string) {
		at := func(name string) string { return filepath.Join(dir, name) }
		testkit.Must(t, errors.Join(os.Mkdir(at(version), 0o700), os.WriteFile(at(version+"/file"), []byte(content), 0o600),
			os.Symlink(version, at("..data_tmp")), os.Rename(at("..data_tmp"), at("..data"))))
	}
	publish("..1", "a")
	testkit.Must(t, os.Symlink("..data/file", filepath.Join(dir, "file")))
	watch(t, filepath.Join(dir, "file"), func(w *watched) {
		publish("..2", "b")
		testkit.Must(t, os.RemoveAll(filepath.Join(dir, "..1")))
		w.after(twoLooks, "b", "b")
		publish("..3", "!")
		w.after(twoLooks, "b", "refused: ")
		publish("..4", "b")
		w.after(twoLooks, "b", "b")
	})
}

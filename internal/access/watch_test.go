package access_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/testkit"
)

const maria = "maria operator - "

// summary is who has which role.
func summary(tokens *access.Tokens) string {
	var all []string
	for _, holder := range tokens.Holders() {
		all = append(all, holder.Name+"="+holder.Role.String())
	}
	return strings.Join(all, ",")
}

// watch runs a test beside a watcher of a tokens file, in a synctest bubble, whose clock only moves when everybody waits.
// expect fails unless after that time those hold tokens, and the watcher has told what begins so since it was last asked.
func watch(t *testing.T, test func(path string, expect func(after time.Duration, holders string, told ...string))) {
	t.Helper()
	path := tokensFile(t, 0o600, maria+hashes[0])
	synctest.Test(t, func(t *testing.T) {
		first, err := access.Load(path)
		testkit.Must(t, err)
		var mu sync.Mutex // synctest.Wait is no edge for the race detector when the bubble slept last
		var all []string
		tell := func(line string) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, strings.ReplaceAll(line, path, "PATH"))
		}
		w := access.Watch(path, first, access.WatchHooks{
			Changed:   func(previous, next *access.Tokens) { tell("changed " + summary(previous) + " to " + summary(next)) },
			Rejected:  func(err error) { tell("rejected " + err.Error()) },
			Recovered: func(current *access.Tokens) { tell("recovered " + summary(current)) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.Run(ctx) })
		test(path, func(after time.Duration, holders string, told ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if got := summary(w.Current()); got != holders || len(all) != len(told) || len(told) > 0 && !strings.HasPrefix(all[0], told[0]) {
				t.Errorf("%s hold tokens, and told was %q; want %s and %q", got, all, holders, told)
			}
			all = nil
		})
		cancel()
		running.Wait()
	})
}

func TestWatcherTakesAChangeUp(t *testing.T) {
	watch(t, func(path string, expect func(time.Duration, string, ...string)) {
		expect(25*time.Second, "maria=operator")
		rewrite(t, path, "maria viewer - "+hashes[0], "ana admin - "+hashes[1])
		expect(5*time.Second+499*time.Millisecond, "maria=operator") // a look, and the time for which a change must stand
		expect(time.Millisecond, "maria=viewer,ana=admin", "changed maria=operator to maria=viewer,ana=admin")
		expect(time.Minute, "maria=viewer,ana=admin")
	})
}

func TestWatcherKeepsTheOldOne(t *testing.T) {
	for want, spoil := range map[string]func(path string) error{
		"PATH:1: role is":        func(path string) error { return os.WriteFile(path, []byte("maria boss - "+hashes[0]), 0o600) },
		"PATH:1: there is no":    func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"tokens file PATH lets":  func(path string) error { return os.Chmod(path, 0o644) },
		"tokens file PATH canno": os.Remove,
	} {
		t.Run(want, func(t *testing.T) {
			watch(t, func(path string, expect func(time.Duration, string, ...string)) {
				testkit.Must(t, spoil(path))
				expect(10*time.Second+500*time.Millisecond, "maria=operator", "rejected "+want)
				expect(time.Minute, "maria=operator") // nothing more is said
				testkit.Must(t, os.RemoveAll(path))
				rewrite(t, path, maria+hashes[0])
				expect(time.Minute, "maria=operator", "recovered maria=operator")
			})
		})
	}
}

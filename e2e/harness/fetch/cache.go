// Package fetch keeps in the user's cache what tests need from elsewhere: fetched and unpacked once for all processes.
package fetch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"retry-worker/e2e/harness"
)

// CacheDir returns the folder for what is fetched once. Without a usable home it is one in the temporary folder, of this user alone.
func CacheDir() (string, error) {
	if base, err := os.UserCacheDir(); err == nil {
		dir := filepath.Join(base, "retry-worker")
		if os.MkdirAll(dir, 0o755) == nil {
			return dir, nil
		}
	}
	dir := filepath.Join(os.TempDir(), "retry-worker-cache-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a cache folder: %w; set HOME or XDG_CACHE_HOME to a folder that can be written", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("look at the cache folder: %w", err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || int(owner.Uid) != os.Getuid() {
		return "", fmt.Errorf("the cache folder %s is somebody else's; set HOME or XDG_CACHE_HOME to a folder of yours", dir)
	}
	return dir, nil
}

// Item is a folder of the cache that is there whole or not at all.
type Item struct {
	Name  string // of the folder
	Proof string // a file that is in it, relative to the folder
	Fill  func(ctx context.Context, dir string) error
}

// Provide makes the item unless it is there, and returns its folder: filled in a folder beside it, then renamed. Of several
// processes one does the work and the others wait. say hears that it takes a while, and may be nil.
func (i Item) Provide(ctx context.Context, say func(string)) (dir string, err error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(cache, i.Name)
	if i.in(dir) {
		return dir, nil
	}
	if say != nil {
		say("fetch " + i.Name + ", once; this may take minutes")
	}
	held, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer held.Close()
	if i.in(dir) {
		return dir, nil
	}
	return dir, i.make(ctx, dir)
}

func (i Item) in(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, i.Proof))
	return err == nil
}

func (i Item) make(ctx context.Context, dir string) error {
	temporary := dir + ".partial"
	for _, left := range []string{temporary, dir} { // by a killed process; without its proof
		if err := os.RemoveAll(left); err != nil {
			return fmt.Errorf("clear the cache: %w", err)
		}
	}
	defer os.RemoveAll(temporary)
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return fmt.Errorf("make a folder in the cache: %w", err)
	}
	if err := i.Fill(ctx, temporary); err != nil {
		return err
	}
	if !i.in(temporary) {
		return fmt.Errorf("what was fetched has no %s in it", i.Proof)
	}
	if err := os.Rename(temporary, dir); err != nil {
		return fmt.Errorf("put what was fetched into place: %w", err)
	}
	return nil
}

// lockRetry is how often a taken lock is tried again.
const lockRetry = 100 * time.Millisecond

// lock waits for the lock on a file; close the file to let go of it.
func lock(ctx context.Context, path string) (*os.File, error) {
	for {
		if f, err := harness.TryLock(path); f != nil || err != nil {
			return f, err
		}
		select {
		case <-time.After(lockRetry):
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock %s: %w", path, ctx.Err())
		}
	}
}

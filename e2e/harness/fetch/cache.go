// Package fetch keeps in the user's cache what tests need from elsewhere: fetched and unpacked once for all processes.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// CacheDir is the folder for what is fetched once. Without a usable home it is one in the temporary
// folder, of this user alone.
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
		return "", fmt.Errorf("the cache folder %s belongs to somebody else; set HOME or XDG_CACHE_HOME to a folder of yours", dir)
	}
	return dir, nil
}

// TryLock takes the lock on a file, made if need be; nil where another process has it. The system lets
// go of it when the process ends. A child does not inherit it.
func TryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// lockRetry is how often a taken lock is tried again.
const lockRetry = 100 * time.Millisecond

// lock waits for the lock on a file; close the file to let go of it.
func lock(ctx context.Context, path string) (*os.File, error) {
	ticker := time.NewTicker(lockRetry)
	defer ticker.Stop()
	for {
		f, err := TryLock(path)
		if f != nil || err != nil {
			return f, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock %s: %w", path, ctx.Err())
		}
	}
}

// Item is a folder of the cache that is there whole or not at all.
type Item struct {
	Dir   string
	Proof string // a file that is in it, relative to Dir
	Fill  func(ctx context.Context, dir string) error
}

func (i Item) there() bool {
	_, err := os.Stat(filepath.Join(i.Dir, i.Proof))
	return err == nil
}

// Provide makes the item unless it is there: filled in a folder beside it, then renamed. Of several
// processes one does the work and the others wait.
func (i Item) Provide(ctx context.Context, r *Reporter) error {
	if i.there() {
		return nil
	}
	var held *os.File
	if err := r.During(Waiting, func() (err error) {
		held, err = lock(ctx, i.Dir+".lock")
		return err
	}); err != nil {
		return err
	}
	defer held.Close()
	if i.there() {
		return nil
	}
	temporary := i.Dir + ".partial" // a killed process may have left one
	if err := os.RemoveAll(temporary); err != nil {
		return fmt.Errorf("clear the cache: %w", err)
	}
	defer os.RemoveAll(temporary)
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return fmt.Errorf("make a folder in the cache: %w", err)
	}
	if err := i.Fill(ctx, temporary); err != nil {
		return err
	}
	if !(Item{Dir: temporary, Proof: i.Proof}).there() {
		return fmt.Errorf("what was fetched has no %s in it", i.Proof)
	}
	if err := os.RemoveAll(i.Dir); err != nil { // one without its proof
		return fmt.Errorf("clear the cache: %w", err)
	}
	if err := os.Rename(temporary, i.Dir); err != nil {
		return fmt.Errorf("put what was fetched into place: %w", err)
	}
	return nil
}

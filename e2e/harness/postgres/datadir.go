package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

const (
	temporaryPrefix = "retry-worker-postgres-"
	ownerLock       = "owner.lock"
	// youngest a folder without owner is when it is swept: a younger one may be about to be locked.
	youngest = time.Minute
)

// dataDir is a server's folder: data, and its program where that could not be run in its place.
type dataDir struct {
	path string
	lock *os.File // held while the folder is used
	keep bool     // it is the caller's
}

// openDataDir makes a server's folder; an empty path is a temporary one, removed by close. What killed
// processes left of that kind is removed first.
func openDataDir(path string) (d *dataDir, err error) {
	d = &dataDir{keep: path != ""}
	if d.keep {
		if d.path, err = filepath.Abs(path); err == nil {
			err = os.MkdirAll(d.path, 0o755)
		}
	} else if parent, errParent := temporaryParent(); errParent != nil {
		err = errParent
	} else {
		sweep(parent)
		d.path, err = os.MkdirTemp(parent, temporaryPrefix)
	}
	if err != nil {
		return nil, fmt.Errorf("make a folder for PostgreSQL's data: %w", err)
	}
	if err = d.acquire(); err == nil {
		err = d.admit()
	}
	if err != nil {
		_ = d.close() // the error that matters is the first
		return nil, fmt.Errorf("make PostgreSQL's folder %s: %w", d.path, err)
	}
	return d, nil
}

// temporaryParent is where the server's user can get to: the system's temporary folder, if need be the
// usual ones instead.
func temporaryParent() (string, error) {
	places := []string{os.TempDir(), "/var/tmp", "/tmp"}
	i := slices.IndexFunc(places, func(dir string) bool { return barrier(dir) == "" })
	if i < 0 {
		return "", fmt.Errorf("none of %v can be entered by the user nobody, whom PostgreSQL runs as in place of root", places)
	}
	return places[i], nil
}

// acquire takes the folder's lock, unless it is held, and ends what is left of a server whose owner is gone.
func (d *dataDir) acquire() (err error) {
	if d.held() {
		return nil
	}
	if d.lock, err = fetch.TryLock(filepath.Join(d.path, ownerLock)); err != nil {
		return err
	}
	if !d.held() {
		return fmt.Errorf("another server uses %s", d.path)
	}
	d.killAll(0)
	return nil
}

// held tells whether what runs in the folder is ours.
func (d *dataDir) held() bool { return d.lock != nil }

// release lets go of a folder that is the caller's, while no server runs.
func (d *dataDir) release() error {
	if !d.keep {
		return nil // else another's sweep would take it
	}
	return d.unlock()
}

// admit lets the server's user in.
func (d *dataDir) admit() error {
	if harness.Nobody() == nil {
		return nil
	}
	if !d.keep {
		if err := os.Chmod(d.path, 0o755); err != nil {
			return err
		}
	}
	if closed := barrier(d.path); closed != "" {
		return fmt.Errorf("the user nobody, whom PostgreSQL runs as in place of root, cannot enter %s; choose a folder below /tmp or allow it by chmod o+x", closed)
	}
	return nil
}

func (d *dataDir) data() string { return filepath.Join(d.path, "data") }

// makeOwned makes an empty folder that is the server's user's.
func (d *dataDir) makeOwned(path string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return own(path)
}

// writeOwned writes a file that only the server's user reads.
func (d *dataDir) writeOwned(path, content string) error {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return err
	}
	return own(path)
}

func own(path string) error {
	if u := harness.Nobody(); u != nil {
		return os.Chown(path, int(u.Uid), int(u.Gid))
	}
	return nil
}

// barrier is the first folder on the way to a place, itself included, that the server's user cannot
// enter; empty where there is none.
func barrier(dir string) string {
	u := harness.Nobody()
	if u == nil {
		return ""
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return dir
	}
	for ; ; resolved = filepath.Dir(resolved) {
		info, err := os.Stat(resolved)
		if err != nil || !enters(info, u) {
			return resolved
		}
		if resolved == filepath.Dir(resolved) {
			return ""
		}
	}
}

// enters tells whether a user may go through a folder, by its mode.
func enters(info fs.FileInfo, u *syscall.Credential) bool {
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return false
	}
	mode := info.Mode().Perm()
	switch {
	case owner.Uid == u.Uid:
		return mode&0o100 != 0
	case owner.Gid == u.Gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

// close lets go of the folder, and removes it where it is temporary.
func (d *dataDir) close() error {
	if d.keep {
		return d.release()
	}
	return d.remove()
}

// remove removes the folder, in which no server runs, and lets go of it last: nobody else takes it half
// removed.
func (d *dataDir) remove() error {
	d.freeMemory()
	return errors.Join(os.RemoveAll(d.path), d.unlock())
}

// freeMemory gives back the shared memory of a killed server, which outlives its processes; the next
// server on the same data would do so.
func (d *dataDir) freeMemory() {
	var key, id int
	lines := d.lockFile()
	if len(lines) < 7 {
		return // it was stopped in order
	}
	if n, err := fmt.Sscan(lines[6], &key, &id); n == 2 && err == nil {
		freeSegment(key, id)
	}
}

// lockFile is the lines of the server's lock file: the first its process id, the seventh the key and id of
// its shared memory, the eighth its state. None where it does not run and was not killed.
func (d *dataDir) lockFile() []string {
	content, err := os.ReadFile(filepath.Join(d.data(), "postmaster.pid"))
	if err != nil {
		return nil
	}
	return strings.Split(string(content), "\n")
}

func (d *dataDir) unlock() error {
	if !d.held() {
		return nil
	}
	err := d.lock.Close()
	d.lock = nil
	return err
}

// sweep ends what is left of servers whose owners are gone, and removes their temporary folders.
func sweep(parent string) {
	found, _ := filepath.Glob(filepath.Join(parent, temporaryPrefix+"*", ownerLock))
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < youngest {
			continue
		}
		f, err := fetch.TryLock(path)
		if f == nil || err != nil {
			continue
		}
		d := &dataDir{path: filepath.Dir(path), lock: f}
		d.killAll(0)
		_ = d.remove() // the next start tries again
	}
}

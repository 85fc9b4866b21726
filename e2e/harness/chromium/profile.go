package chromium

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

const (
	profilePrefix = "retry-worker-chromium-"
	ownerLock     = "owner.lock"
	// youngest a folder without owner is when it is swept: a younger one may be about to be locked.
	youngest = time.Minute
	// removeTries, removePause: what a killed browser's helpers still write may come between.
	removeTries = 50
	removePause = 20 * time.Millisecond
)

// profile is a browser's folder: its home, its temporary files and all it remembers.
type profile struct {
	path string
	lock *os.File
}

// newProfile makes a folder that only the browser's user enters. What killed processes left of that kind is
// removed first.
func newProfile() (*profile, error) {
	parent, err := parentFolder()
	if err != nil {
		return nil, err
	}
	sweep(parent)
	p := &profile{}
	if p.path, err = os.MkdirTemp(parent, profilePrefix); err != nil {
		return nil, fmt.Errorf("make a folder for Chromium: %w", err)
	}
	if p.lock, err = fetch.TryLock(filepath.Join(p.path, ownerLock)); err == nil {
		err = os.Mkdir(p.temporary(), 0o700)
	}
	if err == nil {
		err = p.giveAway()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make Chromium's folder %s: %w", p.path, err), p.remove())
	}
	return p, nil
}

func (p *profile) temporary() string { return filepath.Join(p.path, "tmp") }

// giveAway makes the folder the browser's user's.
func (p *profile) giveAway() error {
	u := harness.Nobody()
	if u == nil {
		return nil
	}
	return errors.Join(os.Chown(p.path, int(u.Uid), int(u.Gid)), os.Chown(p.temporary(), int(u.Uid), int(u.Gid)))
}

// parentFolder is where the browser's user can get to: the system's temporary folder, if need be the usual
// ones instead.
func parentFolder() (string, error) {
	places := []string{os.TempDir(), "/var/tmp", "/tmp"}
	i := 0
	if harness.Nobody() != nil {
		i = slices.IndexFunc(places, enterable)
	}
	if i < 0 {
		return "", fmt.Errorf("none of %v can be entered by the user nobody, whom Chromium runs as in place of root", places)
	}
	return places[i], nil
}

// remove removes the folder, in which no browser runs, and lets go of it last.
func (p *profile) remove() error {
	var err error
	for range removeTries {
		if err = os.RemoveAll(p.path); err == nil {
			break
		}
		time.Sleep(removePause)
	}
	if p.lock != nil {
		err = errors.Join(err, p.lock.Close())
		p.lock = nil
	}
	return err
}

// sweep removes the folders of browsers whose owners are gone, and with them the browsers.
func sweep(parent string) {
	found, _ := filepath.Glob(filepath.Join(parent, profilePrefix+"*", ownerLock))
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < youngest {
			continue
		}
		if f, err := fetch.TryLock(path); f != nil && err == nil {
			_ = (&profile{path: filepath.Dir(path), lock: f}).remove() // the next start tries again
		}
	}
}

// Package engine runs a real Zeebe broker on this machine, fetched by Maven, for tests and for `make run`.
package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Versions of Zeebe that the project is tried on, the default first.
var Versions = []string{"8.5.8", "8.6.0"}

// launcher of the broker, in Zeebe's folder.
const launcher = "bin/broker"

// Fetch downloads a version of Zeebe by Maven's coordinates, through the user's own Maven settings,
// and unpacks it into the user's cache. It returns Zeebe's folder, at once where it is there already.
// progress may be nil. Several processes may call it at a time. An error is one line; it is (or wraps)
// Missing where something must be installed.
func Fetch(ctx context.Context, version string, progress func(Progress)) (home string, err error) {
	if err := checkVersion(version); err != nil {
		return "", err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	r := newReporter("Zeebe "+version, progress)
	zeebe := item{dir: filepath.Join(cache, "zeebe-"+version), proof: launcher}
	zeebe.fill = func(ctx context.Context, dir string) error { return download(ctx, version, dir, r) }
	if err := zeebe.provide(ctx, r); err != nil {
		return "", fmt.Errorf("fetch Zeebe %s: %w", version, err)
	}
	return zeebe.dir, nil
}

// Missing is what a person must install, as an error of one line that says how.
type Missing string

func (m Missing) Error() string { return string(m) }

func checkVersion(version string) error {
	if slices.Contains(Versions, version) {
		return nil
	}
	return fmt.Errorf("the Zeebe version is %q, expected one of %s", version, strings.Join(Versions, ", "))
}

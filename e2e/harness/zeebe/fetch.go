// Package engine runs a real Zeebe broker on this machine, fetched by Maven, for tests and for `make run`.
package zeebe

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"retry-worker/e2e/harness/fetch"
)

// Versions of Zeebe that the project is tried on, the default first.
var Versions = []string{"8.5.8", "8.6.0"}

// launcher of the broker, in Zeebe's folder.
const launcher = "bin/broker"

// Fetch downloads a version of Zeebe by Maven's coordinates, through the user's own Maven settings,
// and unpacks it into the user's cache. It returns Zeebe's folder, at once where it is there already.
// progress may be nil. Several processes may call it at a time. An error is one line; it is (or wraps)
// harness.Missing where something must be installed.
func Fetch(ctx context.Context, version string, progress func(Progress)) (home string, err error) {
	if err := checkVersion(version); err != nil {
		return "", err
	}
	cache, err := fetch.CacheDir()
	if err != nil {
		return "", err
	}
	r := fetch.NewReporter("Zeebe "+version, progress)
	zeebe := fetch.Item{Dir: filepath.Join(cache, "zeebe-"+version), Proof: launcher}
	zeebe.Fill = func(ctx context.Context, dir string) error { return download(ctx, version, dir, r) }
	if err := zeebe.Provide(ctx, r); err != nil {
		return "", fmt.Errorf("fetch Zeebe %s: %w", version, err)
	}
	return zeebe.Dir, nil
}

// Progress is how far fetching is.
type Progress = fetch.Progress

// Step of a preparation.
type Step = fetch.Step

// The steps, in their order.
const (
	Waiting     = fetch.Waiting
	Downloading = fetch.Downloading
	Unpacking   = fetch.Unpacking
)

// download fetches the distribution into dir by Maven, and unpacks it there.
func download(ctx context.Context, version, dir string, r *fetch.Reporter) error {
	zeebe := fetch.Artifact{Group: "io.camunda", Name: "camunda-zeebe", Version: version, Packaging: "tar.gz"}
	return zeebe.Download(ctx, dir, FindJava, r, func(file string) error {
		return fetch.GunzipTar(ctx, file, dir, fetch.Layout{Strip: true}, r)
	})
}

func checkVersion(version string) error {
	if slices.Contains(Versions, version) {
		return nil
	}
	return fmt.Errorf("the Zeebe version is %q, expected one of %s", version, strings.Join(Versions, ", "))
}

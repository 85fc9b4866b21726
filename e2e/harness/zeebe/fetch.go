// Package zeebe runs a real Zeebe broker on this machine, fetched by Maven, for tests and for `make run`.
package zeebe

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

// Versions of Zeebe that the project is tried on, the default first.
var Versions = []string{"8.5.8", "8.6.0"}

// launcher of the broker, in Zeebe's folder.
const launcher = "bin/broker"

// Fetch downloads a version of Zeebe by Maven's coordinates, through the user's own Maven settings, and unpacks it into the user's
// cache. It returns Zeebe's folder, at once where it is there already. say hears of it before, and may be nil. Several processes may
// call it at a time. An error is one line; it wraps harness.Missing where something must be installed.
func Fetch(ctx context.Context, version string, say func(string)) (home string, err error) {
	if !slices.Contains(Versions, version) {
		return "", fmt.Errorf("the Zeebe version is %q, expected one of %s", version, strings.Join(Versions, ", "))
	}
	zeebe := fetch.Item{Name: "zeebe-" + version, Proof: launcher, Fill: func(ctx context.Context, dir string) error {
		artifact := fetch.Artifact{Group: "io.camunda", Name: "camunda-zeebe", Version: version, Packaging: "tar.gz"}
		return artifact.Download(ctx, dir, FindJava, func(file string) error { return unpack(file, dir) })
	}}
	if home, err = zeebe.Provide(ctx, say); err != nil {
		return "", fmt.Errorf("fetch Zeebe %s: %w", version, err)
	}
	return home, nil
}

// provideClasses returns an archive of Zeebe's classes as Java has loaded and checked them, with which a broker starts with half
// the work. A broker makes it once, as it ends. Where Java is another by then, it does without.
func (b *Broker) provideClasses(ctx context.Context, say func(string)) (string, error) {
	const name = "classes.jsa"
	archive := fetch.Item{Name: "zeebe-" + b.options.Version + "-classes", Proof: name, Fill: func(ctx context.Context, dir string) error {
		if err := os.RemoveAll(filepath.Join(b.home, "config")); err != nil { // Java archives nothing beside a folder of files
			return err
		}
		first := &Broker{options: Options{Version: b.options.Version}, home: b.home, java: b.java,
			classes: "-XX:ArchiveClassesAtExit=" + filepath.Join(dir, name)}
		if err := first.start(ctx); err != nil {
			return err
		}
		return errors.Join(first.current().Stop(ctx, startTime), first.folder.Remove())
	}}
	dir, err := archive.Provide(ctx, say)
	if err != nil {
		return "", fmt.Errorf("archive the classes of Zeebe %s: %w", b.options.Version, err)
	}
	return filepath.Join(dir, name), nil
}

func unpack(file, dir string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	content, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	return fetch.Untar(content, dir, true)
}

// Require fetches versions of Zeebe, and a Java, unless they are there; see [harness.Require].
func Require(t testing.TB, versions ...string) {
	t.Helper()
	harness.SkipIfShort(t)
	ctx, cancel := context.WithTimeout(context.Background(), harness.FetchTime)
	defer cancel()
	_, err := ProvideJava(ctx, nil)
	for _, version := range versions {
		if err == nil {
			_, err = Fetch(ctx, version, nil)
		}
	}
	harness.Require(t, "Zeebe", err, "apt-get install -y maven openjdk-21-jre-headless")
}

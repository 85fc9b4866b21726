// Package build builds the program under test.
package build

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Worker builds retry-worker into dir as `make build` does, so that their caches are one, and returns its path.
func Worker(dir string) (path string, err error) {
	return Program(dir, "retry-worker", "retry-worker/cmd/retry-worker")
}

// Program builds a package of this module into dir, in the same way.
func Program(dir, name, source string) (path string, err error) {
	path = filepath.Join(dir, name)
	command := exec.Command("go", "build", "-trimpath", "-o", path, source)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program under test: %w\n%s", err, out)
	}
	return path, nil
}

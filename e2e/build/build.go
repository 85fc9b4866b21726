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
	path = filepath.Join(dir, "retry-worker")
	command := exec.Command("go", "build", "-trimpath", "-o", path, "retry-worker/cmd/retry-worker")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program under test: %w\n%s", err, out)
	}
	return path, nil
}

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/testkit"
)

// Binary returns the path of the program under test, retry-worker, which is built once a test process. It leaves the test out
// with -short.
func Binary(t testing.TB) string {
	t.Helper()
	return built(t, retryWorker)
}

// BinaryWithClock returns the path of the program whose clock tests move (see [SharedClock]), built as Binary's.
func BinaryWithClock(t testing.TB) string {
	t.Helper()
	return built(t, withClock)
}

// DevBinary returns the path of the development engine's program, retry-worker-dev, built as Binary's.
func DevBinary() (string, error) { return development() }

var (
	retryWorker = sync.OnceValues(func() (string, error) { return build("retry-worker", "retry-worker/cmd/retry-worker") })
	withClock   = sync.OnceValues(func() (string, error) { return build("moved", "retry-worker/e2e/harness/moved") })
	development = sync.OnceValues(func() (string, error) { return build("retry-worker-dev", "retry-worker/cmd/retry-worker-dev") })
)

func built(t testing.TB, binary func() (string, error)) string {
	t.Helper()
	SkipIfShort(t)
	path, err := binary()
	testkit.Must(t, err)
	return path
}

// build builds a package of this module as `make build` does, so that their caches are one, into a folder that everybody may
// enter and that is removed at the end.
func build(name, source string) (path string, err error) {
	folder, err := NewFolder(name)
	if err != nil {
		return "", err
	}
	AtEnd(folder.Remove)
	path = folder.Join(name)
	command := exec.Command("go", "build", "-trimpath", "-o", path, source)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program under test: %w\n%s", err, out)
	}
	return path, nil
}

// RunCommand runs a command of a program to its end, with that environment, and returns what it printed and its exit status.
func RunCommand(t testing.TB, binary string, environment []string, args ...string) (output string, code int) {
	t.Helper()
	const most = 10 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	var out strings.Builder
	_, err := Run(ctx, Command{Path: binary, Args: args, Env: environment, Output: &out})
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return out.String(), exit.ExitCode()
	} else if err != nil {
		t.Fatalf("retry-worker %s: %v; it printed\n%s", strings.Join(args, " "), err, out.String())
	}
	return out.String(), 0
}

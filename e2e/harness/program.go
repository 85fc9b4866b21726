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

// Binary returns the path of the program under test, retry-worker, which each test process builds once. With -short
// it skips the test.
func Binary(t testing.TB) string {
	t.Helper()
	return built(t, retryWorker)
}

// BinaryWithClock is Binary for the program whose clock tests can move (see [SharedClock]).
func BinaryWithClock(t testing.TB) string {
	t.Helper()
	return built(t, withClock)
}

// DevBinary returns the path of the development engine's program, retry-worker-dev, built once a test process.
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

// build builds a package of this module as `make build` does, so that the two share the cache, into a folder that
// every user may enter and that is removed at the end.
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

// RunCommand runs a program's command to its end, with that environment, and returns its output and exit status.
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

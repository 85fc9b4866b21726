package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"

	"retry-worker/e2e/harness"
)

// Once returns a function that finds a program, and where it is Missing installs it and looks again; whatever comes of the first call
// is what all get.
func Once[T any](find func(context.Context) (T, error), install func(context.Context) error) func() (T, error) {
	return sync.OnceValues(func() (T, error) {
		ctx, cancel := context.WithTimeout(context.Background(), harness.FetchTime)
		defer cancel()
		found, err := find(ctx)
		if _, missing := errors.AsType[harness.Missing](err); !missing {
			return found, err
		}
		if errInstall := install(ctx); errInstall != nil {
			return found, harness.Missing(fmt.Sprintf("%v; %v", err, errInstall))
		}
		return find(ctx)
	})
}

// Debian installs packages by apt-get, without what they merely recommend, where this process is root, and
// says so before. Several processes may call it at a time: apt-get has a lock of its own, for which it waits. The error is
// one line, for a person who must install them; program is what the line calls them.
func Debian(ctx context.Context, program string, packages ...string) error {
	command := "apt-get install -y " + strings.Join(packages, " ")
	if os.Geteuid() != 0 {
		return errors.New("only root may install it: " + command)
	}
	harness.Say(program + " is not there: installing Debian's by " + command)
	if err := AptGet(ctx, "/", "update"); err != nil {
		return err
	}
	return AptGet(ctx, "/", append([]string{"install", "-y", "--no-install-recommends"}, packages...)...)
}

// AptGet runs apt-get in dir.
func AptGet(ctx context.Context, dir string, args ...string) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return errors.New("there is no apt-get")
	}
	_, err = harness.Run(ctx, harness.Command{
		Path: apt, Args: append([]string{"-q", "-o", "DPkg::Lock::Timeout=300"}, args...), Dir: dir,
		Env: append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"),
	})
	return err
}

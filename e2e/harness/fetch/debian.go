package fetch

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"

	"retry-worker/e2e/harness"
)

// Debian installs packages by apt-get, without recommended ones, if this process is root, and says so before. Several
// processes may call it at a time: it waits for apt-get's own lock. The error is one line for a person who must
// install the packages; program is what that line calls them.
func Debian(ctx context.Context, program string, packages ...string) error {
	command := "apt-get install -y " + strings.Join(packages, " ")
	if os.Geteuid() != 0 {
		return errors.New("only root may install it: " + command)
	}
	harness.Say(program + " is not there: installing Debian's by " + command)
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return errors.New("there is no apt-get")
	}
	for _, args := range [][]string{{"update"}, append([]string{"install", "-y", "--no-install-recommends"}, packages...)} {
		_, err := harness.Run(ctx, harness.Command{
			Path: apt, Args: append([]string{"-q", "-o", "DPkg::Lock::Timeout=300"}, args...), Dir: "/",
			Env: append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

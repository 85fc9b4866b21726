package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"retry-worker/e2e/harness"
)

const (
	// debianTime bounds what apt-get does, and debianGrace its end.
	debianTime  = 10 * time.Minute
	debianGrace = 10 * time.Second
)

// Debian installs packages by apt-get, without what they merely recommend, where this process is root; say hears the command
// before, and may be nil. Several processes may call it at a time: apt-get has a lock of its own, for which it waits. The
// error is one line, for a person who must install them; program is what the line calls them.
func Debian(ctx context.Context, program string, say func(string), packages ...string) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return errors.New("install " + program)
	}
	command := "apt-get install -y " + strings.Join(packages, " ")
	if os.Geteuid() != 0 {
		return errors.New("only root may install it: " + command)
	}
	if say != nil {
		say(program + " is not there: installing Debian's by " + command)
	}
	ctx, cancel := context.WithTimeout(ctx, debianTime)
	defer cancel()
	wait := []string{"-q", "-y", "-o", "DPkg::Lock::Timeout=300"}
	for _, args := range [][]string{{"update"}, append([]string{"install", "--no-install-recommends"}, packages...)} {
		if err := aptGet(ctx, apt, append(wait, args...)); err != nil {
			return fmt.Errorf("`apt-get %s` failed: %w", strings.Join(args, " "), err)
		}
	}
	return nil
}

// aptGet runs to its end, or until ctx ends.
func aptGet(ctx context.Context, apt string, args []string) error {
	p, err := harness.Start(harness.Command{Path: apt, Args: args, Env: append(os.Environ(), "DEBIAN_FRONTEND=noninteractive"), Dir: "/"})
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(ctx.Err(), p.Stop(context.WithoutCancel(ctx), debianGrace))
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("%w: %s", err, p.LastLine())
	}
	return nil
}

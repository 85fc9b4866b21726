// Package mail runs a real mail server, Exim, on this machine, for tests of what is sent by SMTP: with STARTTLS, implicit
// TLS, passwords, and an inbox that a test reads.
package mail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

const (
	// InstallCommand is what a person types where this package may not.
	InstallCommand = "apt-get install -y exim4-daemon-light"
	// toolTime bounds one `exim4 -bV`.
	toolTime = 10 * time.Second
)

// commands are the names and places that Exim goes by, the first choice first.
var commands = []string{"exim4", "exim", "/usr/sbin/exim4", "/usr/sbin/exim", "/usr/exim/bin/exim", "/opt/homebrew/bin/exim", "/usr/local/bin/exim"}

// others are commands of any mail server: where one is, or where installing Exim would start it as a service, nothing is
// installed, for that would change what the machine does with its mail.
var others = []string{"/usr/sbin/sendmail", "/run/systemd/system"}

// Install is an Exim that can be started. It is a value; copies are fine.
type Install struct {
	Path    string
	Version string // "4.96"
}

// Provide returns an installed Exim, or else Debian's, which is installed by apt-get where this process is root on a machine
// that has no mail server and starts no services; say hears of it before, and may be nil. The error is one line; it wraps
// harness.Missing where a person must install something.
func Provide(ctx context.Context, say func(string)) (Install, error) {
	i, err := find(ctx)
	if _, missing := errors.AsType[harness.Missing](err); !missing {
		return i, err
	}
	for _, path := range others {
		if _, there := os.Stat(path); there == nil {
			return Install{}, harness.Missing(fmt.Sprintf("%v; it is not installed by itself where %s is", err, path))
		}
	}
	if errApt := fetch.Debian(ctx, "Exim", say, "exim4-daemon-light"); errApt != nil {
		return Install{}, harness.Missing(fmt.Sprintf("%v; %v", err, errApt))
	}
	return find(ctx)
}

var versionLine = regexp.MustCompile(`^Exim version (\d[\w.]*)`)

// find is the first installed Exim that runs and has TLS; Missing where there is none.
func find(ctx context.Context) (Install, error) {
	for _, name := range commands {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := describe(ctx, path)
		if ctx.Err() != nil {
			return Install{}, fmt.Errorf("find Exim: %w", ctx.Err())
		}
		m := versionLine.FindSubmatch(out)
		if err == nil && m != nil && hasTLS.Match(out) {
			return Install{Path: path, Version: string(m[1])}, nil
		}
	}
	return Install{}, harness.Missing("no Exim with TLS")
}

var hasTLS = regexp.MustCompile(`Support for:.* (GnuTLS|OpenSSL)`)

// describe is what an Exim says of itself, read with no settings of the machine's.
func describe(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-C", os.DevNull, "-bV")
	cmd.Dir, cmd.WaitDelay = "/", time.Second
	cmd.SysProcAttr = attributes()
	return cmd.Output()
}

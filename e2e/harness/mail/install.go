// Package mail runs a real mail server, Exim, on this machine, for tests of what is sent by SMTP: with STARTTLS, implicit
// TLS, passwords, and an inbox that a test reads.
package mail

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

// commands are the names and places that Exim goes by, the first choice first.
var commands = []string{"exim4", "exim", "/usr/sbin/exim4", "/usr/sbin/exim", "/opt/homebrew/bin/exim"}

// others are commands of any mail server: where one is, or where installing Exim would start it as a service, nothing is
// installed, for that would change what the machine does with its mail.
var others = []string{"/usr/sbin/sendmail", "/run/systemd/system"}

// install is an Exim that can be started. It is a value; copies are fine.
type install struct {
	Path    string
	Version string // "4.96"
}

// require returns an installed Exim, or else Debian's, which is installed by apt-get where this process is root on a machine that has
// no mail server and starts no services. Where there is none to be had, the test ends as [harness.Require] says.
func require(t testing.TB) install {
	t.Helper()
	harness.SkipIfShort(t)
	i, err := provided()
	harness.Require(t, "Exim", err, "apt-get install -y exim4-daemon-light")
	return i
}

var provided = fetch.Once(find, func(ctx context.Context) error {
	for _, path := range others {
		if _, there := os.Stat(path); there == nil {
			return fmt.Errorf("it is not installed by itself where %s is", path)
		}
	}
	return fetch.Debian(ctx, "Exim", "exim4-daemon-light")
})

var (
	versionLine = regexp.MustCompile(`(?m)^Exim version (\d[\w.]*)`)
	hasTLS      = regexp.MustCompile(`Support for:.* (GnuTLS|OpenSSL)`)
)

// find is the first installed Exim that runs and has TLS, by what it says with no settings of the machine's; Missing where there is
// none.
func find(ctx context.Context) (install, error) {
	for _, name := range commands {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		p, err := harness.Run(ctx, harness.Command{Path: path, Args: []string{"-C", os.DevNull, "-bV"}, Dir: "/", User: harness.Nobody()})
		if err != nil {
			continue
		}
		said := strings.Join(p.Lines(), "\n")
		if m := versionLine.FindStringSubmatch(said); m != nil && hasTLS.MatchString(said) {
			return install{Path: path, Version: m[1]}, nil
		}
	}
	return install{}, harness.Missing("no Exim with TLS")
}

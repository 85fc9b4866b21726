// Package fetch finds the programs that tests run, and installs missing ones by apt-get.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"retry-worker/e2e/harness"
)

// Program is a program that tests run.
type Program struct {
	Name string // as people call it
	// Places are where it may be, best first: names on the PATH, or patterns of paths.
	Places []string
	// Args make it print its version, which is Version's first group.
	Args    []string
	Version *regexp.Regexp
	// Oldest is the oldest version that the tests accept, such as "15" or "2.42".
	Oldest string
	// Packages are Debian's. They are not installed if one of the paths in Unless exists.
	Packages []string
	Unless   []string

	once  sync.Once
	found Install
	err   error
}

// Services exists on a machine that would start installed servers as services.
const Services = "/run/systemd/system"

// Install is an installed program.
type Install struct{ Path, Version string }

// Require returns a program that is installed, new enough, and works for the user that it will run as. If there is
// none and this process is root, Require installs Debian's. If none can be had, the test ends as [harness.Require]
// says.
func (p *Program) Require(t testing.TB) Install {
	t.Helper()
	harness.SkipIfShort(t)
	i, err := p.Provide()
	harness.Require(t, p.Name, err, "apt-get install -y "+strings.Join(p.Packages, " "))
	return i
}

// Provide is Require without a test. The error is one line, and harness.Missing if a person must install the program.
func (p *Program) Provide() (Install, error) {
	p.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), harness.FetchTime)
		defer cancel()
		if p.found, p.err = p.find(ctx); p.err == nil {
			return
		}
		if err := p.install(ctx); err != nil {
			p.err = harness.Missing(fmt.Sprintf("%v; %v", p.err, err))
			return
		}
		p.found, p.err = p.find(ctx)
	})
	return p.found, p.err
}

func (p *Program) find(ctx context.Context) (Install, error) {
	for _, place := range p.Places {
		paths, _ := filepath.Glob(place)
		if path, err := exec.LookPath(place); err == nil {
			paths = []string{path}
		}
		for _, path := range paths {
			ran, err := harness.Run(ctx, harness.Command{Path: path, Args: p.Args, Dir: "/", User: harness.Nobody()})
			if err != nil {
				continue // such as a stub that only says where to get one
			}
			m := p.Version.FindStringSubmatch(strings.Join(ran.Lines(), "\n"))
			if m != nil && !older(m[1], p.Oldest) {
				return Install{path, m[1]}, nil
			}
		}
	}
	return Install{}, harness.Missing(strings.TrimSpace("no " + p.Name + " " + p.Oldest))
}

// older reports whether a version is older than another.
func older(version, than string) bool {
	var a, b [2]int
	_, _ = fmt.Sscanf(version, "%d.%d", &a[0], &a[1]) // a missing part is 0
	_, _ = fmt.Sscanf(than, "%d.%d", &b[0], &b[1])
	return a[0] < b[0] || a[0] == b[0] && a[1] < b[1]
}

func (p *Program) install(ctx context.Context) error {
	for _, path := range p.Unless {
		if _, err := os.Stat(path); err == nil {
			return fmt.Errorf("it is not installed by itself where %s is", path)
		}
	}
	return Debian(ctx, p.Name, p.Packages...)
}

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

package fetch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"

	"retry-worker/e2e/harness"
)

const copyGoal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"

// Artifact is a file in Maven's repositories.
type Artifact struct {
	Group, Name, Version string
	Packaging            string // "jar", "tar.gz"
}

// Download fetches the artifact into dir by Maven, through the user's own Maven settings, has it unpacked there, and removes the
// file. java finds a Java where there is none on the PATH. The error is one line; it is Missing where there is no Maven.
func (a Artifact) Download(ctx context.Context, dir string, java func(context.Context) (string, error), unpack func(file string) error) error {
	if err := a.maven(ctx, dir, java); err != nil {
		return err
	}
	file := filepath.Join(dir, a.Name+"-"+a.Version+"."+a.Packaging)
	if err := unpack(file); err != nil {
		return fmt.Errorf("unpack %s: %w", file, err)
	}
	return os.Remove(file)
}

func (a Artifact) maven(ctx context.Context, dir string, java func(context.Context) (string, error)) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return harness.Missing("mvn is not on the PATH; install Maven 3.6 or newer, for example: apt-get install maven, or brew install maven")
	}
	env := os.Environ()
	if _, err := exec.LookPath("java"); err != nil && os.Getenv("JAVA_HOME") == "" {
		found, err := java(ctx)
		if err != nil {
			return err
		}
		env = append(env, "JAVA_HOME="+filepath.Dir(filepath.Dir(found)))
	}
	args := []string{
		"-B", "-q", copyGoal, "-Dstyle.color=never", "--strict-checksums",
		"-Dartifact=" + strings.Join([]string{a.Group, a.Name, a.Version, a.Packaging}, ":"), "-DoutputDirectory=" + dir,
	}
	if !homeWritable() {
		args = append(args, "-Dmaven.repo.local="+filepath.Join(dir, "repository"))
		defer os.RemoveAll(filepath.Join(dir, "repository"))
	}
	p, err := harness.Run(ctx, harness.Command{Path: mvn, Args: args, Env: env, Dir: dir}) // in dir no project's own settings apply
	if err != nil && p != nil {
		return fmt.Errorf("%w: %s; check the network and Maven's settings, then run it again", err, reason(p))
	}
	return err
}

// reason is Maven's first error.
func reason(p *harness.Process) string {
	for _, line := range p.Lines() {
		if _, reason, found := strings.Cut(line, "[ERROR] "); found {
			return reason
		}
	}
	return p.LastLine()
}

// homeWritable reports whether Maven can keep its repository where it does by default: in the home folder of the user's account,
// whatever HOME says.
func homeWritable() bool {
	const write = 2 // W_OK
	u, err := user.Current()
	return err == nil && u.HomeDir != "" && syscall.Access(u.HomeDir, write) == nil
}

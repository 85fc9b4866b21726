package fetch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"retry-worker/e2e/harness"
)

const (
	copyGoal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
	// mavenGrace is the time to stop; what it has downloaded by then it resumes the next time.
	mavenGrace = 3 * time.Second
)

// Artifact is a file in Maven's repositories.
type Artifact struct {
	Group, Name, Version string
	Packaging            string // "jar", "tar.gz"
}

// File is the name that Maven gives the file.
func (a Artifact) File() string { return a.Name + "-" + a.Version + "." + a.Packaging }

func (a Artifact) coordinates() string {
	return strings.Join([]string{a.Group, a.Name, a.Version, a.Packaging}, ":")
}

// Java finds a java command for Maven, where there is none on the PATH.
type Java func(context.Context) (string, error)

// Download fetches the artifact into dir by Maven, through the user's own Maven settings, has it
// unpacked there, and removes the file. The error is one line; it is Missing where there is no Maven.
func (a Artifact) Download(ctx context.Context, dir string, java Java, r *Reporter, unpack func(file string) error) error {
	if err := r.During(Downloading, func() error { return a.maven(ctx, dir, java, r) }); err != nil {
		return err
	}
	file := filepath.Join(dir, a.File())
	if err := r.During(Unpacking, func() error { return unpack(file) }); err != nil {
		return fmt.Errorf("unpack %s: %w", file, err)
	}
	return os.Remove(file)
}

func (a Artifact) maven(ctx context.Context, dir string, java Java, r *Reporter) error {
	mvn, env, err := findMaven(ctx, java)
	if err != nil {
		return err
	}
	// Not -B: only an interactive Maven prints how far it is; its standard input is empty all the same.
	args := []string{copyGoal, "-Dstyle.color=never", "--strict-checksums",
		"-Dartifact=" + a.coordinates(), "-DoutputDirectory=" + dir}
	if !homeWritable() {
		args = append(args, "-Dmaven.repo.local="+filepath.Join(dir, "repository"))
		defer os.RemoveAll(filepath.Join(dir, "repository"))
	}
	// In dir, so that no project's own Maven settings apply.
	p, err := harness.Start(harness.Command{Path: mvn, Args: args, Env: env, Dir: dir, Output: &mavenOutput{archive: a.File(), r: r}})
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		_ = p.Stop(context.WithoutCancel(ctx), mavenGrace)
		return ctx.Err()
	}
	if p.Err() != nil {
		return fmt.Errorf("maven says: %s; check the network and Maven's settings, then run it again", mavenReason(p))
	}
	return nil
}

// findMaven returns Maven's command and its environment, with a Java if there is none on the PATH.
func findMaven(ctx context.Context, findJava Java) (mvn string, env []string, err error) {
	if mvn, err = exec.LookPath("mvn"); err != nil {
		return "", nil, harness.Missing("mvn is not on the PATH; install Maven 3.6 or newer, for example: apt-get install maven, or brew install maven")
	}
	env = os.Environ()
	if _, err := exec.LookPath("java"); err != nil && os.Getenv("JAVA_HOME") == "" {
		java, err := findJava(ctx)
		if err != nil {
			return "", nil, err
		}
		env = append(env, "JAVA_HOME="+filepath.Dir(filepath.Dir(java)))
	}
	return mvn, env, nil
}

// homeWritable tells whether Maven can keep its repository where it does by default: in the home
// folder of the user's account, whatever HOME says.
func homeWritable() bool {
	u, err := user.Current()
	if err != nil || u.HomeDir == "" {
		return false
	}
	const write = 2 // W_OK
	return syscall.Access(u.HomeDir, write) == nil
}

// mavenOutput reads how far the download of one file is from what Maven prints: "Progress (1): 4.2/212 MB".
type mavenOutput struct {
	archive string
	r       *Reporter
	pending []byte
	begun   bool
}

var mavenProgress = regexp.MustCompile(`([\d.]+)(?: ([kMG]?B))?/([\d.]+) ([kMG]?B)`)

func (o *mavenOutput) Write(b []byte) (int, error) {
	o.pending = append(o.pending, b...)
	for {
		i := bytes.IndexAny(o.pending, "\r\n")
		if i < 0 {
			return len(b), nil
		}
		o.line(string(o.pending[:i]))
		o.pending = o.pending[i+1:]
	}
}

func (o *mavenOutput) line(s string) {
	if strings.HasPrefix(s, "Downloading from") && strings.HasSuffix(s, o.archive) {
		o.begun = true
	}
	m := mavenProgress.FindStringSubmatch(s)
	if !o.begun || m == nil || !strings.HasPrefix(s, "Progress") {
		return
	}
	unit := m[2]
	if unit == "" {
		unit = m[4]
	}
	o.r.bytes.Store(size(m[1], unit))
	o.r.total.Store(size(m[3], m[4]))
}

func size(number, unit string) int64 {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return int64(n * map[string]float64{"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit])
}

var goalFailed = regexp.MustCompile(`Failed to execute goal .* on project standalone-pom: `)

// mavenReason is Maven's first error, without what it says around it.
func mavenReason(p *harness.Process) string {
	for _, line := range p.Lines() {
		if _, reason, found := strings.Cut(line, "[ERROR] "); found {
			reason, _, _ = strings.Cut(reason, " -> [Help")
			return strings.TrimSuffix(goalFailed.ReplaceAllString(reason, ""), ".")
		}
	}
	if line := p.LastLine(); line != "" {
		return line
	}
	return p.Err().Error()
}

package engine

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

	"retry-worker/e2e/engine/child"
)

const (
	copyGoal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
	// mavenGrace is the time to stop; what it has downloaded by then it resumes the next time.
	mavenGrace = 3 * time.Second
)

// download fetches the distribution into dir by Maven, and unpacks it there.
func download(ctx context.Context, version, dir string, r *reporter) error {
	archive := fmt.Sprintf("camunda-zeebe-%s.tar.gz", version)
	if err := r.during(Downloading, func() error { return maven(ctx, version, archive, dir, r) }); err != nil {
		return err
	}
	file := filepath.Join(dir, archive)
	if err := r.during(Unpacking, func() error { return unpack(ctx, file, dir, r) }); err != nil {
		return err
	}
	return os.Remove(file)
}

func maven(ctx context.Context, version, archive, dir string, r *reporter) error {
	mvn, env, err := findMaven(ctx)
	if err != nil {
		return err
	}
	// Not -B: only an interactive Maven prints how far it is; its standard input is empty all the same.
	args := []string{copyGoal, "-Dstyle.color=never", "--strict-checksums",
		"-Dartifact=io.camunda:camunda-zeebe:" + version + ":tar.gz", "-DoutputDirectory=" + dir}
	if !homeWritable() {
		args = append(args, "-Dmaven.repo.local="+filepath.Join(dir, "repository"))
		defer os.RemoveAll(filepath.Join(dir, "repository"))
	}
	// In dir, so that no project's own Maven settings apply.
	p, err := child.Start(child.Command{Path: mvn, Args: args, Env: env, Dir: dir, Output: &mavenOutput{archive: archive, r: r}})
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
func findMaven(ctx context.Context) (mvn string, env []string, err error) {
	if mvn, err = exec.LookPath("mvn"); err != nil {
		return "", nil, Missing("mvn is not on the PATH; install Maven 3.6 or newer, for example: apt-get install maven, or brew install maven")
	}
	env = os.Environ()
	if _, err := exec.LookPath("java"); err != nil && os.Getenv("JAVA_HOME") == "" {
		java, err := FindJava(ctx)
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
	r       *reporter
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
func mavenReason(p *child.Process) string {
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

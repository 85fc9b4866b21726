package image

import (
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/prometheus"
	"retry-worker/internal/testkit"
)

// provide has the engine hold an image: pulled, or else, where no registry answers, a stand-in of that name. It is
// made of Debian's packages and of what the other tests run.
func (e *engine) provide(t *testing.T, image string) {
	t.Helper()
	if e.command(t, "image", "inspect", image).Run() == nil || e.command(t, "pull", "--quiet", image).Run() == nil {
		return
	}
	repository, tag, _ := strings.Cut(image, ":")
	program := path.Base(repository)
	harness.Say("making " + image + ", which cannot be pulled, from testdata/" + program + ".Containerfile")
	e.debian(t)
	args := []string{"build", "--quiet", "--pull=never", "--tag", image}
	args = append(args, "--file", "testdata/"+program+".Containerfile")
	for name, folder := range parts(t, program, tag) {
		args = append(args, "--build-context", name+"="+folder)
	}
	e.do(t, append(args, "testdata")...)
}

// parts are the folders that a stand-in is made of.
func parts(t *testing.T, program, tag string) map[string]string {
	t.Helper()
	switch program {
	case "golang":
		if version, _, _ := strings.Cut(tag, "-"); goEnv(t, "GOVERSION") != "go"+version {
			t.Fatal("the image is built by Go " + version + ", and here is " + goEnv(t, "GOVERSION"))
		}
		return map[string]string{"go": goEnv(t, "GOROOT")}
	case "prometheus":
		return map[string]string{"prometheus": filepath.Dir(prometheus.Program.Require(t).Path)}
	case "pause", "postgresql":
		return nil
	default:
		t.Fatal("no registry has " + program + ", and nothing here can stand in for it")
		return nil
	}
}

func goEnv(t *testing.T, variable string) string {
	t.Helper()
	out, err := exec.Command("go", "env", variable).Output()
	testkit.Must(t, err)
	return strings.TrimSpace(string(out))
}

// debian has the engine hold a small Debian, which is kept in the user's cache.
func (e *engine) debian(t *testing.T) {
	t.Helper()
	const image, file = "localhost/debian", "debian.tar"
	if e.command(t, "image", "inspect", image).Run() == nil {
		return
	}
	dir := cached(t, "debian-bookworm", "/usr/bin/mmdebstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", file)
	e.do(t, "import", filepath.Join(dir, file), image)
}

// cached returns a folder of the user's cache, in which the program was run once.
func cached(t *testing.T, name, program string, args ...string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	testkit.Must(t, err)
	dir := filepath.Join(cache, "retry-worker", name)
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	harness.Say("fetch " + name + ", once; this may take minutes")
	partial := dir + ".partial"
	testkit.Must(t, errors.Join(os.RemoveAll(partial), os.MkdirAll(partial, 0o755))) // what a killed run left
	_, err = harness.Run(t.Context(), harness.Command{Path: program, Args: args, Dir: partial})
	testkit.Must(t, errors.Join(err, os.Rename(partial, dir)))
	return dir
}

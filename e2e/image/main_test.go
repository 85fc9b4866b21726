// Package image compares the container image and docker-compose.yml with what the README says. Docker runs them, or
// else Podman with runc from Debian's packages, whose storage is in a folder of its own.
package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
	"retry-worker/internal/testkit/wait"
)

const (
	root = "../.."
	// name begins the name of everything that is made here: images, containers, volumes and networks.
	name = "retry-worker-e2e"
)

func TestMain(m *testing.M) { harness.Main(m) }

// engine runs containers.
type engine struct {
	program string // "docker" or "podman"
	env     []string
}

// containers returns the engine.
func containers(t *testing.T) *engine {
	t.Helper()
	harness.SkipIfShort(t)
	e, err := opened()
	harness.Require(t, "container engine", err, "apt-get install -y "+strings.Join(packages, " "))
	return e
}

// packages are Debian's for running containers and making base images.
var packages = []string{"podman", "buildah", "runc", "netavark", "aardvark-dns", "iptables", "mmdebstrap"}

var opened = sync.OnceValues(func() (*engine, error) {
	folder, err := harness.NewFolder("podman") // a short name: Podman is slow if its runroot has more than 50 characters
	if err != nil {
		return nil, err
	}
	harness.AtEnd(folder.Remove)
	e := &engine{program: "docker"}
	if exec.Command("docker", "info").Run() != nil {
		if e, err = podman(folder); err != nil {
			return nil, err
		}
	}
	return e, e.cleanAtEnd(folder.Path)
})

// podman returns an engine that keeps everything in the folder, and needs nothing that a small machine may lack:
// systemd, control groups of version 2, higher limits.
func podman(folder *harness.Folder) (*engine, error) {
	const helpers = "/usr/lib/podman/"
	programs := []string{"podman", "runc", "mmdebstrap", "iptables", helpers + "netavark", helpers + "aardvark-dns"}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			ctx, cancel := context.WithTimeout(context.Background(), harness.FetchTime)
			defer cancel()
			if err := fetch.Debian(ctx, program, packages...); err != nil {
				return nil, harness.Missing(err.Error())
			}
		}
	}
	settings, storage := folder.Join("containers.conf"), folder.Join("storage.conf")
	e := &engine{"podman", append(os.Environ(), "CONTAINERS_CONF="+settings, "CONTAINERS_STORAGE_CONF="+storage,
		"BUILDAH_ISOLATION=chroot", "BUILDAH_FORMAT=docker")} // the other format has no health check
	return e, errors.Join(
		os.WriteFile(settings, fmt.Appendf(nil, `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
tmp_dir = "%[1]s/tmp"
[network]
network_backend = "netavark"
network_config_dir = "%[1]s/networks"
`, folder.Path), 0o644),
		os.WriteFile(storage, fmt.Appendf(nil, `[storage]
driver = "overlay"
graphroot = "%[1]s/images"
runroot = "%[1]s/run"
`, folder.Path), 0o644))
}

// cleanAtEnd starts a shell that removes what the tests made when its input ends, however they end.
func (e *engine) cleanAtEnd(folder string) error {
	clean := exec.Command("/bin/sh", "testdata/clean", e.program, name, folder)
	clean.Env = e.env
	clean.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C does not reach it
	input, err := clean.StdinPipe()
	if err != nil {
		return err
	}
	harness.AtEnd(func() error {
		if err := errors.Join(input.Close(), clean.Wait()); err != nil {
			return fmt.Errorf("remove the containers: %w", err)
		}
		return nil
	})
	return clean.Start()
}

func (e *engine) command(t *testing.T, args ...string) *exec.Cmd {
	command := exec.CommandContext(t.Context(), e.program, args...)
	command.Env = e.env
	return command
}

// do runs a command of the engine, and returns its standard output.
func (e *engine) do(t *testing.T, args ...string) string {
	t.Helper()
	out, err := e.command(t, args...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", e.program, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// said returns what a container printed on both streams.
func (e *engine) said(t *testing.T, container string) string {
	t.Helper()
	out, err := e.command(t, "logs", container).CombinedOutput()
	if err != nil {
		t.Fatalf("read the log of %s: %v: %s", container, err, out)
	}
	return string(out)
}

func (e *engine) inspect(t *testing.T, container, field string) string {
	t.Helper()
	return e.do(t, "inspect", "--format", "{{"+field+"}}", container)
}

// healthy reports the result of the container's own health check.
func (e *engine) healthy(t *testing.T, container string) bool {
	t.Helper()
	if e.program == "podman" {
		_ = e.command(t, "healthcheck", "run", container).Run() // elsewhere a timer of systemd does
	}
	return e.inspect(t, container, ".State.Health.Status") == "healthy"
}

func (e *engine) awaitHealthy(t *testing.T, container string) {
	t.Helper()
	said := func() string { return e.said(t, container) }
	wait.Until(t, container+" to be healthy", func() bool { return e.healthy(t, container) }, said)
}

// stop ends a container by SIGTERM, and checks that it needed no more.
func (e *engine) stop(t *testing.T, container string) {
	t.Helper()
	e.do(t, "stop", "--time", "30", container)
	if code := e.inspect(t, container, ".State.ExitCode"); code != "0" {
		t.Errorf("%s ends with %s, expected 0:\n%s", container, code, e.said(t, container))
	}
}

package image

import (
	"archive/tar"
	"crypto/x509"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
)

// target is an image that the Dockerfile makes.
type target struct {
	tag, stage string // no stage is the last one
	mostBytes  int    // on disk
	files      []string
}

const certificates = "etc/ssl/certs/ca-certificates.crt"

var (
	production = target{name, "", 38 << 20, []string{
		"LICENCES.txt -rw-r--r-- 0", "data/ drwxr-xr-x 65532",
		"etc/ drwxr-xr-x 0", "etc/ssl/ drwxr-xr-x 0", "etc/ssl/certs/ drwxr-xr-x 0", certificates + " -rw-r--r-- 0",
		"retry-worker -rwxr-xr-x 0", "retry-worker.cdx.json -rw-r--r-- 0",
	}}
	development = target{name + "-dev", "dev", 38 << 20, []string{
		"LICENCES.txt -rw-r--r-- 0", "data/ drwxr-xr-x 65532",
		"retry-worker-dev -rwxr-xr-x 0", "retry-worker-dev.cdx.json -rw-r--r-- 0",
	}}
)

// TestImage builds the Dockerfile's images and runs them.
func TestImage(t *testing.T) {
	e := containers(t)
	e.provide(t, builder(t))
	harness.Say("building the images, which compiles the whole program: some minutes")
	for _, made := range []target{production, development} {
		testBuild(t, e, made)
	}
	t.Run("run", func(t *testing.T) { testRun(t, e) })
	t.Run("refuse", func(t *testing.T) { testRefuse(t, e) })
	t.Run("wait", func(t *testing.T) { testWait(t, e) })
	t.Run("development", func(t *testing.T) { testDevelopment(t, e) })
}

// testBuild builds an image twice, and holds what it is made of.
func testBuild(t *testing.T, e *engine, made target) {
	begun := time.Now()
	fresh := e.build(t, made)
	took := time.Since(begun).Round(time.Second)
	if again := e.build(t, made, compiled(t)); again != fresh {
		t.Errorf("built anew, with what was compiled before, %s is %s, expected the same again: %s", made.tag, again, fresh)
	}
	var bytes int
	_, err := fmt.Sscan(e.do(t, "image", "inspect", "--format", "{{.Size}}", made.tag), &bytes)
	if err != nil || bytes > made.mostBytes {
		t.Errorf("%s has %d bytes (%v), expected at most %d", made.tag, bytes, err, made.mostBytes)
	}
	if user := e.do(t, "image", "inspect", "--format", "{{.Config.User}}", made.tag); user != "65532:65532" {
		t.Errorf("the user of %s is %s, expected 65532:65532", made.tag, user)
	}
	expectFiles(t, e, made)
	harness.Report(t, "image  %s: %.1f MB, built in %v, and again to the same digest, by %s",
		made.tag, float64(bytes)/1e6, took, e.program)
}

// builder is the image that the program is compiled in.
func builder(t *testing.T) string {
	t.Helper()
	return regexp.MustCompile(`(?m)^FROM .* ?(golang:\S+)`).FindStringSubmatch(testkit.Read(t, root+"/Dockerfile"))[1]
}

// build builds an image anew, and returns its digest. Podman's build gets Go's module cache, and more folders.
func (e *engine) build(t *testing.T, made target, volumes ...string) string {
	t.Helper()
	const epoch = "1764000000" // of its files' times, in seconds
	args := []string{"buildx", "build", "--output", "type=docker,rewrite-timestamp=true"}
	args = append(args, "--build-arg", "SOURCE_DATE_EPOCH="+epoch)
	if e.program == "podman" {
		args = strings.Fields("build --quiet --pull=never --layers=false --timestamp " + epoch + " --volume " + modules(t))
		for _, v := range volumes {
			args = append(args, "--volume", v)
		}
	}
	args = append(args, "--no-cache", "--tag", made.tag, "--target", made.stage)
	e.do(t, append(args, "--build-arg", "VERSION=v0.0.0-e2e", root)...)
	if e.program == "docker" {
		return e.do(t, "image", "inspect", "--format", "{{.Id}}", made.tag)
	}
	// Podman's own form of the image names the container that it was built in; the one that registries take does not.
	dir := t.TempDir()
	e.do(t, "push", "--quiet", "--format", "oci", "--digestfile", dir+"/digest", made.tag, "dir:"+dir+"/image")
	return testkit.Read(t, dir+"/digest")
}

// compiled is this machine's cache of what Go compiled, as a volume of a build.
func compiled(t *testing.T) string { return goEnv(t, "GOCACHE") + ":/root/.cache/go-build" }

// modules is this machine's cache of Go's modules, filled here, as a volume of a build, which may not reach their proxy.
func modules(t *testing.T) string {
	t.Helper()
	for _, args := range [][]string{
		{"-C", root, "mod", "download"},
		{"-C", root + "/tools", "list", "-deps", "./release"},
	} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return goEnv(t, "GOMODCACHE") + ":/go/pkg/mod"
}

// expectFiles holds that an image has its files and no other, and that authorities to trust are some.
func expectFiles(t *testing.T, e *engine, made target) {
	t.Helper()
	container := made.tag + "-files"
	e.do(t, "create", "--name", container, made.tag)
	docker := regexp.MustCompile(`^(dev/|proc/|sys/|run/|\.dockerenv$|etc/(hostname|hosts|resolv\.conf|mtab)$)`) // its own
	var got []string
	for archive := tar.NewReader(strings.NewReader(e.do(t, "export", container))); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		testkit.Must(t, err)
		if docker.MatchString(header.Name) {
			continue
		}
		got = append(got, fmt.Sprintf("%s %v %d", header.Name, header.FileInfo().Mode(), header.Uid))
		if header.Name == certificates {
			text, err := io.ReadAll(archive)
			if pool := x509.NewCertPool(); err != nil || !pool.AppendCertsFromPEM(text) {
				t.Errorf("%s holds no certificate: %v", certificates, err)
			}
		}
	}
	if slices.Sort(got); !slices.Equal(got, made.files) {
		t.Errorf("%s holds\n%s\nexpected\n%s", made.tag, strings.Join(got, "\n"), strings.Join(made.files, "\n"))
	}
}

// run returns the arguments that run a container hardened.
func run(container string, more ...string) []string {
	const hardened = "run --read-only --cap-drop all --security-opt no-new-privileges --name " + name + "-"
	return append(strings.Fields(hardened+container), more...)
}

// testRun: the engine is away at the start, comes, and has a job that is under way at SIGTERM; the next container has
// the journal.
func testRun(t *testing.T, e *engine) {
	g := gateway.New(t, gateway.Options{})
	g.Down()
	ports, err := harness.Ports(2)
	testkit.Must(t, err)
	const worker, volume = name + "-worker", name + "-journal:/data"
	e.do(t, run("worker", "--volume", volume, "--detach", "--network", "host",
		"--env", "ZEEBE_ADDRESS="+g.Addr(), "--env", "ZEEBE_INSECURE_CONNECTION=true",
		"--env", "RETRY_WORKER_OPS_ADDR="+testkit.Loopback(ports[0]),
		"--env", "RETRY_WORKER_HTTP_ADDR="+testkit.Loopback(ports[1]),
		"--env", "RETRY_WORKER_TIME_ZONE=America/Manaus", name)...) // a zone that the image must have
	e.awaitMissing(t, worker, "connection refused")
	g.Up()
	e.awaitHealthy(t, worker)
	slow := g.Inject(gateway.Fault{Method: gateway.CompleteJob, Delay: time.Second})
	key := g.AddJob(gateway.Job{Type: "analyze-retry", Variables: `{"claimId":"CLM-1-1","submissionError":"TIMEOUT"}`})
	testkit.Must(t, g.WaitFor(wait.Context(t), func(gateway.Counts) bool { return slow.Fired() > 0 }))
	e.stop(t, worker)
	if job, _ := g.Job(key); job.State != gateway.Completed {
		t.Errorf("the job that had begun is %v, expected it completed", job.State)
	}
	out := e.do(t, run("history", "--rm", "--volume", volume, name, "history", "CLM-1-1")...)
	if !strings.Contains(out, "TIMEOUT") {
		t.Errorf("the next container's journal does not know the claim: %s", out)
	}
}

// awaitMissing waits for a worker to say why it has no engine, and holds that it is not healthy and asks on.
func (e *engine) awaitMissing(t *testing.T, container, why string) {
	t.Helper()
	wait.Until(t, "the worker to miss the engine", func() bool {
		said := e.said(t, container)
		return strings.Contains(said, "engine does not answer polls") && strings.Contains(said, why)
	}, func() string { return e.said(t, container) })
	if e.healthy(t, container) || e.inspect(t, container, ".State.Running") != "true" {
		t.Errorf("a worker without an engine is healthy, or has ended:\n%s", e.said(t, container))
	}
}

// testRefuse: where a container cannot write its journal it ends at once, and says why and what to do.
func testRefuse(t *testing.T, e *engine) {
	const volume = name + "-refused:/data"
	for _, tt := range []struct {
		name string
		args []string
		says string
	}{
		{
			"read-only volume", []string{"--volume", volume + ":ro"},
			"/data/retry-worker.db: its disk is mounted read-only: mount it for writing, or name another place",
		},
		{
			"outside of the volume", []string{"--env", "RETRY_WORKER_DATABASE_URL=sqlite:/retry-worker.db"},
			"database /retry-worker.db: its disk is mounted read-only: mount it for writing, or name another place",
		},
		{
			"another user", []string{"--volume", volume, "--user", "1000:1000"},
			"give the worker's user write access to it and to its folder",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			refused := e.command(t, run("refused", append(tt.args, "--rm", name)...)...)
			out, _ := refused.CombinedOutput() // its exit code is looked at
			if code := refused.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), tt.says) {
				t.Errorf("it ends with %d, expected 1 and %q:\n%s", code, tt.says, out)
			}
		})
	}
}

// testWait: without a volume it works, as long as its container is there; without names it asks on for the engine's.
func testWait(t *testing.T, e *engine) {
	e.do(t, run("alone", "--detach", "--network", "none", "--env", "ZEEBE_ADDRESS=zeebe:26500", name)...)
	e.awaitMissing(t, name+"-alone", "lookup zeebe")
	e.stop(t, name+"-alone")
}

// testDevelopment: the engine serves hardened, with its log on a volume, and ends in order.
func testDevelopment(t *testing.T, e *engine) {
	const container = name + "-engine"
	e.do(t, run("engine", "--volume", name+"-engine:/data", "--detach", "--network", "none", development.tag,
		"--engine-only", "--grpc", "127.0.0.1:26500", "--data", "/data")...)
	said := func() string { return e.said(t, container) }
	wait.Until(t, "the engine to serve", func() bool { return strings.Contains(said(), "engine ready grpc=") }, said)
	e.stop(t, container)
}

package image

import (
	"archive/tar"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/prometheus"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// TestCompose starts docker-compose.yml, all but Grafana, and does with it what the README says.
func TestCompose(t *testing.T) {
	begun := time.Now()
	c := openCompose(t)
	c.run(t, "build", "engine", "token", "deploy", "retry-worker", "samples")
	c.up(t, "retry-worker")
	c.awaitHealthy(t, c.container("retry-worker"))
	c.up(t, "prometheus")
	token := c.token(t)
	logIn(t, token)
	c.expectSilence(t, token)
	c.testRestarts(t)
	if again := c.token(t); again != token {
		t.Error("after down and up the token is another")
	}
	c.up(t, "prometheus")
	c.up(t, "samples")
	c.ends(t, "samples")
	expectSamples(t, c.said(t, c.container("samples")))
	expectPrometheus(t)
	c.expectSilence(t, token)
	c.do(t, "exec", c.container("retry-worker"), "/retry-worker", "audit", "verify")
	c.run(t, "down", "--volumes")
	harness.Report(t, "image  docker-compose.yml up, its engine killed, down and up, the samples played, by %s in %v; "+
		"Grafana was not started: e2e/prometheus checks its provisioning", c.program, time.Since(begun).Round(time.Second))
}

// compose is docker-compose.yml and what runs of it.
type compose struct {
	*engine
	command   []string
	separator string // in a container's name
	started   map[string]bool

	Services map[string]struct {
		Image     string
		DependsOn map[string]struct{ Condition string } `yaml:"depends_on"`
	}
}

func openCompose(t *testing.T) *compose {
	t.Helper()
	c := &compose{engine: containers(t), command: []string{"docker", "compose"}, separator: "-"}
	c.started = map[string]bool{}
	testkit.Must(t, yaml.Unmarshal([]byte(testkit.Read(t, root+"/docker-compose.yml")), c))
	for _, image := range []string{builder(t), c.Services["prometheus"].Image} {
		c.provide(t, image)
	}
	if c.program == "podman" {
		dir := podmanCompose(t)
		c.separator, c.env = "_", append(c.env, "PYTHONPATH="+dir)
		c.command = []string{filepath.Join(dir, "bin/podman-compose"), "--podman-build-args=--pull=never",
			"--podman-build-args=--volume=" + modules(t), "--podman-build-args=--volume=" + compiled(t)}
	}
	c.command = append(c.command, "--project-name", name)
	return c
}

// podmanCompose fetches podman-compose, once, by pip, and returns its folder: Debian's knows no profiles.
func podmanCompose(t *testing.T) string {
	t.Helper()
	const install = "python3 -m pip install --quiet --no-input --disable-pip-version-check --target . podman-compose>=1.6"
	return cached(t, "podman-compose", "/usr/bin/env", strings.Fields(install)...)
}

func (c *compose) container(service string) string {
	return name + c.separator + service + c.separator + "1"
}

// run runs a command of compose.
func (c *compose) run(t *testing.T, args ...string) {
	t.Helper()
	args = append(slices.Clone(c.command), args...)
	command := exec.CommandContext(t.Context(), args[0], args[1:]...)
	command.Dir, command.Env = root, c.env
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// up starts a service once what it depends on is as the file says. Compose would, but not with a Podman older than 4.6.
func (c *compose) up(t *testing.T, service string) {
	t.Helper()
	if c.started[service] {
		return
	}
	for other, dependency := range c.Services[service].DependsOn {
		c.up(t, other)
		switch dependency.Condition {
		case "service_healthy":
			c.awaitHealthy(t, c.container(other))
		case "service_completed_successfully":
			c.ends(t, other)
		}
	}
	c.run(t, "up", "--detach", "--no-deps", "--no-build", service)
	c.started[service] = true
}

// ends waits for a service that ends by itself, and holds that it did what it should.
func (c *compose) ends(t *testing.T, service string) {
	t.Helper()
	if code := c.do(t, "wait", c.container(service)); code != "0" {
		t.Fatalf("%s ends with %s:\n%s", service, code, c.said(t, c.container(service)))
	}
}

// token reads the console's token as the README says, and holds that nobody else can.
func (c *compose) token(t *testing.T) string {
	t.Helper()
	archive := tar.NewReader(strings.NewReader(c.do(t, "cp", c.container("retry-worker")+":/data/admin-token", "-")))
	header, err := archive.Next()
	testkit.Must(t, err)
	if mode := header.FileInfo().Mode(); mode != 0o600 || header.Uid != 65532 {
		t.Errorf("the token's file has mode %v and is user %d's, expected 0600 and 65532", mode, header.Uid)
	}
	text, err := io.ReadAll(archive)
	testkit.Must(t, err)
	return strings.TrimSpace(string(text))
}

// expectSilence holds that the token stands in no log.
func (c *compose) expectSilence(t *testing.T, token string) {
	t.Helper()
	for service := range c.started {
		if strings.Contains(c.said(t, c.container(service)), token) {
			t.Errorf("the token stands in the log of %s", service)
		}
	}
}

// logIn opens the console from outside of the containers, as a browser does.
func logIn(t *testing.T, token string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	testkit.Must(t, err)
	form := url.Values{"token": {token}, "next": {"/dead-letters"}}
	const address = "http://127.0.0.1:8095/login"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	testkit.Must(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "text/html")
	answer, err := (&http.Client{Jar: jar}).Do(r)
	testkit.Must(t, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if at := answer.Request.URL.Path; err != nil || at != "/dead-letters" || !strings.Contains(string(page), "admin") {
		t.Errorf("the token leads to %s: %s, %v\n%s", at, answer.Status, err, page)
	}
}

// testRestarts: the engine is killed and started anew, and all goes down and up, with claims under way: none is lost,
// and none decided twice.
func (c *compose) testRestarts(t *testing.T) {
	const each = 30
	claims := submit(t, "127.0.0.1:26500")
	create := func() {
		for range each {
			testkit.Must(t, claims.create(wait.Context(t)))
		}
	}
	create()
	c.do(t, "kill", c.container("engine"))
	c.do(t, "start", c.container("engine"))
	create()
	c.run(t, "down")
	clear(c.started)
	c.up(t, "retry-worker")
	claims.expectOnce(t, func(claim string) string {
		return c.do(t, "exec", c.container("retry-worker"), "/retry-worker", "history", claim, "-o", "json")
	})
}

// expectSamples holds what the samples say became of them.
func expectSamples(t *testing.T, said string) {
	t.Helper()
	want := testkit.Read(t, "../scenarios/testdata/demo.txt")
	_, summary, _ := strings.Cut(said, "\nWhat became of them:\n")
	summary = regexp.MustCompile(`\bDEMO-\d+`).ReplaceAllString(summary, "DEMO-N")
	if strings.TrimSpace(summary) != strings.TrimSpace(want) {
		t.Errorf("the samples sum up\n%s\nexpected\n%s", summary, want)
	}
}

// expectPrometheus waits until every target is scraped and every rule of every file is evaluated; one of a group that takes
// longer than the wait may not be yet.
func expectPrometheus(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(root + "/deploy/prometheus/*.rules.yaml")
	testkit.Must(t, err)
	server := &prometheus.Server{URL: "http://127.0.0.1:9090"}
	var answer struct {
		ActiveTargets []struct{ ScrapePool, Health, LastError string }
		Groups        []struct {
			Interval float64 // in seconds
			Rules    []struct{ Name, Health, LastError string }
		}
	}
	wait.Until(t, "two targets up and the rules of all files", func() bool {
		if server.Ask(t.Context(), "targets", nil, &answer) != nil || server.Ask(t.Context(), "rules", nil, &answer) != nil {
			return false
		}
		ok := len(answer.ActiveTargets) == 2 && len(answer.Groups) == len(files)
		for _, target := range answer.ActiveTargets {
			ok = ok && target.Health == "up"
		}
		for _, group := range answer.Groups {
			later := group.Interval > wait.Limit.Seconds()
			for _, rule := range group.Rules {
				ok = ok && (rule.Health == "ok" || later && rule.Health == "unknown")
			}
		}
		return ok
	}, func() string { return fmt.Sprintf("%+v", answer) })
}

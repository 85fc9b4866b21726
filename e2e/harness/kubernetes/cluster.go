// Package kubernetes runs Kubernetes, built from its released Go modules.
package kubernetes

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// Cluster is a Kubernetes of one node.
type Cluster struct{ dir string }

// StartNode starts a whole node as root: containerd and what a node needs of Kubernetes, in name spaces of its own.
// save puts the images of its pods into a folder, as archives.
func StartNode(t *testing.T, save func(folder string)) *Cluster {
	t.Helper()
	packages := []string{"runc", "containernetworking-plugins", "nftables", "iproute2", "conntrack", "dnsmasq-base", "openssl"}
	var err error
	if os.Getuid() != 0 {
		err = harness.Missing("which root runs; this is another user")
	}
	for _, program := range []string{"runc", "/usr/lib/cni/bridge", "nft", "ip", "conntrack", "openssl", "dnsmasq"} {
		if _, missing := exec.LookPath(program); missing != nil && err == nil {
			err = fetch.Debian(t.Context(), program, packages...)
		}
	}
	harness.Require(t, "node of Kubernetes", err, "apt-get install -y "+strings.Join(packages, " "))
	folder, err := harness.NewFolder("kubernetes")
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, folder.Remove()) })
	c := &Cluster{folder.Path}
	harness.Say("building Kubernetes, containerd and Helm from their modules: ten minutes, the first time")
	const containerd = "github.com/containerd/containerd/v2/cmd/"
	c.build(t, ".", containerd+"containerd", containerd+"containerd-shim-runc-v2", containerd+"ctr", "helm.sh/helm/v3/cmd/helm")
	images := filepath.Join(c.dir, "images")
	testkit.Must(t, os.Mkdir(images, 0o755))
	save(images)
	testkit.Must(t, c.start(t))
	t.Cleanup(func() {
		if t.Failed() {
			said, _ := c.Try(t, "", "kubectl", "get", "events,pods", "--all-namespaces", "--output=wide") // for the log of a failure
			logs, _ := filepath.Glob(filepath.Join(c.dir, "pods", "*", "*", "*.log"))
			last, _ := exec.Command("tail", append([]string{"--lines=20"}, logs...)...).CombinedOutput()
			t.Logf("%s\n%s", said, last)
		}
	})
	return c
}

// modules is the Go module of Kubernetes, seen from a package of tests.
const modules = "../../tools/kubernetes"

func (c *Cluster) build(t *testing.T, programs ...string) {
	t.Helper()
	version := output(t, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	const variable = " -X k8s.io/component-base/version.git"
	flags := "-s -w" + variable + "Version=" + version + variable + "Major=1" + variable + "Minor=" + strings.Split(version, ".")[1]
	output(t, "go", append([]string{"build", "-ldflags", flags, "-o", c.dir + "/"}, programs...)...)
}

// output runs a program of that module, and returns what it prints.
func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir = modules
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// start runs the node until the test's end, and returns when its API server answers.
func (c *Cluster) start(t *testing.T) error {
	path, err := filepath.Abs(filepath.Join(modules, "node"))
	testkit.Must(t, err)
	p, err := harness.StartServer(t.Context(), wait.Limit, harness.Command{Path: path, Args: []string{c.dir}}, func(*harness.Process) bool {
		_, err := c.Try(t, "", "kubectl", "get", "--raw", "/readyz")
		return err == nil
	})
	if err == nil {
		t.Cleanup(func() { _ = p.Stop(context.Background(), harness.StopTime) })
	}
	return err
}

// Try runs kubectl or helm with that input, and returns what it prints on both streams.
func (c *Cluster) Try(t *testing.T, input, program string, args ...string) (said string, err error) {
	t.Helper()
	command := exec.Command(filepath.Join(c.dir, program), args...)
	if program == "kubectl" {
		command = exec.Command(filepath.Join(c.dir, "kubernetes"), append([]string{program}, args...)...)
	}
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(c.dir, "kubeconfig"))
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	return string(out), err
}

// Do runs kubectl or helm as [Cluster.Try] does, and fails the test on an error.
func (c *Cluster) Do(t *testing.T, input, program string, args ...string) string {
	t.Helper()
	said, err := c.Try(t, input, program, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, said)
	}
	return said
}

// Names makes the cluster's name server know its present services.
func (c *Cluster) Names(t *testing.T) {
	t.Helper()
	services := c.Do(t, "", "kubectl", "get", "services", "--all-namespaces", "-o",
		`jsonpath={range .items[*]}{.spec.clusterIP} {.metadata.name}.{.metadata.namespace}.svc.cluster.local{"\n"}{end}`)
	harness.Replace(t, filepath.Join(c.dir, "names", "services"), services)
}

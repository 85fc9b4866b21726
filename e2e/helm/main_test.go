// Package helm holds what the Helm chart promises against Helm's own engine, the API's schemas, the worker's settings
// and a real run with the very environment that the chart renders. No cluster is needed.
package helm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
)

const (
	chartDir = "../../deploy/helm/retry-worker"
	checkDir = "../../deploy/helm/check"
)

// The descriptions that objects are checked against, from the Go module proxy: Kubernetes at the oldest version that
// Chart.yaml allows and at a new one, and the Prometheus operator.
const (
	oldestKubernetes = "k8s.io/kubernetes@v1.29.15"
	newKubernetes    = "k8s.io/kubernetes@v1.36.3"
	prometheus       = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
)

func TestMain(m *testing.M) { harness.Main(m) }

func inCheck(name string, args ...string) ([]byte, error) {
	command := exec.Command(name, args...)
	command.Dir = checkDir
	out, err := command.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return out, fmt.Errorf("%s: %w\n%s%s", strings.Join(command.Args, " "), err, out, failed.Stderr)
	}
	return out, err
}

// download has modules' files brought into Go's module cache and returns their folders.
func download(modules ...string) (folders []string, err error) {
	out, err := inCheck("go", append([]string{"mod", "download", "-json"}, modules...)...)
	if err != nil {
		return nil, err
	}
	byName := map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
		var m struct{ Path, Version, Dir string }
		if err := decoder.Decode(&m); err != nil {
			return nil, fmt.Errorf("read what go mod download says: %w", err)
		}
		byName[m.Path+"@"+m.Version] = m.Dir
	}
	for _, module := range modules {
		if byName[module] == "" {
			return nil, fmt.Errorf("go mod download says nothing of %s", module)
		}
		folders = append(folders, byName[module])
	}
	return folders, nil
}

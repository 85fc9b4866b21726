package helm

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/e2e/harness/kubernetes"
	"retry-worker/internal/testkit"
)

// TestAPIServer asks Kubernetes' own API server for a dry run of every object of every sound case: `make chart` runs
// it, as building the server takes minutes the first time.
func TestAPIServer(t *testing.T) {
	k := startAPIServer(t)
	for _, c := range soundCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			r := render(t, c)
			if r.Error != "" {
				t.Fatal(r.Error)
			}
			if problems := try(t, k, r.Objects...); problems != "" {
				t.Error(problems)
			}
		})
	}
	t.Run("it does refuse", func(t *testing.T) {
		for _, set := range []string{"containerSecurityContext=null", "podSecurityContext.seccompProfile=null;containerSecurityContext.seccompProfile=null"} {
			r := renderOne(t, split(set)...)
			if problems := try(t, k, r.one(t, "Deployment")); !strings.Contains(problems, "would violate PodSecurity") {
				t.Errorf("%s: a Deployment outside of the restricted profile: %q", set, problems)
			}
			if problems := try(t, k, r.one(t, "Pod")); !strings.Contains(problems, "violates PodSecurity") {
				t.Errorf("%s: a Pod outside of the restricted profile: %q", set, problems)
			}
		}
		wrong := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "camunda"}, "date": map[string]any{}}
		if problems := try(t, k, wrong); !strings.Contains(problems, `unknown field "date"`) {
			t.Errorf("a ConfigMap with an unknown field: %q", problems)
		}
	})
}

// startAPIServer starts it with the namespace that objects belong to, which enforces the restricted profile, and with the
// definitions of Prometheus' operator.
func startAPIServer(t *testing.T) *kubernetes.Cluster {
	t.Helper()
	operator, err := exec.Command("go", "mod", "download", "-json", "github.com/prometheus-operator/prometheus-operator@v0.85.0").Output()
	testkit.Must(t, err)
	var module struct{ Dir string }
	testkit.Must(t, json.Unmarshal(operator, &module))
	k := kubernetes.StartAPI(t)
	const profile = "pod-security.kubernetes.io/"
	k.Do(t, "", "kubectl", "create", "namespace", "camunda")
	k.Do(t, "", "kubectl", "label", "namespace", "camunda", profile+"enforce=restricted", profile+"warn=restricted")
	k.Do(t, "", "kubectl", "create", "--filename", filepath.Join(module.Dir, "example/prometheus-operator-crd"))
	k.Do(t, "", "kubectl", "wait", "--for=condition=Established", "customresourcedefinitions", "--all", "--timeout=1m")
	return k
}

// try returns what a dry run of creating objects complains of, warnings included.
func try(t *testing.T, k *kubernetes.Cluster, objects ...object) string {
	t.Helper()
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	testkit.Must(t, err)
	said, _ := k.Try(t, string(list), "kubectl", "create", "--namespace=camunda", "--filename=-", "--dry-run=server", "--validate=strict") // it says why
	var problems []string
	for line := range strings.Lines(said) {
		if !strings.HasSuffix(line, " created (server dry run)\n") {
			problems = append(problems, line)
		}
	}
	return strings.Join(problems, "")
}

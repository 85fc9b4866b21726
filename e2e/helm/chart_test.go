package helm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
)

// oldest is the oldest version of Kubernetes that Chart.yaml allows, which the schemas are of.
const oldest = "v1.29.15"

// helmCase is one set of values, as `helm install RELEASE CHART --set … --values FILE` takes them.
type helmCase struct {
	Name    string
	Release string
	Set     []string
	Values  map[string]any
}

// result is what became of a case.
type result struct {
	helmCase
	Error, Notes string
	Objects      []map[string]any
}

// tools is a folder with helm, kubeconform, and a copy of the chart whose notes are an object of their own, as
// `helm template` does not print them.
var tools = sync.OnceValues(func() (folder string, err error) {
	dir, err := harness.NewFolder("helm")
	if err != nil {
		return "", err
	}
	harness.AtEnd(dir.Remove)
	build := exec.Command("go", "-C", "../../tools/kubernetes", "build", "-ldflags=-s -w", "-o", dir.Path+"/",
		"helm.sh/helm/v3/cmd/helm", "github.com/yannh/kubeconform/cmd/kubeconform")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	// The copy has what the chart's links lead to.
	if said, err := exec.Command("cp", "--recursive", "--dereference", chartDir, dir.Join("chart")).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	const notes = `{kind: Notes, metadata: {name: notes}, text: {{ include (print $.Template.BasePath "/NOTES.txt") . | quote }}}`
	return dir.Path, os.WriteFile(dir.Join("chart", "templates", "notes.yaml"), []byte(notes), 0o600)
})

// play runs helm or kubeconform, and returns what it prints.
func play(t *testing.T, input, name string, args ...string) (out string, err error) {
	t.Helper()
	harness.SkipIfShort(t)
	folder, err := tools()
	testkit.Must(t, err)
	command := exec.Command(filepath.Join(folder, name), args...)
	command.Stdin = strings.NewReader(input)
	said, err := command.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = errors.New(string(failed.Stderr))
	}
	return string(said), err
}

// template has `helm template` render a case for a version of Kubernetes.
func template(t *testing.T, c *helmCase, version string) (string, error) {
	t.Helper()
	values, err := yaml.Marshal(c.Values)
	testkit.Must(t, err)
	folder, err := tools()
	testkit.Must(t, err)
	args := []string{"template", cmp.Or(c.Release, "rw"), filepath.Join(folder, "chart"), "--namespace=camunda", "--kube-version", version, "--values=-"}
	for _, set := range c.Set {
		args = append(args, "--set", set)
	}
	return play(t, string(values), "helm", args...)
}

// render renders a case, and reads the objects: a key that stands twice is a mistake.
func render(t *testing.T, c helmCase) result {
	t.Helper()
	r := result{helmCase: c}
	text, err := template(t, &c, oldest)
	if err != nil {
		r.Error = strings.TrimPrefix(strings.Replace(err.Error(), "\nUse --debug flag to render out invalid YAML\n", "", 1), "Error: ")
		return r
	}
	for documents := yaml.NewDecoder(strings.NewReader(text)); ; {
		var o map[string]any
		if err := documents.Decode(&o); errors.Is(err, io.EOF) {
			return r
		} else if err != nil {
			t.Fatalf("%s: %v\n%s", c.Name, err, text)
		}
		if o["kind"] == "Notes" {
			r.Notes, _ = o["text"].(string)
		} else if o != nil {
			r.Objects = append(r.Objects, o)
		}
	}
}

// checkSchemas: every object of a case is one that Kubernetes, or the Prometheus operator, knows, to the last property.
func checkSchemas(t *testing.T, r result) {
	t.Helper()
	objects, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": r.Objects})
	testkit.Must(t, err)
	said, err := play(t, string(objects), "kubeconform", "-strict", "-schema-location", "testdata/schemas/{{.ResourceKind}}{{.KindSuffix}}.json")
	if err != nil || said != "" {
		t.Errorf("kubeconform: %v\n%s", err, said)
	}
}

// TestLint: nothing is to be warned of.
func TestLint(t *testing.T) {
	folder, err := tools()
	testkit.Must(t, err)
	if said, err := play(t, "", "helm", "lint", "--strict", "--kube-version", oldest, filepath.Join(folder, "chart")); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

// renderOne renders one case that must render.
func renderOne(t *testing.T, set ...string) result {
	t.Helper()
	r := render(t, helmCase{Name: t.Name(), Set: set})
	if r.Error != "" {
		t.Fatalf("%v: %s", set, r.Error)
	}
	return r
}

// at goes down into an object by keys (text) and indices (int); nil where there is nothing.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			l, _ := v.([]any)
			if step >= len(l) {
				return nil
			}
			v = l[step]
		}
	}
	return v
}

func text(v any, path ...any) string {
	found := at(v, path...)
	if found == nil {
		return ""
	}
	return fmt.Sprint(found)
}

func list(v any, path ...any) []any {
	l, _ := at(v, path...).([]any)
	return l
}

func (r result) kind(kind string) (found []map[string]any) {
	for _, o := range r.Objects {
		if o["kind"] == kind {
			found = append(found, o)
		}
	}
	return found
}

// one object of a kind.
func (r result) one(t *testing.T, kind string) map[string]any {
	t.Helper()
	found := r.kind(kind)
	if len(found) != 1 {
		t.Fatalf("%s: %d objects of kind %s, expected one", r.Name, len(found), kind)
	}
	return found[0]
}

// pod is the Deployment's.
func (r result) pod(t *testing.T) any {
	return at(r.one(t, "Deployment"), "spec", "template", "spec")
}

// variables of the worker's container, by name: EnvVars.
func (r result) variables(t *testing.T) map[string]any {
	t.Helper()
	byName := map[string]any{}
	for _, v := range list(r.pod(t), "containers", 0, "env") {
		name := text(v, "name")
		if byName[name] != nil {
			t.Errorf("%s: %s is set twice", r.Name, name)
		}
		byName[name] = v
	}
	return byName
}

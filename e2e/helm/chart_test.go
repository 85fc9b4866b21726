package helm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
)

// helmCase and result are what deploy/helm/check reads and writes.
type helmCase struct {
	Name               string `json:"-"`
	Release, Namespace string
	Set                []string       `json:",omitempty"`
	Values             map[string]any `json:",omitempty"`
	KubeVersion        string         `json:",omitempty" yaml:"kubeVersion"`
	Judge              bool           // lint it and check its objects too, which takes longer
}

type result struct {
	Name, Error, Notes string
	Objects            []object
	Problems           []string
}

// checker is deploy/helm/check while it runs: it answers one case after another.
type checker struct {
	in  io.WriteCloser
	out *json.Decoder
}

// startChecker builds the program, which Go caches, fetches the descriptions, which it keeps, and starts it.
var startChecker = sync.OnceValues(func() (*checker, error) {
	folder, err := harness.NewFolder("helm")
	if err != nil {
		return nil, err
	}
	harness.AtEnd(folder.Remove)
	program := folder.Join("check")
	if _, err := inCheck("go", "build", "-o", program, "."); err != nil {
		return nil, err
	}
	folders, err := download(oldestKubernetes, newKubernetes, prometheus)
	if err != nil {
		return nil, err
	}
	chart, err := filepath.Abs(chartDir)
	if err != nil {
		return nil, err
	}
	const api = "api/openapi-spec/v3"
	command := exec.Command(program, "-chart", chart, "-crds", filepath.Join(folders[2], "example/prometheus-operator-crd"),
		"-kubernetes", filepath.Join(folders[0], api)+","+filepath.Join(folders[1], api))
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	harness.AtEnd(func() error { return errors.Join(in.Close(), command.Wait()) }) // it ends when it has no more to read
	return &checker{in, json.NewDecoder(out)}, command.Start()
})

// render has cases rendered and judged; release and namespace are filled in.
func render(t *testing.T, cases ...helmCase) []result {
	t.Helper()
	harness.SkipIfShort(t)
	check, err := startChecker()
	testkit.Must(t, err)
	results := make([]result, len(cases))
	for i, question := range cases {
		question.Release, question.Namespace = cmp.Or(question.Release, "rw"), "camunda"
		if err := json.NewEncoder(check.in).Encode(question); err != nil {
			t.Fatal("ask deploy/helm/check:", err)
		}
		if err := check.out.Decode(&results[i]); err != nil {
			t.Fatal("deploy/helm/check answers:", err)
		}
		results[i].Name = question.Name
	}
	return results
}

// renderOne renders one case that must render.
func renderOne(t *testing.T, set ...string) result {
	t.Helper()
	r := render(t, helmCase{Name: t.Name(), Set: set})[0]
	if r.Error != "" {
		t.Fatalf("%v: %s", set, r.Error)
	}
	return r
}

// object of Kubernetes.
type object map[string]any

// at goes down into an object by keys (text) and indices (int); nil where there is nothing.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			if o, ok := v.(object); ok {
				v = map[string]any(o)
			}
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

func (r result) kind(kind string) []object {
	var found []object
	for _, o := range r.Objects {
		if o["kind"] == kind {
			found = append(found, o)
		}
	}
	return found
}

// one object of a kind.
func (r result) one(t *testing.T, kind string) object {
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

// value of a variable that is written out.
func value(variable any) string { return text(variable, "value") }

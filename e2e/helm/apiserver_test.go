package helm

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
)

const apiserverDir = "../../deploy/helm/apiserver"

// TestAPIServer asks Kubernetes' own API server for a dry run of every object of every sound case. It is asked for by
// CHART_APISERVER=1, as building the server takes minutes the first time.
func TestAPIServer(t *testing.T) {
	if os.Getenv("CHART_APISERVER") == "" {
		fmt.Println("PRINT helm  the API server's dry run was not asked for: CHART_APISERVER=1 builds one (minutes, the first time)")
		t.SkipNow()
	}
	s := startAPIServer(t)
	for _, c := range sound {
		t.Run(c.Name, func(t *testing.T) {
			r := render(t, c)[0]
			if r.Error != "" {
				t.Fatal(r.Error)
			}
			for _, o := range r.Objects {
				for _, problem := range s.try(t, o) {
					t.Errorf("%s %s: %s", text(o, "kind"), text(o, "metadata", "name"), problem)
				}
			}
		})
	}
	t.Run("it does refuse", func(t *testing.T) {
		for _, set := range []string{"containerSecurityContext=null", "podSecurityContext.seccompProfile=null;containerSecurityContext.seccompProfile=null"} {
			r := renderOne(t, split(set)...)
			if problems := s.try(t, r.one(t, "Deployment")); !strings.Contains(strings.Join(problems, ""), "would violate PodSecurity") {
				t.Errorf("%s: a Deployment outside of the restricted profile: %q", set, problems)
			}
			if problems := s.try(t, r.one(t, "Pod")); !strings.Contains(strings.Join(problems, ""), "violates PodSecurity") {
				t.Errorf("%s: a Pod outside of the restricted profile: %q", set, problems)
			}
		}
		wrong := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "camunda"}, "date": map[string]any{}}
		if problems := s.try(t, wrong); !strings.Contains(strings.Join(problems, ""), `unknown field \"date\"`) && !strings.Contains(strings.Join(problems, ""), `unknown field "date"`) {
			t.Errorf("a ConfigMap with an unknown field: %q", problems)
		}
	})
}

type apiserver struct {
	in  *json.Encoder
	out *json.Decoder
	log *harness.Tail
}

func startAPIServer(t *testing.T) *apiserver {
	t.Helper()
	program := filepath.Join(t.TempDir(), "apiserver")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = apiserverDir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the API server: %v\n%s", err, out)
	}
	folders, err := download(prometheus)
	testkit.Must(t, err)
	s := &apiserver{log: harness.NewTail(nil)}
	command := exec.Command(program, filepath.Join(folders[0], "example/prometheus-operator-crd"))
	command.Stderr = s.log
	in, err := command.StdinPipe()
	testkit.Must(t, err)
	out, err := command.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, command.Start())
	t.Cleanup(func() {
		_ = in.Close() // it ends by itself then
		_ = command.Wait()
	})
	s.in, s.out = json.NewEncoder(in), json.NewDecoder(out)
	return s
}

// try is what a dry run says of an object.
func (s *apiserver) try(t *testing.T, o object) []string {
	t.Helper()
	if err := s.in.Encode(o); err != nil {
		t.Fatal("ask the API server:", err)
	}
	var answer struct{ Problems []string }
	if err := s.out.Decode(&answer); err != nil {
		t.Fatalf("the API server answers: %v\n%s", err, strings.Join(s.log.Lines(), "\n"))
	}
	return answer.Problems
}

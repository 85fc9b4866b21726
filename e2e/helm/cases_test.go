package helm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

const digest = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00"

// soundCases are those of testdata/cases.yaml.
func soundCases(t *testing.T) (all []helmCase) {
	t.Helper()
	testkit.Must(t, yaml.Unmarshal([]byte(testkit.Read(t, "testdata/cases.yaml")), &all))
	return all
}

func TestChart(t *testing.T) {
	for _, c := range soundCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			r := render(t, c)
			if r.Error != "" {
				t.Fatal(r.Error)
			}
			checkSchemas(t, r)
			checkWiring(t, r)
			checkSettings(t, r)
		})
	}
}

// TestValues renders each case of testdata/values.txt, whose head says how to add one.
func TestValues(t *testing.T) {
	defaults, cases := lines(renderOne(t)), soundCases(t)
	golden.Story(t, "testdata/values.txt", func(set string) string {
		if set == "nothing" {
			return difference(nil, defaults)
		}
		c := helmCase{Name: set, Set: strings.Split(strings.ReplaceAll(set, "DIGEST", digest), ";")}
		if i := slices.IndexFunc(cases, func(c helmCase) bool { return "case "+c.Name == set }); i >= 0 {
			c = cases[i]
		}
		r := render(t, c)
		if r.Error != "" {
			return refusal(t, r)
		}
		return strings.ReplaceAll(difference(defaults, lines(r)), digest, "DIGEST")
	})
}

// refusal is a case's error, a line each, which shows nothing that may be a secret.
func refusal(t *testing.T, r result) string {
	t.Helper()
	if strings.Contains(r.Error, "canary") && !strings.Contains(r.Error, "'/") {
		t.Errorf("%s: what may be a secret stands in %q", r.Name, r.Error)
	}
	if strings.Contains(r.Error, "nil pointer") || strings.Contains(r.Error, "can't evaluate") {
		t.Errorf("%s: a template broke instead: %s", r.Name, r.Error)
	}
	all := strings.Split(strings.TrimSpace(r.Error), "\n")
	slices.Sort(all) // the schema's are in no order
	return "! " + strings.Join(all, "\n! ") + "\n"
}

// difference is what goes and what comes.
func difference(before, after []string) string {
	var changed strings.Builder
	for sign, sides := range [2][2][]string{{before, after}, {after, before}} {
		for _, line := range sides[0] {
			if !slices.Contains(sides[1], line) {
				fmt.Fprintln(&changed, "-+"[sign:sign+1], strings.TrimSpace(line))
			}
		}
	}
	return changed.String()
}

// short are the names of what most paths begin with.
var short = strings.NewReplacer("Deployment.spec.template.spec.containers[retry-worker].", "container ", "Deployment.spec.template.", "pod ")

// lines of what is rendered: each value behind its path, and the notes.
func lines(r result) (all []string) {
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				if key != "rules" || text(v, "name") == "" { // those of alerts: TestRules
					walk(path+"."+key, inner)
				}
			}
		case []any:
			for i, inner := range v {
				walk(path+"["+cmp.Or(text(inner, "name"), fmt.Sprint(i))+"]", inner)
			}
		default:
			if !strings.HasSuffix(path, fmt.Sprintf("[%v].name", v)) { // which the path says
				all = append(all, fmt.Sprintf("%s: %v", short.Replace(path), v))
			}
		}
	}
	for _, o := range r.Objects {
		walk(text(o, "kind"), o)
	}
	slices.Sort(all)
	for line := range strings.Lines(r.Notes) {
		all = append(all, strings.TrimRight("NOTES "+strings.TrimSpace(line), " "))
	}
	return all
}

// TestOldKubernetes: a cluster that lacks what the chart needs is refused.
func TestOldKubernetes(t *testing.T) {
	if _, err := template(t, &helmCase{}, "v1.28.15"); err == nil || !strings.Contains(err.Error(), "chart requires kubeVersion: >=1.29.0-0") {
		t.Errorf("got %v", err)
	}
}

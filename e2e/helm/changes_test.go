package helm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

const valuesFile = "testdata/values.txt"

// TestValues renders each case of testdata/values.txt, whose head says how to add one.
func TestValues(t *testing.T) {
	defaults, cases := lines(renderOne(t)), soundCases(t)
	var played strings.Builder
	for line := range strings.Lines(testkit.Read(t, valuesFile)) {
		set, is := strings.CutPrefix(line, "$")
		switch set = strings.TrimSpace(set); {
		case strings.HasPrefix(line, "#"):
			played.WriteString(line)
		case is && set == "":
			played.WriteString(line + strings.Join(defaults, "\n") + "\n\n")
		case is:
			c := helmCase{Name: set, Set: strings.Split(strings.ReplaceAll(set, "DIGEST", digest), ";")}
			if i := slices.IndexFunc(cases, func(c helmCase) bool { return "case "+c.Name == set }); i >= 0 {
				c = cases[i]
			}
			r := render(t, c)
			if r.Error != "" {
				played.WriteString(line + refusal(t, r) + "\n")
				continue
			}
			played.WriteString(line + difference(defaults, lines(r)) + "\n")
		}
	}
	golden.Check(t, valuesFile, strings.ReplaceAll(played.String(), digest, "DIGEST"))
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
				changed.WriteString("-+"[sign:sign+1] + " " + line + "\n")
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

package helm

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

const valuesFile = "testdata/values.txt"

// TestValues renders each case of testdata/values.txt, whose head says how to add one.
func TestValues(t *testing.T) {
	script, err := os.ReadFile(valuesFile)
	testkit.Must(t, err)
	defaults := lines(renderOne(t))
	var played strings.Builder
	for line := range strings.Lines(string(script)) {
		set, is := strings.CutPrefix(line, "$")
		switch set = strings.TrimSpace(set); {
		case strings.HasPrefix(line, "#"):
			played.WriteString(line)
		case is && set == "":
			played.WriteString(line + strings.Join(defaults, "\n") + "\n\n")
		case is:
			r := render(t, helmCase{Name: set, Set: split(strings.ReplaceAll(set, "DIGEST", digest))})[0]
			if r.Error != "" {
				played.WriteString(line + refusal(t, r) + "\n")
				continue
			}
			played.WriteString(line + difference(defaults, lines(r)) + "\n")
		}
	}
	golden.Check(t, valuesFile, strings.ReplaceAll(played.String(), digest, "DIGEST"))
}

func split(set string) []string {
	if set == "" {
		return nil
	}
	return strings.Split(set, ";")
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

// lines of what is rendered: each value behind its path, and the notes.
func lines(r result) (all []string) {
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				walk(path+"."+key, inner)
			}
		case []any:
			for i, inner := range v {
				key := text(inner, "name")
				if key == "" {
					key = fmt.Sprint(i)
				}
				walk(path+"["+key+"]", inner)
			}
		default:
			all = append(all, fmt.Sprintf("%s: %v", path, v))
		}
	}
	for _, o := range r.Objects {
		walk(text(o, "kind"), map[string]any(o))
	}
	slices.Sort(all)
	for line := range strings.Lines(r.Notes) {
		all = append(all, strings.TrimRight("NOTES "+strings.TrimSpace(line), " "))
	}
	return all
}

package helm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

const valuesFile = "testdata/values.txt"

// TestValues renders each case of testdata/values.txt, whose head says how to add one.
func TestValues(t *testing.T) {
	defaults := lines(renderOne(t))
	var played strings.Builder
	for line := range strings.Lines(testkit.Read(t, valuesFile)) {
		set, is := strings.CutPrefix(line, "$")
		switch set = strings.TrimSpace(set); {
		case strings.HasPrefix(line, "#"):
			played.WriteString(line)
		case is && set == "":
			played.WriteString(line + strings.Join(defaults, "\n") + "\n\n")
		case is:
			r := render(t, helmCase{Name: set, Set: split(strings.ReplaceAll(set, "DIGEST", digest))})
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
		walk(text(o, "kind"), map[string]any(o))
	}
	slices.Sort(all)
	for line := range strings.Lines(r.Notes) {
		all = append(all, strings.TrimRight("NOTES "+strings.TrimSpace(line), " "))
	}
	return all
}

// TestPeers: each dependency has the peers that its value names, at its port.
func TestPeers(t *testing.T) {
	r := render(t, soundCase(t, "peers"))
	if r.Error != "" {
		t.Fatal(r.Error)
	}
	policy := r.one(t, "NetworkPolicy")
	got := map[string]string{}
	for _, direction := range []string{"egress", "ingress"} {
		for _, rule := range list(policy, "spec", direction) {
			for _, side := range []string{"to", "from"} {
				if app := text(rule, side, 0, "podSelector", "matchLabels", "app"); app != "" {
					got[direction+" "+app] = text(rule, "ports", 0, "port")
				}
			}
		}
	}
	want := map[string]string{
		"egress dns": "53", "egress zeebe": "26500", "egress keycloak": "80", "egress postgresql": "5432", "egress nats": "4222", "egress mail": "587",
		"egress chat": "443", "egress collector": "4318", "egress more": "", "ingress prometheus": "ops", "ingress ingress": "http", "ingress more": "",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// TestPolicyPorts: where the policies ask probes and webhooks to go there is a way out, whatever
// notify.webhooks.enabled says; policies that the chart does not see have port 443.
func TestPolicyPorts(t *testing.T) {
	const catalogue = `
extends: built-in
destinations:
  default: {pace: {most: 20/min}}
  unimed-sp: {probe: {url: "https://portal.unimed.example:8443/status"}}
  amil: {probe: {url: http://amil.example/}}
  bradesco: {probe: {every: 5m}}
teams:
  ti: {webhook: {url: "https://chat.example/hook", secretFile: /run/s}}
  cadastro: {email: [a@b.example]}
`
	hook := map[string]any{"ti": map[string]any{"webhook": map[string]any{"url": "https://chat.example:9443/hook"}}}
	for _, tt := range []struct {
		name     string
		policies map[string]any
		want     []string
	}{
		{"the built-in policies", map[string]any{}, nil},
		{"a catalogue", map[string]any{"catalogue": catalogue}, []string{"443", "80", "8443"}},
		{"a catalogue that is none", map[string]any{"catalogue": "destinations: [1]\nteams: x"}, nil},
		{"teams alone", map[string]any{"teams": hook}, []string{"9443"}},
		{"a ConfigMap", map[string]any{"existingConfigMap": "policies"}, []string{"443"}},
	} {
		peers := map[string]any{"webhooks": []any{map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"app": "out"}}}}}
		r := render(t, helmCase{Name: tt.name, Values: map[string]any{"policies": tt.policies, "networkPolicy": peers}})
		if r.Error != "" {
			t.Errorf("%s: %s", tt.name, r.Error)
			continue
		}
		var got []string
		for _, rule := range list(r.one(t, "NetworkPolicy"), "spec", "egress") {
			if text(rule, "to", 0, "podSelector", "matchLabels", "app") == "out" {
				for _, port := range list(rule, "ports") {
					got = append(got, text(port, "port"))
				}
			}
		}
		if slices.Sort(got); !slices.Equal(got, tt.want) {
			t.Errorf("%s: ports %q are open, want %q", tt.name, got, tt.want)
		}
	}
}

// TestOldKubernetes: a cluster that lacks what the chart needs is refused.
func TestOldKubernetes(t *testing.T) {
	if _, err := template(t, &helmCase{}, "v1.28.15"); err == nil || !strings.Contains(err.Error(), "chart requires kubeVersion: >=1.29.0-0") {
		t.Errorf("got %v", err)
	}
}

package helm

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/testkit"
)

// checkWiring holds the objects of a release against one another: what one names, another must have.
func checkWiring(t *testing.T, r result) {
	t.Helper()
	checkNames(t, r)
	checkSelectors(t, r)
	checkPorts(t, r)
	checkVolumes(t, r)
	checkReferences(t, r)
}

func checkNames(t *testing.T, r result) {
	t.Helper()
	seen := map[string]bool{}
	for _, o := range r.Objects {
		name := text(o, "metadata", "name")
		if key := text(o, "kind") + " " + name; seen[key] {
			t.Errorf("two of %s", key)
		} else {
			seen[key] = true
		}
		if len(name) > 63 {
			t.Errorf("the name %s has %d characters, expected at most 63", name, len(name))
		}
		if namespace := text(o, "metadata", "namespace"); namespace != "camunda" {
			t.Errorf("%s is in the namespace %q, expected the release's", name, namespace)
		}
		for _, label := range []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"} {
			if got := text(o, "metadata", "labels", label); got == "" || len(got) > 63 {
				t.Errorf("%s has the label %s %q", name, label, got)
			}
		}
	}
}

// checkSelectors: whatever selects pods selects the worker's, and not the test's.
func checkSelectors(t *testing.T, r result) {
	t.Helper()
	labels := at(r.one(t, "Deployment"), "spec", "template", "metadata", "labels")
	test := at(r.one(t, "Pod"), "metadata", "labels")
	selectors := map[string]any{
		"Deployment": at(r.one(t, "Deployment"), "spec", "selector", "matchLabels"),
		"Service":    at(r.one(t, "Service"), "spec", "selector"),
	}
	for kind, path := range map[string][]any{
		"PodDisruptionBudget": {"spec", "selector", "matchLabels"}, "PodMonitor": {"spec", "selector", "matchLabels"}, "NetworkPolicy": {"spec", "podSelector", "matchLabels"},
	} {
		for _, o := range r.kind(kind) {
			selectors[kind] = at(o, path...)
		}
	}
	for kind, selector := range selectors {
		if !selects(selector, labels) || selects(selector, test) {
			t.Errorf("%s selects %v, expected the worker's labels %v and not the test's %v", kind, selector, labels, test)
		}
	}
	for _, monitor := range r.kind("ServiceMonitor") {
		if selector := at(monitor, "spec", "selector", "matchLabels"); !selects(selector, at(r.one(t, "Service"), "metadata", "labels")) {
			t.Errorf("the ServiceMonitor selects %v, which the Service is not", selector)
		}
	}
}

func selects(selector, labels any) bool {
	wanted, _ := selector.(map[string]any)
	for key, value := range wanted {
		if at(labels, key) != value {
			return false
		}
	}
	return len(wanted) > 0
}

// checkPorts: every port that is named somewhere is one of the container's, or of the Service's.
func checkPorts(t *testing.T, r result) {
	t.Helper()
	service, container := r.one(t, "Service"), at(r.pod(t), "containers", 0)
	inPod, inService := namesOf(list(container, "ports")), namesOf(list(service, "spec", "ports"))
	var ofPod, ofService []string
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		ofPod = append(ofPod, text(container, probe, "httpGet", "port"))
	}
	for _, port := range list(service, "spec", "ports") {
		ofPod = append(ofPod, text(port, "targetPort"))
	}
	for _, policy := range r.kind("NetworkPolicy") {
		for _, rule := range list(policy, "spec", "ingress") {
			for _, port := range list(rule, "ports") {
				ofPod = append(ofPod, text(port, "port"))
			}
		}
	}
	for _, monitor := range r.kind("PodMonitor") {
		ofPod = append(ofPod, text(monitor, "spec", "podMetricsEndpoints", 0, "port"))
	}
	for _, monitor := range r.kind("ServiceMonitor") {
		ofService = append(ofService, text(monitor, "spec", "endpoints", 0, "port"))
	}
	for _, ingress := range r.kind("Ingress") {
		backend := at(ingress, "spec", "rules", 0, "http", "paths", 0, "backend", "service")
		ofService = append(ofService, text(backend, "port", "name"))
		if text(backend, "name") != text(service, "metadata", "name") {
			t.Errorf("the Ingress leads to %s, expected the Service", text(backend, "name"))
		}
	}
	for _, name := range ofPod {
		if !slices.Contains(inPod, name) {
			t.Errorf("the port %q is named, the container has %q", name, inPod)
		}
	}
	for _, name := range ofService {
		if !slices.Contains(inService, name) {
			t.Errorf("the port %q of the Service is named, it has %q", name, inService)
		}
	}
}

func namesOf(items []any) []string {
	var names []string
	for _, item := range items {
		names = append(names, text(item, "name"))
	}
	return names
}

// checkVolumes: what is mounted is there, what is there is mounted, and nothing lies in another's place.
func checkVolumes(t *testing.T, r result) {
	t.Helper()
	mounts := list(r.pod(t), "containers", 0, "volumeMounts")
	volumes, mounted := namesOf(list(r.pod(t), "volumes")), namesOf(mounts)
	slices.Sort(volumes)
	slices.Sort(mounted)
	if !slices.Equal(volumes, mounted) {
		t.Errorf("volumes %q, mounted %q", volumes, mounted)
	}
	paths := map[string]bool{}
	for _, mount := range mounts {
		if path := text(mount, "mountPath"); paths[path] {
			t.Errorf("two volumes are mounted at %s", path)
		} else {
			paths[path] = true
		}
		if text(mount, "subPath") != "" {
			t.Errorf("%s is mounted by subPath: a change of it would never arrive", text(mount, "name"))
		}
	}
}

// checkReferences: an object that the pod needs is one of the chart's, or was named in the values; and none is optional, so
// that a missing one keeps the pod from starting, and Kubernetes says which.
func checkReferences(t *testing.T, r result) {
	t.Helper()
	own := map[string]bool{}
	for _, o := range r.Objects {
		own[text(o, "metadata", "name")] = true
	}
	given := valuesOf(t, r.Name)
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			if v["optional"] == true {
				t.Errorf("%v is optional", v)
			}
			for _, name := range referenced(v) {
				if !own[name] && !strings.Contains(given, name) {
					t.Errorf("the pod needs %q, which neither the chart makes nor a value names (%s)", name, given)
				}
			}
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(r.pod(t))
}

// referenced are the names of objects in one level of a pod's spec.
func referenced(v map[string]any) []string {
	var names []string
	for _, path := range [][]any{
		{"secretKeyRef", "name"}, {"configMapKeyRef", "name"}, {"configMapRef", "name"}, {"secretRef", "name"},
		{"secret", "secretName"}, {"configMap", "name"}, {"persistentVolumeClaim", "claimName"}, {"serviceAccountName"},
	} {
		if name := text(v, path...); name != "" && name != "default" {
			names = append(names, name)
		}
	}
	return names
}

// valuesOf a case, as text.
func valuesOf(t *testing.T, name string) string {
	t.Helper()
	c := soundCase(t, name)
	text, err := json.Marshal([]any{c.Set, c.Values})
	testkit.Must(t, err)
	return string(text)
}

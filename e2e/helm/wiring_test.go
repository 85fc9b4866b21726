package helm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// checkWiring holds the objects of a release against one another: what one names, another must have.
func checkWiring(t *testing.T, r result) {
	t.Helper()
	checkNames(t, r)
	checkVolumes(t, r)
	checkReferences(t, r)
	checkOps(t, r)
}

// checkOps: who asks a Service for metrics or probes finds their port there.
func checkOps(t *testing.T, r result) {
	t.Helper()
	var addresses []string
	for _, service := range r.kind("Service") {
		for _, port := range list(service, "spec", "ports") {
			if text(port, "name") == "ops" {
				addresses = append(addresses, text(service, "metadata", "name")+":"+text(port, "port"))
			}
		}
	}
	asked := text(r.one(t, "Pod"), "spec", "containers", 0, "env", 0, "value")
	if !slices.Equal(addresses, []string{asked}) {
		t.Errorf("metrics and probes are at %q, and `helm test` asks %q", addresses, asked)
	}
}

func checkNames(t *testing.T, r result) {
	t.Helper()
	seen := map[string]bool{}
	for _, o := range r.Objects {
		name := text(o, "metadata", "name")
		if key := text(o, "kind") + " " + name; seen[key] || len(name) > 63 {
			t.Errorf("two of %s, or it has more than 63 characters", key)
		} else {
			seen[key] = true
		}
		for _, label := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/version", "helm.sh/chart"} {
			if got := text(o, "metadata", "labels", label); got == "" || len(got) > 63 {
				t.Errorf("%s has the label %s %q", name, label, got)
			}
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
	given := fmt.Sprint(r.Set, r.Values)
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

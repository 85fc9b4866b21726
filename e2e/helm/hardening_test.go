package helm

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/testkit"
)

// checkRestricted: a pod is what the restricted profile allows. The profile itself judges it in TestAPIServer.
func checkRestricted(t *testing.T, pod any) {
	t.Helper()
	container := at(pod, "containers", 0, "securityContext")
	for what, ok := range map[string]bool{
		"no root":                 at(pod, "securityContext", "runAsNonRoot") == true,
		"the runtime's seccomp":   text(pod, "securityContext", "seccompProfile", "type") == "RuntimeDefault",
		"no gain of privileges":   at(container, "allowPrivilegeEscalation") == false,
		"no capabilities":         text(container, "capabilities", "drop") == "[ALL]" && at(container, "capabilities", "add") == nil,
		"no name space of a host": at(pod, "hostNetwork") == nil && at(pod, "hostPID") == nil && at(pod, "hostIPC") == nil,
	} {
		if !ok {
			t.Errorf("expected %s: %v", what, pod)
		}
	}
}

// checkHardening: that, what the restricted profile does not ask for, and how the pods are replaced.
func checkHardening(t *testing.T, r result) {
	t.Helper()
	deployment, pod := r.one(t, "Deployment"), r.pod(t)
	checkRestricted(t, pod)
	checkRestricted(t, at(r.one(t, "Pod"), "spec"))
	container := at(pod, "containers", 0)
	for what, ok := range map[string]bool{
		"the root file system is read-only":      at(container, "securityContext", "readOnlyRootFilesystem") == true,
		"no token of the service account":        at(pod, "automountServiceAccountToken") == false,
		"no service links":                       at(pod, "enableServiceLinks") == false,
		"requests of CPU and memory, or a limit": at(container, "resources", "requests") != nil || at(container, "resources", "limits") != nil,
		"a limit of memory":                      at(container, "resources", "limits", "memory") != nil,
		"an image of a fixed version":            !strings.HasSuffix(text(container, "image"), ":latest") && strings.ContainsAny(text(container, "image"), ":@"),
		"that it serves":                         text(container, "args") == "[serve]",
		"a start that is over when it lives":     text(container, "startupProbe", "httpGet", "path") == "/livez",
		"a restart where it does not live":       text(container, "livenessProbe", "httpGet", "path") == "/livez",
		"no traffic before it is ready":          text(container, "readinessProbe", "httpGet", "path") == "/readyz",
	} {
		if !ok {
			t.Errorf("expected %s: %v", what, pod)
		}
	}
	for _, account := range r.kind("ServiceAccount") {
		if at(account, "automountServiceAccountToken") != false {
			t.Error("the service account's token is mounted")
		}
	}
	for _, volume := range list(pod, "volumes") {
		for _, source := range []string{"secret", "configMap"} {
			if mode := text(volume, source, "defaultMode"); at(volume, source) != nil && mode != "288" { // 0440
				t.Errorf("%v can be read by others than the pod's group", volume)
			}
		}
	}
	checkStop(t, r)
	checkRollout(t, r, deployment)
}

// checkStop: the worker has handed everything back before Kubernetes kills it.
func checkStop(t *testing.T, r result) {
	t.Helper()
	stop, err := time.ParseDuration(value(r.variables(t)["RETRY_WORKER_SHUTDOWN_TIMEOUT"]))
	testkit.Must(t, err)
	seconds, err := strconv.Atoi(text(r.pod(t), "terminationGracePeriodSeconds"))
	testkit.Must(t, err)
	if grace := time.Duration(seconds) * time.Second; stop >= grace {
		t.Errorf("the worker takes up to %s to stop, Kubernetes kills it after %s", stop, grace)
	}
}

// checkRollout: one pod at a time uses a SQLite file; on PostgreSQL there is never a pod less than wanted.
func checkRollout(t *testing.T, r result, deployment object) {
	t.Helper()
	strategy, replicas := at(deployment, "spec", "strategy"), text(deployment, "spec", "replicas")
	many := replicas != "0" && replicas != "1"
	if sqlite := strings.HasPrefix(value(r.variables(t)["RETRY_WORKER_DATABASE_URL"]), "sqlite:"); sqlite {
		if text(strategy, "type") != "Recreate" || many {
			t.Errorf("SQLite with the strategy %v and %s replicas", strategy, replicas)
		}
	} else if value(r.variables(t)["RETRY_WORKER_DATABASE_URL_FILE"]) == "" {
		t.Error("the worker is told of no database")
	} else if text(strategy, "rollingUpdate", "maxUnavailable") != "0" || len(r.kind("PersistentVolumeClaim")) > 0 {
		t.Errorf("PostgreSQL with the strategy %v and %d claims", strategy, len(r.kind("PersistentVolumeClaim")))
	}
	if budgets := len(r.kind("PodDisruptionBudget")); (budgets == 1) != many {
		t.Errorf("%d PodDisruptionBudgets for %s replicas", budgets, replicas)
	}
}

package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/kubernetes"
	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

const (
	chart           = root + "/deploy/helm/retry-worker"
	inCluster       = "localhost/" + name + ":test"
	engineInCluster = "localhost/" + name + "-dev:test"
	selector        = "app.kubernetes.io/name=retry-worker,app.kubernetes.io/component!=test"
)

// cluster is a node with an engine and a database, beside which the chart is installed, and the claims that go through
// it.
type cluster struct {
	*kubernetes.Cluster
	claims *claims
	folder string
	took   []string // what was done under load, and how long until all was ready again
}

// TestKubernetes installs the chart with two replicas on a real node, and does with it what operators do, and what happens to
// them, while claims come: none is lost, and none decided twice.
func TestKubernetes(t *testing.T) {
	begun := time.Now()
	e := containers(t)
	images := map[string]string{
		"engine": engineInCluster, name: inCluster,
		"postgresql": "localhost/postgresql:15", "pause": "localhost/pause:latest",
	}
	e.provide(t, builder(t))
	for tag, made := range map[string]target{inCluster: production, engineInCluster: development} {
		e.build(t, made, compiled(t))
		e.do(t, "tag", made.tag, tag)
	}
	k := &cluster{folder: t.TempDir()}
	k.Cluster = kubernetes.StartNode(t, func(folder string) {
		for program, image := range images {
			e.provide(t, image)
			e.do(t, "save", "--quiet", "--output", filepath.Join(folder, program+".tar"), image)
		}
	})
	ready := time.Now()
	k.Do(t, "", "kubectl", "create", "namespace", "camunda")
	k.Do(t, "", "kubectl", "label", "namespace", "camunda", "pod-security.kubernetes.io/enforce=restricted")
	k.kubectl(t, "wait", "serviceaccount/default", "--for=create") // pods are refused before
	k.kubectl(t, "apply", "--filename=testdata/kubernetes.yaml")
	k.Names(t)
	k.kubectl(t, "wait", "pod", "--all", "--for=condition=Ready", "--timeout=2m")
	k.claims = submit(t, k.address(t, "zeebe-gateway", 26500))

	k.expectRefused(t)
	k.kubectl(t, "create", "secret", "generic", "journal", "--from-literal=url=postgres://journal@postgresql:5432/postgres")
	token := k.issue(t, "first", "create")
	k.Do(t, "", "helm", "install", "retry-worker", chart, "--namespace=camunda", "--wait", "--timeout=2m",
		"--set=replicaCount=2,auth.existingSecret=tokens,database.existingSecret=journal",
		"--set=image.repository=localhost/"+name+",image.tag=test,image.pullPolicy=Never")
	k.Names(t)
	k.Do(t, "", "helm", "test", "retry-worker", "--namespace=camunda")

	k.during(t, "rolling upgrade", func() {
		k.Do(t, "", "helm", "upgrade", "retry-worker", chart, "--namespace=camunda", "--reuse-values", "--wait", "--timeout=2m", "--set=config.logLevel=debug")
	})
	k.during(t, "pod killed", func() { k.kubectl(t, "delete", k.pods(t)[0], "--force", "--grace-period=0") })
	k.during(t, "node drained", func() {
		said, err := k.Try(t, "", "kubectl", "drain", "node", "--pod-selector="+selector, "--delete-emptydir-data", "--timeout=10s")
		if err == nil || !strings.Contains(said, "would violate the pod's disruption budget") {
			t.Errorf("both pods of two are evicted, though the budget has one stay: %v\n%s", err, said)
		}
		k.kubectl(t, "uncordon", "node")
	})
	before := k.starts(t)
	k.during(t, "tokens replaced", func() { token = k.replaceTokens(t, token) })
	if after := k.starts(t); after != before {
		t.Errorf("with the tokens replaced the pods and how often they started are %s, expected as before %s", after, before)
	}
	people := &api.Client{Base: "http://" + k.address(t, "retry-worker", 8095), Token: token}
	k.claims.expectOnce(t, func(claim string) string {
		history, err := people.Ask(wait.Context(t), "/subjects/tiss-submission/"+claim, nil)
		testkit.Must(t, err)
		return string(history)
	})
	k.Do(t, "", "helm", "uninstall", "retry-worker", "--namespace=camunda", "--wait")
	harness.Report(t, "kubernetes  %s: %d claims analysed once; until all was ready: %s; in %v, of which %v on the node",
		strings.TrimSpace(k.Do(t, "", "kubectl", "get", "node", "node", "-o", "jsonpath={.status.nodeInfo.kubeletVersion}, {.status.nodeInfo.containerRuntimeVersion}")),
		k.claims.created, strings.Join(k.took, ", "), time.Since(begun).Round(time.Second), time.Since(ready).Round(time.Second))
}

func (k *cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(k.Do(t, "", "kubectl", append([]string{"--namespace=camunda"}, args...)...))
}

// address of a service, which can be reached from outside the cluster too.
func (k *cluster) address(t *testing.T, service string, port int) string {
	t.Helper()
	return fmt.Sprintf("%s:%d", k.kubectl(t, "get", "service", service, "-o", "jsonpath={.spec.clusterIP}"), port)
}

// pods of the worker, as kubectl's arguments.
func (k *cluster) pods(t *testing.T) []string {
	t.Helper()
	return strings.Fields(k.kubectl(t, "get", "pods", "--selector="+selector, "-o", "name"))
}

// starts are the worker's pods, and how often each started anew.
func (k *cluster) starts(t *testing.T) string {
	t.Helper()
	return k.kubectl(t, "get", "pods", "--selector="+selector, "-o",
		`jsonpath={range .items[*]}{.metadata.name}: {.status.containerStatuses[0].restartCount}; {end}`)
}

// during has claims come while something happens, and until the worker is whole again.
func (k *cluster) during(t *testing.T, what string, happens func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stopped := make(chan error)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := k.claims.create(t.Context()); err != nil {
				stopped <- err
				return
			}
			<-tick.C
		}
		stopped <- nil
	}()
	begun := time.Now()
	happens()
	k.kubectl(t, "rollout", "status", "deployment/retry-worker", "--timeout=2m")
	wait.Until(t, "two pods, both ready", func() bool {
		const ready = "jsonpath={.items[*].status.containerStatuses[*].ready}"
		return k.kubectl(t, "get", "pods", "--selector="+selector, "-o", ready) == "true true"
	})
	k.took = append(k.took, fmt.Sprintf("%s %.1f s", what, time.Since(begun).Seconds()))
	stop()
	testkit.Must(t, <-stopped)
}

// expectRefused holds that wrong values, of which e2e/helm knows all, end helm install before anything is made.
func (k *cluster) expectRefused(t *testing.T) {
	t.Helper()
	for set, want := range map[string]string{
		"replicaCount=2":        "SQLite is used by one replica; for more, set database.url or database.existingSecret (PostgreSQL)",
		"service.type=NodePort": "service.type is NodePort, but auth.existingSecret is not set",
	} {
		said, err := k.Try(t, "", "helm", "install", "retry-worker", chart, "--namespace=camunda", "--set="+set)
		if err == nil || !strings.Contains(said, want) {
			t.Errorf("helm install --set %s: %v, expected %q:\n%s", set, err, want, said)
		}
	}
	if left := k.kubectl(t, "get", "deployments,secrets,configmaps", "--selector=app.kubernetes.io/name=retry-worker", "-o", "name"); left != "" {
		t.Errorf("what was refused left %s", left)
	}
}

// issue puts a token for an administrator into the secret, and returns it.
func (k *cluster) issue(t *testing.T, person, verb string) (token string) {
	t.Helper()
	file := filepath.Join(k.folder, person)
	token = harness.Issue(t, file, map[string]access.Role{person: access.Admin})[person]
	secret := k.kubectl(t, "create", "secret", "generic", "tokens", "--from-file=tokens="+file, "--dry-run=client", "-o", "json")
	k.Do(t, secret, "kubectl", "--namespace=camunda", verb, "-f", "-")
	return token
}

// replaceTokens waits until every pod knows the new token and the old one no more.
func (k *cluster) replaceTokens(t *testing.T, old string) (token string) {
	t.Helper()
	token = k.issue(t, "second", "replace")
	var pods struct {
		Items []struct{ Status struct{ PodIP string } }
	}
	testkit.Must(t, json.Unmarshal([]byte(k.kubectl(t, "get", "pods", "--selector="+selector, "-o", "json")), &pods))
	for _, pod := range pods.Items {
		asks := func(token string) int {
			_, err := (&api.Client{Base: "http://" + pod.Status.PodIP + ":8095", Token: token}).Ask(wait.Context(t), "/destinations", nil)
			if refused, is := errors.AsType[*access.Refusal](err); is {
				return refused.Status
			}
			testkit.Must(t, err)
			return http.StatusOK
		}
		wait.Until(t, "the tokens replaced in "+pod.Status.PodIP, func() bool {
			return asks(token) == http.StatusOK && asks(old) == http.StatusUnauthorized
		})
	}
	return token
}

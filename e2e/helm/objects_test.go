package helm

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/catalogue"
)

func TestKinds(t *testing.T) {
	for set, want := range map[string]string{
		"":                              "Deployment NetworkPolicy PersistentVolumeClaim Pod Service ServiceAccount",
		"database.existingSecret=a":     "Deployment NetworkPolicy Pod Service ServiceAccount",
		"database.url=postgres://a@b/c": "Deployment NetworkPolicy Pod Secret Service ServiceAccount",
		"replicaCount=2;database.existingSecret=a":                  "Deployment NetworkPolicy Pod PodDisruptionBudget Service ServiceAccount",
		"persistence.enabled=false":                                 "Deployment NetworkPolicy Pod Service ServiceAccount",
		"persistence.existingClaim=a":                               "Deployment NetworkPolicy Pod Service ServiceAccount",
		"policies.catalogue=a":                                      "ConfigMap Deployment NetworkPolicy PersistentVolumeClaim Pod Service ServiceAccount",
		"policies.teams.ti.email={ti@hospital.example}":             "ConfigMap Deployment NetworkPolicy PersistentVolumeClaim Pod Service ServiceAccount",
		"policies.existingConfigMap=a":                              "Deployment NetworkPolicy PersistentVolumeClaim Pod Service ServiceAccount",
		"networkPolicy.enabled=false":                               "Deployment PersistentVolumeClaim Pod Service ServiceAccount",
		"serviceAccount.create=false":                               "Deployment NetworkPolicy PersistentVolumeClaim Pod Service",
		"podMonitor.enabled=true":                                   "Deployment NetworkPolicy PersistentVolumeClaim Pod PodMonitor Service ServiceAccount",
		"serviceMonitor.enabled=true":                               "Deployment NetworkPolicy PersistentVolumeClaim Pod Service ServiceAccount ServiceMonitor",
		"prometheusRule.enabled=true":                               "Deployment NetworkPolicy PersistentVolumeClaim Pod PrometheusRule Service ServiceAccount",
		"auth.existingSecret=a;ingress.enabled=true;ingress.host=a": "Deployment Ingress NetworkPolicy PersistentVolumeClaim Pod Service ServiceAccount",
	} {
		var kinds []string
		for _, o := range renderOne(t, split(set)...).Objects {
			kinds = append(kinds, text(o, "kind"))
		}
		slices.Sort(kinds)
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%s: got %s, want %s", set, got, want)
		}
	}
}

func TestImage(t *testing.T) {
	at := "@sha256:" + digest
	for set, want := range map[string]string{
		"":                                       "retry-worker:0.1.0",
		"image.repository=localhost:5000/a/b":    "localhost:5000/a/b:0.1.0",
		"image.tag=1.2.3":                        "retry-worker:1.2.3",
		"image.digest=" + at[1:]:                 "retry-worker" + at,
		"image.tag=1.2.3;image.digest=" + at[1:]: "retry-worker:1.2.3" + at,
	} {
		r := renderOne(t, split(set)...)
		if got := text(r.pod(t), "containers", 0, "image"); got != want {
			t.Errorf("%s: got %s, want %s", set, got, want)
		}
		if test := text(r.one(t, "Pod"), "spec", "containers", 0, "image"); test != want {
			t.Errorf("%s: helm test runs %s, want %s", set, test, want)
		}
	}
}

// TestConsole: only with tokens does the console listen where others reach it, and only then is it offered.
func TestConsole(t *testing.T) {
	for _, row := range []struct{ set, addr, ports string }{
		{"", "127.0.0.1:8095", "ops"},
		{"auth.existingSecret=tokens", ":8095", "http ops"},
		{"auth.existingSecret=tokens;service.type=NodePort", ":8095", "http"}, // metrics are not for who is outside
	} {
		r := renderOne(t, split(row.set)...)
		variables := r.variables(t)
		if got := value(variables["RETRY_WORKER_HTTP_ADDR"]); got != row.addr {
			t.Errorf("%s: listens on %s, want %s", row.set, got, row.addr)
		}
		if got := strings.Join(namesOf(list(r.one(t, "Service"), "spec", "ports")), " "); got != row.ports {
			t.Errorf("%s: the Service offers %s, want %s", row.set, got, row.ports)
		}
		if tokens := value(variables["RETRY_WORKER_AUTH_TOKENS_FILE"]); (tokens != "") != (row.set != "") {
			t.Errorf("%s: the tokens file is %q", row.set, tokens)
		}
	}
}

// TestSecrets: secrets come from where the values say, and stand nowhere but in the chart's own Secret.
func TestSecrets(t *testing.T) {
	r := renderOne(t, "database.existingSecret=journal", "database.existingSecretKey=uri", "events.existingSecret=nats",
		"zeebe.auth.existingSecret=client", "zeebe.auth.existingSecretClientIdKey=id")
	variables := r.variables(t)
	for name, want := range map[string]string{
		"RETRY_WORKER_DATABASE_URL_FILE": "journal/uri", "RETRY_WORKER_EVENTS_URL_FILE": "nats/url",
		"ZEEBE_CLIENT_ID": "client/id", "ZEEBE_CLIENT_SECRET_FILE": "client/client-secret",
	} {
		if got := r.source(t, variables[name]); got != want {
			t.Errorf("%s comes from %q, want %q", name, got, want)
		}
	}
	const url = "postgres://retry:canary@pg/retry"
	r = renderOne(t, "database.url="+url)
	for _, o := range r.Objects {
		if strings.Contains(fmt.Sprint(o), "canary") {
			t.Errorf("the password stands in %s", text(o, "kind"))
		}
	}
	secret := r.one(t, "Secret")
	if got, err := base64.StdEncoding.DecodeString(text(secret, "data", "url")); err != nil || string(got) != url {
		t.Errorf("the Secret holds %q (%v)", got, err)
	}
	if got := r.source(t, r.variables(t)["RETRY_WORKER_DATABASE_URL_FILE"]); got != text(secret, "metadata", "name")+"/url" {
		t.Errorf("RETRY_WORKER_DATABASE_URL_FILE comes from %s", got)
	}
	if strings.Contains(r.Notes, "canary") {
		t.Errorf("the password stands in the notes:\n%s", r.Notes)
	}
}

// TestDatabaseSecretRolls: another URL restarts the pods; another policy does not, they take it up.
func TestDatabaseSecretRolls(t *testing.T) {
	template := func(set ...string) string {
		return fmt.Sprint(at(renderOne(t, set...).one(t, "Deployment"), "spec", "template"))
	}
	if template("database.url=postgres://a:b@pg/c") == template("database.url=postgres://a:x@pg/c") {
		t.Error("a new password does not reach the pods")
	}
	if template("policies.catalogue=a") != template("policies.catalogue=b") {
		t.Error("a new catalogue restarts the pods, which would take it up by themselves")
	}
}

// TestTeamsAreTold: the addresses of the values reach the catalogue, and nothing else changes.
func TestTeamsAreTold(t *testing.T) {
	file := text(renderOne(t, "policies.teams.ti.email={ti@hospital.example}", "policies.teams.ti.digests={weekly}").one(t, "ConfigMap"), "data", "policies.yaml")
	c, err := catalogue.Parse("policies.yaml", []byte(file))
	if err != nil {
		t.Fatalf("%s\n%v", file, err)
	}
	if ti := c.Teams["ti"]; !slices.Equal(ti.Email, []string{"ti@hospital.example"}) || len(catalogue.Changes(catalogue.Default(), c)) != 2 {
		t.Errorf("%s\nchanges %v", file, catalogue.Changes(catalogue.Default(), c))
	}
}

// TestJournalStays: what was decided outlives the release.
func TestJournalStays(t *testing.T) {
	claim := renderOne(t, "persistence.annotations.a=b").one(t, "PersistentVolumeClaim")
	if got := text(claim, "metadata", "annotations", "helm.sh/resource-policy"); got != "keep" || text(claim, "metadata", "annotations", "a") != "b" {
		t.Errorf("annotations %v", at(claim, "metadata", "annotations"))
	}
	if got := fmt.Sprint(at(claim, "spec", "accessModes")); got != "[ReadWriteOncePod]" {
		t.Errorf("access modes %s", got)
	}
}

func TestMemoryLimit(t *testing.T) {
	for set, want := range map[string]string{
		"": "460MiB", "resources.limits.memory=1Gi": "921MiB", "resources.limits.memory=100M": "", "resources.limits=null": "",
	} {
		r := render(t, helmCase{Name: set, Set: split(set)})[0]
		if r.Error != "" {
			t.Fatal(r.Error)
		}
		if got := value(r.variables(t)["GOMEMLIMIT"]); got != want {
			t.Errorf("%s: got %q, want %q", set, got, want)
		}
	}
}

// TestHelmTest: `helm test` asks the Service whether the worker is ready.
func TestHelmTest(t *testing.T) {
	r := renderOne(t, "service.opsPort=9999")
	pod := r.one(t, "Pod")
	if got := text(pod, "metadata", "annotations", "helm.sh/hook"); got != "test" {
		t.Errorf("the hook is %q", got)
	}
	want := text(r.one(t, "Service"), "metadata", "name") + ":9999"
	if got := text(pod, "spec", "containers", 0, "env", 0, "value"); got != want {
		t.Errorf("it asks %s, want %s", got, want)
	}
	if got := fmt.Sprint(at(pod, "spec", "containers", 0, "args")); got != "[ready]" {
		t.Errorf("it runs %s", got)
	}
	if !selects(at(r.one(t, "NetworkPolicy"), "spec", "ingress", 0, "from", 1, "podSelector", "matchLabels"), at(pod, "metadata", "labels")) {
		t.Error("the NetworkPolicy does not let it in")
	}
}

func TestNotes(t *testing.T) {
	for _, row := range []struct{ set, want string }{
		{"", "zeebe-gateway:26500 without TLS"},
		{"", "port-forward deployment/rw-retry-worker 8095"},
		{"", "SQLite file on the volume rw-retry-worker-journal"},
		{"", "without log-in, until auth.existingSecret"},
		{"persistence.enabled=false", "ENDS WITH THE POD"},
		{"database.existingSecret=a;replicaCount=3", "PostgreSQL; replicas: 3"},
		{"zeebe.auth.existingSecret=a", "NOT ENCRYPTED: set zeebe.tls.enabled"},
		{"zeebe.auth.existingSecret=a;zeebe.tls.enabled=true", "over TLS, with a token."},
		{"auth.existingSecret=a", "log in with a token"},
		{"auth.existingSecret=a;ingress.enabled=true;ingress.host=a.example", "The console: https://a.example"},
	} {
		if notes := renderOne(t, split(row.set)...).Notes; !strings.Contains(notes, row.want) {
			t.Errorf("%s: expected %q in\n%s", row.set, row.want, notes)
		}
	}
}

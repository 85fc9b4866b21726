package helm

import (
	"testing"
)

// The combinations of values that matter. Each is linted, checked against the API's schemas and the restricted profile,
// wired up soundly, and understood by the worker.
var sound = []helmCase{
	{Name: "defaults"},
	{Name: "three values", Set: []string{"image.repository=registry.example/retry-worker", "zeebe.address=camunda-zeebe-gateway:26500", "database.existingSecret=journal-app"}},
	{Name: "SaaS", Set: []string{"zeebe.address=4f2c.bru-2.zeebe.camunda.io:443", "zeebe.tls.enabled=true", "zeebe.auth.existingSecret=camunda-client"}},
	{Name: "self-managed, own authority in a secret", Set: []string{
		"zeebe.tls.enabled=true", "zeebe.tls.existingSecret=zeebe-ca", "zeebe.tls.overrideAuthority=zeebe.example",
		"zeebe.auth.existingSecret=identity", "zeebe.auth.existingSecretClientIdKey=id", "zeebe.auth.existingSecretClientSecretKey=secret",
		"zeebe.auth.authorizationServerUrl=https://keycloak.example:8443/realms/camunda-platform/protocol/openid-connect/token",
		"zeebe.auth.audience=zeebe-api", "zeebe.auth.scope=openid", "trustedAuthorities.existingSecret=hospital-ca",
	}},
	{Name: "own authority in a ConfigMap", Set: []string{
		"zeebe.tls.enabled=true", "zeebe.tls.existingConfigMap=trust", "zeebe.tls.existingKey=trust-bundle.pem", "trustedAuthorities.existingConfigMap=trust",
	}},
	{Name: "tenants", Set: []string{"zeebe.tenantIds={hospital-a,hospital-b}"}},
	{Name: "replicas on PostgreSQL by URL", Set: []string{"replicaCount=3", "database.url=postgres://retry:p%40ss@pg.example:6432/retry"}},
	{Name: "replicas on PostgreSQL by secret, over TLS", Set: []string{
		"replicaCount=3", "database.existingSecret=journal-app", "database.existingSecretKey=uri", "database.port=6432", "database.tls.existingSecret=journal-ca",
		"podDisruptionBudget.maxUnavailable=34%",
	}},
	{Name: "one replica on PostgreSQL", Set: []string{"database.existingSecret=journal-app"}},
	{Name: "no replica", Set: []string{"replicaCount=0"}},
	{Name: "no volume", Set: []string{"persistence.enabled=false"}},
	{Name: "volume of one's own", Set: []string{"persistence.existingClaim=journal"}},
	{Name: "another volume", Set: []string{"persistence.storageClass=fast", "persistence.accessMode=ReadWriteOnce", "persistence.size=100Gi"}},
	{Name: "tokens", Set: []string{"auth.existingSecret=tokens"}},
	{Name: "tokens, load balancer", Set: []string{"auth.existingSecret=tokens", "service.type=LoadBalancer", "service.httpPort=80"}},
	{Name: "tokens and TLS", Set: []string{"auth.existingSecret=tokens", "tls.existingSecret=reenvio-tls"}},
	{Name: "ingress", Set: []string{"auth.existingSecret=tokens", "ingress.enabled=true", "ingress.host=reenvio.example", "ingress.className=nginx", "ingress.tls.existingSecret=reenvio-tls"}},
	{Name: "ingress without a certificate of its own", Set: []string{"auth.existingSecret=tokens", "ingress.enabled=true", "ingress.host=reenvio.example"}},
	{Name: "policies as text", Values: map[string]any{"policies": map[string]any{"catalogue": "version: 1\npolicies: {}\n"}}},
	{Name: "teams that are told", Values: map[string]any{"policies": map[string]any{"teams": map[string]any{"ti": map[string]any{"email": []any{"ti@hospital.example"}}}}}},
	{Name: "policies of a ConfigMap", Set: []string{"policies.existingConfigMap=policies", "policies.existingConfigMapKey=catalogue.yaml"}},
	{Name: "events", Set: []string{"events.url=nats://nats.messaging:4222"}},
	{Name: "events with a password", Set: []string{"events.existingSecret=nats-user"}},
	{Name: "mail and webhooks", Set: []string{
		"notify.smtp.url=smtp://retry@mail.example:2525", "notify.smtp.from=reenvio@hospital.example", "notify.smtp.existingSecret=mail", "notify.smtp.tls.existingSecret=mail-ca",
		"notify.webhooks.enabled=true", "notify.webhooks.existingSecret=hooks", "notify.webhooks.allow={10.0.0.0/8,chat.example}",
		"notify.interval=5m", "notify.digestTime=06:30", "notify.timeZone=America/Manaus", "notify.publicUrl=https://reenvio.example",
	}},
	{Name: "mail and ingress", Set: []string{
		"notify.smtp.url=smtps://mail.example", "notify.smtp.from=reenvio@hospital.example", "auth.existingSecret=tokens", "ingress.enabled=true", "ingress.host=reenvio.example",
	}},
	{Name: "tracing", Set: []string{"tracing.endpoint=http://otel-collector.monitoring:4317", "tracing.protocol=grpc"}},
	{Name: "worker settings", Set: []string{
		"config.maxJobsActive=200", "config.jobTimeout=1m30s", "config.concurrency=100", "config.workerName=reenvio", "config.shutdownTimeoutSeconds=50",
		"terminationGracePeriodSeconds=60", "config.logLevel=debug", "config.logFormat=console", "config.retention=90d", "config.pprof=true", "config.operateUrl=https://operate.example", "config.grafanaUrl=https://grafana.example/d/a",
	}},
	{Name: "pod monitor, rules and dashboards", Set: []string{"podMonitor.enabled=true", "podMonitor.labels.release=prometheus", "podMonitor.scrapeTimeout=10s", "prometheusRule.enabled=true", "prometheusRule.labels.release=prometheus", "dashboards.enabled=true"}},
	{Name: "service monitor", Set: []string{"serviceMonitor.enabled=true"}},
	{Name: "image by digest", Set: []string{"image.digest=sha256:" + digest}},
	{Name: "image by tag and digest", Set: []string{"image.tag=0.2.0", "image.digest=sha256:" + digest, "image.pullSecrets={registry}"}},
	{Name: "a release that is called like the chart", Release: "retry-worker"},
	{Name: "a release of the longest name", Release: "a-release-that-has-the-longest-name-that-helm-will-le", Set: []string{"database.url=postgres://a@b/c", "dashboards.enabled=true"}},
	{Name: "names of one's own", Set: []string{"nameOverride=retries", "fullnameOverride=hospital-retries", "serviceAccount.name=retries"}},
	{Name: "service account of somebody else", Set: []string{"serviceAccount.create=false"}},
	{Name: "no network policy", Set: []string{"networkPolicy.enabled=false"}},
	{Name: "peers", Values: peersOfAll},
	{Name: "what is passed on to Kubernetes", Values: passedOn},
	{Name: "as a part of another chart", Values: map[string]any{"global": map[string]any{"ingress": map[string]any{"enabled": true}}}},
	{Name: "OpenShift, which chooses the user", Values: map[string]any{"podSecurityContext": map[string]any{"runAsUser": nil, "runAsGroup": nil, "fsGroup": nil}, "networkPolicy": map[string]any{"dnsPorts": []any{53, 5353}}}},
	{Name: "the oldest Kubernetes", KubeVersion: "v1.29.0"},
}

const digest = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00"

func peer(app string) []any {
	return []any{map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"app": app}}}}
}

// peersOfAll names a peer for every dependency and turns every dependency on.
var peersOfAll = map[string]any{
	"zeebe":    map[string]any{"auth": map[string]any{"existingSecret": "identity", "authorizationServerUrl": "http://keycloak/token"}},
	"database": map[string]any{"existingSecret": "journal-app"},
	"auth":     map[string]any{"existingSecret": "tokens"},
	"events":   map[string]any{"url": "nats://nats"},
	"tracing":  map[string]any{"endpoint": "http://collector:4318"},
	"notify": map[string]any{
		"smtp":     map[string]any{"url": "smtp://mail", "from": "a@b.example"},
		"webhooks": map[string]any{"enabled": true},
	},
	"networkPolicy": map[string]any{
		"dns": peer("dns"), "zeebe": peer("zeebe"), "identityProvider": peer("keycloak"), "database": peer("postgresql"), "events": peer("nats"),
		"smtp": peer("mail"), "webhooks": peer("chat"), "tracing": peer("collector"), "metrics": peer("prometheus"), "console": peer("ingress"),
		"extraIngress": []any{map[string]any{"from": peer("more")}},
		"extraEgress":  []any{map[string]any{"to": peer("more")}},
	},
}

// passedOn are values that Kubernetes understands, and the chart hands on.
var passedOn = map[string]any{
	"commonLabels": map[string]any{"team": "billing"}, "commonAnnotations": map[string]any{"owner": "faturamento"},
	"podLabels": map[string]any{"tier": "worker"}, "podAnnotations": map[string]any{"backup": "no"},
	"env":          []any{map[string]any{"name": "OTEL_RESOURCE_ATTRIBUTES", "value": "hospital=a"}},
	"envFrom":      []any{map[string]any{"configMapRef": map[string]any{"name": "proxy"}}},
	"nodeSelector": map[string]any{"kubernetes.io/arch": "amd64"}, "tolerations": []any{map[string]any{"key": "dedicated", "operator": "Exists"}},
	"affinity":                  map[string]any{"nodeAffinity": map[string]any{}},
	"topologySpreadConstraints": []any{map[string]any{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": map[string]any{"matchLabels": map[string]any{"app": "a"}}}},
	"priorityClassName":         "important",
	"extraVolumes":              []any{map[string]any{"name": "more", "emptyDir": map[string]any{}}},
	"extraVolumeMounts":         []any{map[string]any{"name": "more", "mountPath": "/more"}},
	"initContainers":            []any{container("wait")}, "sidecars": []any{container("proxy")},
	"resources": map[string]any{"limits": map[string]any{"memory": "1Gi", "cpu": "2"}},
}

func container(name string) map[string]any {
	return map[string]any{"name": name, "image": "registry.example/" + name + ":1", "securityContext": map[string]any{
		"allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": map[string]any{"drop": []any{"ALL"}}, "seccompProfile": map[string]any{"type": "RuntimeDefault"},
	}}
}

func TestChart(t *testing.T) {
	for _, c := range sound {
		t.Run(c.Name, func(t *testing.T) {
			c.Judge = true
			r := render(t, c)[0]
			if r.Error != "" {
				t.Fatal(r.Error)
			}
			for _, problem := range r.Problems {
				t.Error(problem)
			}
			checkWiring(t, r)
			checkHardening(t, r)
			checkSettings(t, r)
		})
	}
}

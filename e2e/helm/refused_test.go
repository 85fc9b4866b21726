package helm

import (
	"strings"
	"testing"
)

// TestRefusedValues: a wrong value ends `helm install` with a message that names it, and never shows a secret.
func TestRefusedValues(t *testing.T) {
	table := []struct {
		set  string // separated by ;
		want string
	}{
		{"replicaCount=2", "'/replicaCount': value must be one of 0, 1, 'SQLite is used by one replica; for more, set database.url or database.existingSecret (PostgreSQL)'"},
		{"replicaCount=-1", "'/replicaCount': minimum: got -1, want 0"},
		{"replicaCount=many", "'/replicaCount': got string, want integer"},
		{"replicas=1", "additional properties 'replicas' not allowed"},
		{"zeebe.adress=gateway:26500", "'/zeebe': additional properties 'adress' not allowed"},
		{"zeebe.address=gateway", "'/zeebe/address': 'gateway' does not match"},
		{"zeebe.address=http://gateway:26500", "'/zeebe/address'"},
		{"zeebe.address=a.zeebe.camunda.io:443", "zeebe.address is \"a.zeebe.camunda.io:443\", but zeebe.tls.enabled is false"},
		{"zeebe.tls.existingSecret=ca", "zeebe.tls.existingSecret is set, but zeebe.tls.enabled is false"},
		{"zeebe.tls.enabled=true;zeebe.tls.existingSecret=a;zeebe.tls.existingConfigMap=b", "zeebe.tls.existingSecret and zeebe.tls.existingConfigMap are both set"},
		{"zeebe.auth.audience=zeebe", "zeebe.auth.audience is set, but zeebe.auth.existingSecret is not"},
		{"zeebe.auth.authorizationServerUrl=keycloak", "'/zeebe/auth/authorizationServerUrl'"},
		{"zeebe.auth.existingSecret=Not_A_Name", "'/zeebe/auth/existingSecret'"},
		{"zeebe.restAddress=zeebe:8080", "'/zeebe/restAddress'"},
		{"zeebe.keepAliveMillis=45", "'/zeebe/keepAliveMillis': minimum: got 45, want 10,000"},
		{"zeebe.tenantIds=hospital", "'/zeebe/tenantIds': got string, want array"},
		{"image.repository=", "'/image/repository'"},
		{"image.repository=registry.example/retry-worker:1", "'/image/repository'"},
		{"image.digest=sha256:abc", "'/image/digest'"},
		{"image.tag=a b", "'/image/tag'"},
		{"image.pullPolicy=Sometimes", "'/image/pullPolicy': value must be one of 'IfNotPresent', 'Always', 'Never'"},
		{"database.url=mysql://retry:canary@host/db", "database.url is no URL of a PostgreSQL server"},
		{"database.url=postgres://", "database.url is no URL of a PostgreSQL server"},
		{"database.url=canary", "database.url is no URL of a PostgreSQL server"},
		{"database.url=postgres://retry:canary@host/db;database.existingSecret=a", "database.url and database.existingSecret are both set"},
		{"database.tls.existingSecret=ca", "database.tls.existingSecret is set, but neither database.url nor database.existingSecret"},
		{"database.port=0", "'/database/port'"},
		{"persistence.size=much", "'/persistence/size'"},
		{"persistence.accessMode=ReadWriteMany", "'/persistence/accessMode'"},
		{"ingress.enabled=true;ingress.host=a.example", "ingress.enabled is true, but auth.existingSecret is not set"},
		{"ingress.enabled=true;auth.existingSecret=t", "ingress.host is empty"},
		{"ingress.enabled=yes", "'/ingress/enabled': got string, want boolean"},
		{"service.type=LoadBalancer", "service.type is LoadBalancer, but auth.existingSecret is not set"},
		{"auth.oidc.issuer=https://a", "auth.oidc.issuer is set, but auth.oidc.existingSecret is not"},
		{"auth.oidc.issuer=http://a;auth.oidc.existingSecret=b", "'/auth/oidc/issuer'"},
		{"tls.existingSecret=a", "tls.existingSecret is set, but auth.existingSecret is not"},
		{"service.httpPort=9095", "service.httpPort and service.opsPort are both 9095"},
		{"policies.teams.ti.email={a@b.example};policies.catalogue=a", "policies.teams is set beside policies.catalogue or policies.existingConfigMap"},
		{"policies.catalogue=a;policies.existingConfigMap=b", "policies.catalogue and policies.existingConfigMap are both set"},
		{"events.url=http://nats:4222", "events.url is no nats://HOST:PORT"},
		{"events.url=nats://retry:canary@nats:4222", "events.url is no nats://HOST:PORT; a URL with a password belongs into events.existingSecret"},
		{"events.url=nats://nats;events.existingSecret=a", "events.url and events.existingSecret are both set"},
		{"notify.smtp.url=smtp://retry:canary@mail;notify.smtp.from=a@b", "notify.smtp.url is no smtp://USER@HOST:PORT"},
		{"notify.smtp.url=smtp://mail", "notify.smtp.from is empty"},
		{"notify.smtp.existingSecret=mail", "notify.smtp.url is empty"},
		{"notify.digestTime=24:00", "'/notify/digestTime'"},
		{"tracing.protocol=http", "'/tracing/protocol'"},
		{"config.jobTimeout=10", "'/config/jobTimeout': got number, want string"},
		{"config.jobTimeout=ten", "'/config/jobTimeout': 'ten' does not match"},
		{"config.maxJobsActive=0", "'/config/maxJobsActive': minimum"},
		{"config.logLevel=trace", "'/config/logLevel': value must be one of"},
		{"config.retention=5 years", "'/config/retention'"},
		{"config.retention=1825", "'/config/retention': got number, want string"},
		{"config.shutdownTimeoutSeconds=35", "terminationGracePeriodSeconds is 35, expected more than config.shutdownTimeoutSeconds (35)"},
		{"env[0].name=ZEEBE_ADDRESS;env[0].value=canary", "env[0] sets ZEEBE_ADDRESS, which another value of this chart sets already"},
		{"env[0].name=A;env[1].name=A", "env[1] sets A"},
		{"env[0].value=canary", "'/env/0': missing property 'name'"},
		{"trustedAuthorities.existingSecret=a;trustedAuthorities.existingConfigMap=b", "trustedAuthorities.existingSecret and trustedAuthorities.existingConfigMap are both set"},
		{"podMonitor.enabled=true;serviceMonitor.enabled=true", "podMonitor.enabled and serviceMonitor.enabled are both true"},
		{"podMonitor.interval=often", "'/podMonitor/interval'"},
		{"podDisruptionBudget.maxUnavailable=half", "'/podDisruptionBudget/maxUnavailable'"},
		{"networkPolicy.zeebe[0].podselector.a=b", "'/networkPolicy/zeebe/0': additional properties 'podselector' not allowed"},
		{"networkPolicy.dnsPorts={dns}", "'/networkPolicy/dnsPorts/0'"},
	}
	var cases []helmCase
	for _, row := range table {
		cases = append(cases, helmCase{Name: row.set, Set: strings.Split(row.set, ";")})
	}
	for i, r := range render(t, cases...) {
		if !strings.Contains(r.Error, table[i].want) {
			t.Errorf("%s: got %q, expected it to hold %q", r.Name, r.Error, table[i].want)
		}
		if strings.Contains(r.Error, "canary") && !strings.Contains(r.Error, "'/") {
			t.Errorf("%s: what may be a secret stands in %q", r.Name, r.Error)
		}
		if strings.Contains(r.Error, "nil pointer") || strings.Contains(r.Error, "can't evaluate") {
			t.Errorf("%s: a template broke instead: %s", r.Name, r.Error)
		}
	}
}

// TestOldKubernetes: a cluster that lacks what the chart needs is refused.
func TestOldKubernetes(t *testing.T) {
	r := render(t, helmCase{Name: "1.28", KubeVersion: "v1.28.15"})[0]
	if !strings.Contains(r.Error, "chart requires kubeVersion: >=1.29.0-0") {
		t.Errorf("got %q", r.Error)
	}
}

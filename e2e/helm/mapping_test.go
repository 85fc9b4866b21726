package helm

import (
	"fmt"
	"testing"
)

// TestEachSetting: every value of the chart reaches the variable that is meant, and that one only.
func TestEachSetting(t *testing.T) {
	defaults := written(renderOne(t).variables(t))
	for _, row := range []struct{ set, name, want string }{
		{"zeebe.address=gateway:1", "ZEEBE_ADDRESS", "gateway:1"},
		{"zeebe.restAddress=http://gateway:8080", "ZEEBE_REST_ADDRESS", "http://gateway:8080"},
		{"zeebe.keepAliveMillis=12345", "ZEEBE_KEEP_ALIVE", "12345"},
		{"zeebe.tenantIds={a,b}", "RETRY_WORKER_TENANT_IDS", "a,b"},
		{"zeebe.tls.enabled=true", "ZEEBE_INSECURE_CONNECTION", "false"},
		{"config.maxJobsActive=10000", "RETRY_WORKER_MAX_JOBS_ACTIVE", "10000"},
		{"config.jobTimeout=11s", "RETRY_WORKER_JOB_TIMEOUT", "11s"},
		{"config.concurrency=51", "RETRY_WORKER_CONCURRENCY", "51"},
		{"config.workerName=a", "RETRY_WORKER_WORKER_NAME", "a"},
		{"config.shutdownTimeoutSeconds=7", "RETRY_WORKER_SHUTDOWN_TIMEOUT", "7s"},
		{"config.logLevel=warn", "RETRY_WORKER_LOG_LEVEL", "warn"},
		{"config.logFormat=console", "RETRY_WORKER_LOG_FORMAT", "console"},
		{"config.operateUrl=https://a", "RETRY_WORKER_OPERATE_URL", "https://a"},
		{"config.grafanaUrl=https://a/d", "RETRY_WORKER_GRAFANA_URL", "https://a/d"},
		{"config.retention=48h", "RETRY_WORKER_RETENTION", "48h"},
		{"config.pprof=true", "RETRY_WORKER_PPROF", "true"},
		{"events.url=nats://a:1", "RETRY_WORKER_EVENTS_URL", "nats://a:1"},
		{"notify.interval=7m", "RETRY_WORKER_NOTIFY_INTERVAL", "7m"},
		{"notify.digestTime=06:30", "RETRY_WORKER_DIGEST_TIME", "06:30"},
		{"notify.timeZone=America/Manaus", "RETRY_WORKER_TIME_ZONE", "America/Manaus"},
		{"ingress.proxies={10.0.0.0/8,10.96.0.1}", "RETRY_WORKER_PROXIES", "10.0.0.0/8,10.96.0.1"},
		{"notify.webhooks.allow={10.0.0.0/8}", "RETRY_WORKER_WEBHOOK_ALLOW", "10.0.0.0/8"},
	} {
		want := map[string]string{}
		for name, value := range defaults {
			want[name] = value
		}
		want[row.name] = row.want
		if row.name == "ZEEBE_REST_ADDRESS" {
			delete(want, "ZEEBE_ADDRESS") // one of them
		}
		if got := written(renderOne(t, row.set).variables(t)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", row.set, got, want)
		}
	}
	for _, row := range []struct{ set, name, want string }{
		{"zeebe.auth.audience=a", "ZEEBE_TOKEN_AUDIENCE", "a"},
		{"zeebe.auth.scope=a", "ZEEBE_TOKEN_SCOPE", "a"},
		{"zeebe.auth.authorizationServerUrl=http://a", "ZEEBE_AUTHORIZATION_SERVER_URL", "http://a"},
		{"zeebe.auth.requestTimeoutMillis=123", "ZEEBE_AUTH_REQUEST_TIMEOUT", "123"},
		{"zeebe.tls.enabled=true;zeebe.tls.overrideAuthority=a", "ZEEBE_OVERRIDE_AUTHORITY", "a"},
		{"zeebe.tls.enabled=true;zeebe.tls.existingSecret=a;zeebe.tls.existingKey=b", "ZEEBE_CA_CERTIFICATE_PATH", "/etc/retry-worker/zeebe-authority/b"},
		{"notify.smtp.url=smtp://a;notify.smtp.from=b@c", "RETRY_WORKER_SMTP_URL", "smtp://a"},
		{"notify.smtp.url=smtp://a;notify.smtp.from=b@c", "RETRY_WORKER_MAIL_FROM", "b@c"},
		{"notify.webhooks.enabled=true;notify.publicUrl=https://a", "RETRY_WORKER_PUBLIC_URL", "https://a"},
		{"notify.webhooks.enabled=true;auth.existingSecret=a;ingress.enabled=true;ingress.host=b;ingress.tls.enabled=false", "RETRY_WORKER_PUBLIC_URL", "http://b"},
		{"policies.teams.ti.email={ti@hospital.example}", "RETRY_WORKER_POLICIES_FILE", "/etc/retry-worker/policies/policies.yaml"},
		{"policies.existingConfigMap=a;policies.existingConfigMapKey=b", "RETRY_WORKER_POLICIES_FILE", "/etc/retry-worker/policies/b"},
		{"tls.existingSecret=a;auth.existingSecret=b", "RETRY_WORKER_TLS_CERT_FILE", "/etc/retry-worker/tls/tls.crt"},
		{"tls.existingSecret=a;auth.existingSecret=b", "RETRY_WORKER_TLS_KEY_FILE", "/etc/retry-worker/tls/tls.key"},
		{"auth.oidc.issuer=https://a;auth.oidc.existingSecret=b", "RETRY_WORKER_OIDC_ISSUER", "https://a"},
		{"auth.oidc.issuer=https://a;auth.oidc.existingSecret=b;auth.oidc.clientId=c", "RETRY_WORKER_OIDC_CLIENT_ID", "c"},
		{"auth.oidc.issuer=https://a;auth.oidc.existingSecret=b", "RETRY_WORKER_OIDC_CLIENT_SECRET_FILE", "/etc/retry-worker/oidc/client-secret"},
		{"auth.oidc.issuer=https://a;auth.oidc.existingSecret=b", "RETRY_WORKER_OIDC_ROLE_CLAIM", "roles"},
		{"auth.oidc.issuer=https://a;auth.oidc.existingSecret=b;auth.oidc.teamClaim=c", "RETRY_WORKER_OIDC_TEAM_CLAIM", "c"},
		{"tracing.endpoint=http://a;tracing.protocol=grpc", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
		{"tracing.endpoint=http://a", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"},
		{"trustedAuthorities.existingSecret=a", "SSL_CERT_DIR", "/etc/ssl/certs:/etc/retry-worker/authorities"},
		{"database.existingSecret=a;database.tls.existingSecret=b", "PGSSLROOTCERT", "/etc/retry-worker/database-authority/ca.crt"},
		{"database.existingSecret=a;database.tls.existingSecret=b", "PGSSLMODE", "verify-full"},
		{"env[0].name=A;env[0].value=b", "A", "b"},
	} {
		got := written(renderOne(t, append(split(row.set), "zeebe.auth.existingSecret=client")...).variables(t))
		if got[row.name] != row.want {
			t.Errorf("%s: %s is %q, want %q", row.set, row.name, got[row.name], row.want)
		}
	}
}

func written(variables map[string]any) map[string]string {
	values := map[string]string{}
	for name, variable := range variables {
		values[name] = value(variable)
	}
	return values
}

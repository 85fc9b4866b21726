{{/* The environment of the worker, as a list of Kubernetes' EnvVar. Settings that are empty are left to the worker. */}}

{{/* One variable: list NAME VALUE; nothing where the value is empty. */}}
{{- define "retry-worker.variable" -}}
{{- $value := index . 1 -}}
{{- if not (eq (toString $value) "") }}
- name: {{ index . 0 }}
  value: {{ toString $value | quote }}
{{- end }}
{{- end -}}

{{/* One variable from a secret: list NAME SECRET KEY; nothing where the secret is empty. A secret that is missing keeps
the container from starting, and the pod's events name it. */}}
{{- define "retry-worker.secretVariable" -}}
{{- if index . 1 }}
- name: {{ index . 0 }}
  valueFrom:
    secretKeyRef:
      name: {{ index . 1 | quote }}
      key: {{ index . 2 | quote }}
{{- end }}
{{- end -}}

{{- define "retry-worker.environment" -}}
{{- include "retry-worker.environment.ports" . }}
{{- include "retry-worker.environment.journal" . }}
{{- include "retry-worker.environment.engine" . }}
{{- include "retry-worker.environment.config" . }}
{{- include "retry-worker.environment.notify" . }}
{{- if .Values.tracing.endpoint }}
{{- include "retry-worker.variable" (list "OTEL_EXPORTER_OTLP_ENDPOINT" .Values.tracing.endpoint) }}
{{- include "retry-worker.variable" (list "OTEL_EXPORTER_OTLP_PROTOCOL" .Values.tracing.protocol) }}
{{- end }}
{{- include "retry-worker.variable" (list "GOMEMLIMIT" (include "retry-worker.goMemoryLimit" .)) }}
{{- if or .Values.trustedAuthorities.existingSecret .Values.trustedAuthorities.existingConfigMap }}
{{- include "retry-worker.variable" (list "SSL_CERT_DIR" "/etc/ssl/certs:/etc/retry-worker/authorities") }}
{{- end }}
{{- end -}}

{{/* Says that people must log in. */}}
{{- define "retry-worker.guarded" -}}
{{- if or .Values.auth.existingSecret .Values.auth.oidc.issuer }}true{{ end }}
{{- end -}}

{{/* Without tokens the console is for the pod's own loopback, where `kubectl port-forward` reaches it. */}}
{{- define "retry-worker.environment.ports" -}}
{{- include "retry-worker.variable" (list "RETRY_WORKER_OPS_ADDR" ":9095") }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_HTTP_ADDR" (ternary ":8095" "127.0.0.1:8095" (not (empty (include "retry-worker.guarded" .))))) }}
{{- if .Values.auth.existingSecret }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_AUTH_TOKENS_FILE" (printf "/etc/retry-worker/auth/%s" .Values.auth.existingSecretKey)) }}
{{- end }}
{{- with .Values.auth.oidc }}{{ if .issuer }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_OIDC_ISSUER" .issuer) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_OIDC_CLIENT_ID" .clientId) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_OIDC_CLIENT_SECRET_FILE" (printf "/etc/retry-worker/oidc/%s" .existingSecretKey)) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_OIDC_ROLE_CLAIM" .roleClaim) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_OIDC_TEAM_CLAIM" .teamClaim) }}
{{- end }}{{ end }}
{{- with .Values.tls }}{{ if .existingSecret }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_TLS_CERT_FILE" (printf "/etc/retry-worker/tls/%s" .existingSecretCertificateKey)) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_TLS_KEY_FILE" (printf "/etc/retry-worker/tls/%s" .existingSecretPrivateKey)) }}
{{- end }}{{ end }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_PROXIES" (join "," .Values.ingress.proxies)) }}
{{- end -}}

{{- define "retry-worker.environment.journal" -}}
{{- $database := .Values.database -}}
{{- if $database.url }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_DATABASE_URL_FILE" "/etc/retry-worker/database/url") }}
{{- else if $database.existingSecret }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_DATABASE_URL_FILE" (printf "/etc/retry-worker/database/%s" $database.existingSecretKey)) }}
{{- else }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_DATABASE_URL" "sqlite:/data/retry-worker.db") }}
{{- end }}
{{- if $database.tls.existingSecret }}
{{- include "retry-worker.variable" (list "PGSSLMODE" "verify-full") }}
{{- include "retry-worker.variable" (list "PGSSLROOTCERT" (printf "/etc/retry-worker/database-authority/%s" $database.tls.existingSecretKey)) }}
{{- end }}
{{- end -}}

{{- define "retry-worker.environment.engine" -}}
{{- $zeebe := .Values.zeebe -}}
{{- if $zeebe.restAddress }}
{{- include "retry-worker.variable" (list "ZEEBE_REST_ADDRESS" $zeebe.restAddress) }}
{{- else }}
{{- include "retry-worker.variable" (list "ZEEBE_ADDRESS" $zeebe.address) }}
{{- end }}
{{- include "retry-worker.variable" (list "ZEEBE_INSECURE_CONNECTION" (not $zeebe.tls.enabled)) }}
{{- include "retry-worker.variable" (list "ZEEBE_KEEP_ALIVE" (int $zeebe.keepAliveMillis)) }}
{{- if or $zeebe.tls.existingSecret $zeebe.tls.existingConfigMap }}
{{- include "retry-worker.variable" (list "ZEEBE_CA_CERTIFICATE_PATH" (printf "/etc/retry-worker/zeebe-authority/%s" $zeebe.tls.existingKey)) }}
{{- end }}
{{- include "retry-worker.variable" (list "ZEEBE_OVERRIDE_AUTHORITY" $zeebe.tls.overrideAuthority) }}
{{- if $zeebe.tls.clientSecret }}
{{- include "retry-worker.variable" (list "CAMUNDA_MTLS_CERT_PATH" "/etc/retry-worker/zeebe-client/tls.crt") }}
{{- include "retry-worker.variable" (list "CAMUNDA_MTLS_KEY_PATH" "/etc/retry-worker/zeebe-client/tls.key") }}
{{- end }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_TENANT_IDS" (join "," $zeebe.tenantIds)) }}
{{- with $zeebe.basicAuth }}{{ if .existingSecret }}
{{- include "retry-worker.secretVariable" (list "ZEEBE_BASIC_AUTH_USERNAME" .existingSecret .existingSecretUsernameKey) }}
{{- include "retry-worker.variable" (list "ZEEBE_BASIC_AUTH_PASSWORD_FILE" (printf "/etc/retry-worker/zeebe/%s" .existingSecretPasswordKey)) }}
{{- end }}{{ end }}
{{- with $zeebe.auth }}{{ if .existingSecret }}
{{- include "retry-worker.secretVariable" (list "ZEEBE_CLIENT_ID" .existingSecret .existingSecretClientIdKey) }}
{{- include "retry-worker.variable" (list "ZEEBE_CLIENT_SECRET_FILE" (printf "/etc/retry-worker/zeebe/%s" .existingSecretClientSecretKey)) }}
{{- include "retry-worker.variable" (list "ZEEBE_AUTHORIZATION_SERVER_URL" .authorizationServerUrl) }}
{{- include "retry-worker.variable" (list "ZEEBE_TOKEN_AUDIENCE" .audience) }}
{{- include "retry-worker.variable" (list "ZEEBE_TOKEN_SCOPE" .scope) }}
{{- include "retry-worker.variable" (list "ZEEBE_AUTH_REQUEST_TIMEOUT" (int .requestTimeoutMillis)) }}
{{- end }}{{ end }}
{{- end -}}

{{- define "retry-worker.environment.config" -}}
{{- with .Values.config }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_MAX_JOBS_ACTIVE" (int .maxJobsActive)) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_JOB_TIMEOUT" .jobTimeout) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_CONCURRENCY" (int .concurrency)) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_WORKER_NAME" .workerName) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_SHUTDOWN_TIMEOUT" (printf "%ds" (int .shutdownTimeoutSeconds))) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_LOG_LEVEL" .logLevel) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_LOG_FORMAT" .logFormat) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_OPERATE_URL" .operateUrl) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_CLAIM_URL" .claimUrl) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_GRAFANA_URL" .grafanaUrl) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_RETENTION" .retention) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_PPROF" (ternary "true" "" .pprof)) }}
{{- end }}
{{- with .Values.policies }}{{ if or .teams .catalogue .existingConfigMap }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_POLICIES_FILE" (printf "/etc/retry-worker/policies/%s" (ternary "policies.yaml" .existingConfigMapKey (empty .existingConfigMap)))) }}
{{- end }}{{ end }}
{{- end -}}

{{- define "retry-worker.environment.notify" -}}
{{- include "retry-worker.variable" (list "RETRY_WORKER_EVENTS_URL" .Values.events.url) }}
{{- if .Values.events.existingSecret }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_EVENTS_URL_FILE" (printf "/etc/retry-worker/events/%s" .Values.events.existingSecretKey)) }}
{{- end }}
{{- with .Values.notify }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_NOTIFY_INTERVAL" .interval) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_DIGEST_TIME" .digestTime) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_TIME_ZONE" .timeZone) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_WEBHOOK_ALLOW" (join "," .webhooks.allow)) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_SMTP_URL" .smtp.url) }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_MAIL_FROM" .smtp.from) }}
{{- if .smtp.existingSecret }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_SMTP_PASSWORD_FILE" (printf "/etc/retry-worker/smtp/%s" .smtp.existingSecretKey)) }}
{{- end }}
{{- if .smtp.tls.existingSecret }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_SMTP_CA_FILE" (printf "/etc/retry-worker/smtp-authority/%s" .smtp.tls.existingSecretKey)) }}
{{- end }}
{{- end }}
{{- if or .Values.notify.smtp.url .Values.notify.webhooks.enabled }}
{{- include "retry-worker.variable" (list "RETRY_WORKER_PUBLIC_URL" (include "retry-worker.publicUrl" .)) }}
{{- end }}
{{- end -}}

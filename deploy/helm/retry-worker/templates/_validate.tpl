{{/* What the schema cannot say, or would say with a secret in its message. Each message names the value. */}}
{{- define "retry-worker.validate" -}}
{{- include "retry-worker.validate.journal" . }}
{{- include "retry-worker.validate.engine" . }}
{{- include "retry-worker.validate.console" . }}
{{- include "retry-worker.validate.notify" . }}
{{- include "retry-worker.validate.monitoring" . }}
{{- include "retry-worker.validate.environment" . }}
{{- if le (int .Values.terminationGracePeriodSeconds) (int .Values.config.shutdownTimeoutSeconds) }}
{{- fail (printf "terminationGracePeriodSeconds is %d, expected more than config.shutdownTimeoutSeconds (%d): the worker would be killed while it still hands jobs back" (int .Values.terminationGracePeriodSeconds) (int .Values.config.shutdownTimeoutSeconds)) }}
{{- end }}
{{- $trusted := .Values.trustedAuthorities }}
{{- if and $trusted.existingSecret $trusted.existingConfigMap }}
{{- fail "trustedAuthorities.existingSecret and trustedAuthorities.existingConfigMap are both set, expected one of them" }}
{{- end }}
{{- end -}}

{{- define "retry-worker.validate.journal" -}}
{{- $database := .Values.database }}
{{- if and (gt (int .Values.replicaCount) 1) (not (include "retry-worker.postgresql" .)) }}
{{- fail (printf "replicaCount is %d, expected 1 with SQLite: the file can be used by one replica; for more, set database.url or database.existingSecret (PostgreSQL)" (int .Values.replicaCount)) }}
{{- end }}
{{- if and $database.url $database.existingSecret }}
{{- fail "database.url and database.existingSecret are both set, expected one of them" }}
{{- end }}
{{- if and $database.url (not (regexMatch "^postgres(ql)?://[^/?#]*[^/?#@:]" $database.url)) }}
{{- fail "database.url is no URL of a PostgreSQL server, expected postgres://USER:PASSWORD@HOST:PORT/DATABASE; leave it empty for SQLite" }}
{{- end }}
{{- if and $database.tls.existingSecret (not (include "retry-worker.postgresql" .)) }}
{{- fail "database.tls.existingSecret is set, but neither database.url nor database.existingSecret: SQLite has no connection to encrypt" }}
{{- end }}
{{- end -}}

{{- define "retry-worker.validate.engine" -}}
{{- $tls := .Values.zeebe.tls }}
{{- if and $tls.existingSecret $tls.existingConfigMap }}
{{- fail "zeebe.tls.existingSecret and zeebe.tls.existingConfigMap are both set, expected one of them" }}
{{- end }}
{{- range $name := list "existingSecret" "existingConfigMap" "overrideAuthority" "clientSecret" }}
{{- if and (get $tls $name) (not $tls.enabled) }}
{{- fail (printf "zeebe.tls.%s is set, but zeebe.tls.enabled is false: set it to true, or the connection is not encrypted" $name) }}
{{- end }}
{{- end }}
{{- if and (hasSuffix ":443" .Values.zeebe.address) (not $tls.enabled) (not .Values.zeebe.restAddress) }}
{{- fail (printf "zeebe.address is %q, but zeebe.tls.enabled is false: a gateway at port 443, such as Camunda SaaS, speaks TLS" .Values.zeebe.address) }}
{{- end }}
{{- if and $tls.enabled (hasPrefix "http:" .Values.zeebe.restAddress) }}
{{- fail (printf "zeebe.tls.enabled is true, but zeebe.restAddress is %q, which decides: write https://, or the connection is not encrypted" .Values.zeebe.restAddress) }}
{{- end }}
{{- if and .Values.zeebe.auth.existingSecret .Values.zeebe.basicAuth.existingSecret }}
{{- fail "zeebe.auth.existingSecret and zeebe.basicAuth.existingSecret are both set, expected one of them" }}
{{- end }}
{{- range $name := list "authorizationServerUrl" "audience" "scope" }}
{{- if and (get $.Values.zeebe.auth $name) (not $.Values.zeebe.auth.existingSecret) }}
{{- fail (printf "zeebe.auth.%s is set, but zeebe.auth.existingSecret is not: no token would be asked for" $name) }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "retry-worker.validate.console" -}}
{{- if .Values.ingress.enabled }}
{{- if not (include "retry-worker.guarded" .) }}
{{- fail "ingress.enabled is true, but auth.existingSecret is not set: patients' claims would be served to everybody; put a tokens file (retry-worker token new) into a secret" }}
{{- end }}
{{- if not .Values.ingress.host }}
{{- fail "ingress.host is empty, expected the name that people type" }}
{{- end }}
{{- end }}
{{- if and .Values.auth.oidc.issuer (not .Values.auth.oidc.existingSecret) }}
{{- fail "auth.oidc.issuer is set, but auth.oidc.existingSecret is not, expected the secret that holds the client's secret" }}
{{- end }}
{{- if and .Values.tls.existingSecret (not (include "retry-worker.guarded" .)) }}
{{- fail "tls.existingSecret is set, but auth.existingSecret is not: without tokens console and API listen inside the pod only" }}
{{- end }}
{{- if and (ne .Values.service.type "ClusterIP") (not (include "retry-worker.guarded" .)) }}
{{- fail (printf "service.type is %s, but auth.existingSecret is not set: only metrics and probes would be reached from outside the cluster" .Values.service.type) }}
{{- end }}
{{- if eq (int .Values.service.httpPort) (int .Values.service.opsPort) }}
{{- fail (printf "service.httpPort and service.opsPort are both %d, expected two ports" (int .Values.service.httpPort)) }}
{{- end }}
{{- if and .Values.policies.catalogue .Values.policies.existingConfigMap }}
{{- fail "policies.catalogue and policies.existingConfigMap are both set, expected one of them" }}
{{- end }}
{{- if and .Values.policies.teams (or .Values.policies.catalogue .Values.policies.existingConfigMap) }}
{{- fail "policies.teams is set beside policies.catalogue or policies.existingConfigMap, expected one of them: a catalogue says itself how teams are told" }}
{{- end }}
{{- end -}}

{{- define "retry-worker.validate.notify" -}}
{{- $events := .Values.events }}
{{- if and $events.url $events.existingSecret }}
{{- fail "events.url and events.existingSecret are both set, expected one of them" }}
{{- end }}
{{- if and $events.url (not (regexMatch "^(nats|tls)://[^@/]+$" $events.url)) }}
{{- fail "events.url is no nats://HOST:PORT; a URL with a password belongs into events.existingSecret" }}
{{- end }}
{{- $smtp := .Values.notify.smtp }}
{{- if and $smtp.url (not (regexMatch "^smtps?://([^@:/]+@)?[^@/]+$" $smtp.url)) }}
{{- fail "notify.smtp.url is no smtp://USER@HOST:PORT or smtps://USER@HOST:PORT; the password belongs into notify.smtp.existingSecret" }}
{{- end }}
{{- if and $smtp.url (not $smtp.from) }}
{{- fail "notify.smtp.from is empty, expected the sender's address" }}
{{- end }}
{{- if and (or $smtp.existingSecret $smtp.tls.existingSecret $smtp.from) (not $smtp.url) }}
{{- fail "notify.smtp.url is empty, but other values of notify.smtp are set: no mail would be sent" }}
{{- end }}
{{- end -}}

{{- define "retry-worker.validate.monitoring" -}}
{{- if and .Values.podMonitor.enabled .Values.serviceMonitor.enabled }}
{{- fail "podMonitor.enabled and serviceMonitor.enabled are both true, expected one of them: every pod would be scraped twice" }}
{{- end }}
{{- end -}}

{{/* What the chart sets cannot be set again: Kubernetes would take the last of the two without a word. */}}
{{- define "retry-worker.validate.environment" -}}
{{- $set := dict }}
{{- range include "retry-worker.environment" . | fromYamlArray }}
{{- $_ := set $set .name true }}
{{- end }}
{{- range $i, $variable := .Values.env }}
{{- if hasKey $set $variable.name }}
{{- fail (printf "env[%d] sets %s, which another value of this chart sets already: use that value" $i $variable.name) }}
{{- end }}
{{- $_ := set $set $variable.name true }}
{{- end }}
{{- end -}}

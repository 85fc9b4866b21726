{{/* Names, labels, and what several templates need. */}}

{{- define "retry-worker.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The release's name, with the chart's unless it holds that already. Suffixes of up to 20 characters stay within a name's 63. */}}
{{- define "retry-worker.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 43 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "retry-worker.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 43 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 43 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What selects the pods. Must never change: a Deployment's selector cannot. */}}
{{- define "retry-worker.matchLabels" -}}
app.kubernetes.io/name: {{ include "retry-worker.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: worker
{{- end -}}

{{- define "retry-worker.commonLabels" -}}
{{- with .Values.commonLabels }}
{{- toYaml . }}
{{ end -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/part-of: camunda-platform
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Labels of the pods: without the chart's version, so that a new chart alone does not restart them. */}}
{{- define "retry-worker.podLabels" -}}
{{- with .Values.commonLabels }}
{{- toYaml . }}
{{ end -}}
{{ include "retry-worker.matchLabels" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | trimSuffix "-" | quote }}
{{- end -}}

{{- define "retry-worker.labels" -}}
{{ include "retry-worker.commonLabels" . }}
{{ include "retry-worker.matchLabels" . }}
{{- end -}}

{{/* metadata of an object: dict "root" . "suffix" "-x" "labels" {} "annotations" {} */}}
{{- define "retry-worker.metadata" -}}
name: {{ include "retry-worker.fullname" .root }}{{ .suffix | default "" }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "retry-worker.labels" .root | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "retry-worker.image" -}}
{{- $image := .Values.image -}}
{{- if and $image.digest $image.tag -}}
{{- printf "%s:%s@%s" $image.repository $image.tag $image.digest -}}
{{- else if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository ($image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "retry-worker.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "retry-worker.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* Not empty where the connection to the engine is encrypted. */}}
{{- define "retry-worker.encrypted" -}}
{{- with .Values.zeebe }}{{ if ternary .tls.enabled (hasPrefix "https:" .restAddress) (empty .restAddress) }}true{{ end }}{{ end -}}
{{- end -}}

{{/* Not empty where the journal is in PostgreSQL. */}}
{{- define "retry-worker.postgresql" -}}
{{- if or .Values.database.url .Values.database.existingSecret }}true{{ end -}}
{{- end -}}

{{/* Not empty where this chart makes the claim of the SQLite journal. */}}
{{- define "retry-worker.ownClaim" -}}
{{- if and (not (include "retry-worker.postgresql" .)) .Values.persistence.enabled (not .Values.persistence.existingClaim) }}true{{ end -}}
{{- end -}}

{{/* The port of a URL, or that of its scheme: dict "url" "…" "ports" (dict "https" 443). */}}
{{- define "retry-worker.urlPort" -}}
{{- $url := urlParse .url -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" -}}
{{- $port | default (get .ports $url.scheme) -}}
{{- end -}}

{{/* Nine tenths of the memory's limit, as the Go runtime reads it; empty where it has none in Mi or Gi. */}}
{{- define "retry-worker.goMemoryLimit" -}}
{{- $limit := toString (dig "limits" "memory" "" .Values.resources) -}}
{{- if regexMatch "^[0-9]+(Mi|Gi)$" $limit -}}
{{- $mebibytes := regexFind "^[0-9]+" $limit | int -}}
{{- if hasSuffix "Gi" $limit }}{{ $mebibytes = mul $mebibytes 1024 }}{{ end -}}
{{- printf "%dMiB" (div (mul $mebibytes 9) 10) -}}
{{- end -}}
{{- end -}}

{{/* Where people reach the console, for links in notices. */}}
{{- define "retry-worker.publicUrl" -}}
{{- if .Values.notify.publicUrl -}}
{{- .Values.notify.publicUrl -}}
{{- else if .Values.ingress.enabled -}}
{{- printf "%s://%s" (ternary "https" "http" .Values.ingress.tls.enabled) .Values.ingress.host -}}
{{- end -}}
{{- end -}}

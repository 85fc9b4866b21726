{{/* Secrets and configuration of the worker: each is a folder below /etc/retry-worker, mounted as a whole, so that a change
reaches the running worker. */}}

{{/* The folders as a list of dicts: name, and secret or configMap. None is optional: what is missing keeps the pod from
starting, and its events name it. */}}
{{- define "retry-worker.folders" -}}
{{- $values := .Values -}}
{{- with $values.auth.existingSecret }}
- {name: auth, secret: {{ . | quote }}}
{{- end }}
{{- if $values.auth.oidc.issuer }}
- {name: oidc, secret: {{ $values.auth.oidc.existingSecret | quote }}}
{{- end }}
{{- with $values.tls.existingSecret }}
- {name: tls, secret: {{ . | quote }}}
{{- end }}
{{- with $values.zeebe.auth.existingSecret | default $values.zeebe.basicAuth.existingSecret }}
- {name: zeebe, secret: {{ . | quote }}}
{{- end }}
{{- with $values.zeebe.tls.clientSecret }}
- {name: zeebe-client, secret: {{ . | quote }}}
{{- end }}
{{- with $values.zeebe.tls.existingSecret }}
- {name: zeebe-authority, secret: {{ . | quote }}}
{{- end }}
{{- with $values.zeebe.tls.existingConfigMap }}
- {name: zeebe-authority, configMap: {{ . | quote }}}
{{- end }}
{{- if include "retry-worker.postgresql" . }}
- {name: database, secret: {{ $values.database.existingSecret | default (printf "%s-database" (include "retry-worker.fullname" .)) | quote }}}
{{- end }}
{{- with $values.database.tls.existingSecret }}
- {name: database-authority, secret: {{ . | quote }}}
{{- end }}
{{- if or $values.policies.teams $values.policies.catalogue $values.policies.existingConfigMap }}
- {name: policies, configMap: {{ $values.policies.existingConfigMap | default (printf "%s-policies" (include "retry-worker.fullname" .)) | quote }}}
{{- end }}
{{- with $values.events.existingSecret }}
- {name: events, secret: {{ . | quote }}}
{{- end }}
{{- with $values.notify.smtp.existingSecret }}
- {name: smtp, secret: {{ . | quote }}}
{{- end }}
{{- with $values.notify.smtp.tls.existingSecret }}
- {name: smtp-authority, secret: {{ . | quote }}}
{{- end }}
{{- with $values.notify.webhooks.existingSecret }}
- {name: webhooks, secret: {{ . | quote }}}
{{- end }}
{{- with $values.trustedAuthorities.existingSecret }}
- {name: authorities, secret: {{ . | quote }}}
{{- end }}
{{- with $values.trustedAuthorities.existingConfigMap }}
- {name: authorities, configMap: {{ . | quote }}}
{{- end }}
{{- end -}}

{{- define "retry-worker.volumeMounts" -}}
{{- if not (include "retry-worker.postgresql" .) }}
- name: data
  mountPath: /data
{{- end }}
{{- range include "retry-worker.folders" . | fromYamlArray }}
- name: {{ .name }}
  mountPath: /etc/retry-worker/{{ .name }}
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Mode 0440: the pod's group reads, and nobody else, which the worker demands of its tokens file. */}}
{{- define "retry-worker.volumes" -}}
{{- if not (include "retry-worker.postgresql" .) }}
- name: data
  {{- if .Values.persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ .Values.persistence.existingClaim | default (printf "%s-journal" (include "retry-worker.fullname" .)) }}
  {{- else }}
  emptyDir:
    sizeLimit: {{ .Values.persistence.size }}
  {{- end }}
{{- end }}
{{- range include "retry-worker.folders" . | fromYamlArray }}
- name: {{ .name }}
  {{- if .secret }}
  secret:
    secretName: {{ .secret | quote }}
    defaultMode: 0440
  {{- else }}
  configMap:
    name: {{ .configMap | quote }}
    defaultMode: 0440
  {{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

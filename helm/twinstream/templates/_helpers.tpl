{{/* The name of all objects of a release, at most 50 characters, so that suffixes fit. */}}
{{- define "twinstream.name" -}}
{{- if contains "twinstream" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-twinstream" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What selects the pods of a release. */}}
{{- define "twinstream.selector" -}}
app.kubernetes.io/name: twinstream
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* What selects the pods of a role (see twinstream.pod); never changed, since a selector cannot be. */}}
{{- define "twinstream.roleSelector" -}}
{{ include "twinstream.selector" .root }}
app.kubernetes.io/component: {{ .role }}
{{- end -}}

{{- define "twinstream.roleLabels" -}}
{{ include "twinstream.labels" .root }}
app.kubernetes.io/component: {{ .role }}
{{- end -}}

{{- define "twinstream.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "twinstream.selector" . }}
{{- end -}}

{{- define "twinstream.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* A probe of one path: from inside, where the service listens on the pod's own loopback address. */}}
{{- define "twinstream.probe" -}}
{{- $access := .root.Values.access -}}
{{- if $access.tokenSecret.name -}}
httpGet:
  path: {{ .path }}
  port: http
  scheme: {{ include "twinstream.scheme" .root | upper }}
{{- else -}}
exec:
  command:
    - python
    - -c
    - import urllib.request as http; http.urlopen("http://127.0.0.1:8080{{ .path }}", timeout=3)
{{- end -}}
{{- end -}}

{{- define "twinstream.scheme" -}}
{{ ternary "https" "http" (ne .Values.access.tlsSecret "") }}
{{- end -}}

{{/* What no schema can say, each refused with one sentence. */}}
{{- define "twinstream.check" -}}
{{- $redis := .Values.redis -}}
{{- if and $redis.url $redis.existingSecret.name -}}
{{- fail "redis: give url or existingSecret.name, not both" -}}
{{- end -}}
{{- if not (or $redis.url $redis.existingSecret.name) -}}
{{- fail "redis: give url, or existingSecret.name if it holds a password" -}}
{{- end -}}
{{- if not .Values.access.tokenSecret.name -}}
{{- if or .Values.access.tlsSecret .Values.access.basePath -}}
{{- fail "access: tlsSecret and basePath need tokenSecret, without which nobody else is answered" -}}
{{- end -}}
{{- if or .Values.serviceMonitor.enabled .Values.prometheusRule.enabled -}}
{{- fail "serviceMonitor, prometheusRule: need access.tokenSecret, without which nobody can scrape the service" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (not .Values.serviceMonitor.tokenSecret.name) -}}
{{- fail "serviceMonitor: needs tokenSecret, a secret with one token of the role read" -}}
{{- end -}}
{{- range $name, $_ := .Values.trials -}}
{{- if not (hasKey $.Values.comparisons $name) -}}
{{- fail (printf "trials: %s is tried beside a comparison of that name, and comparisons has none" $name) -}}
{{- end -}}
{{- end -}}
{{- with .Values.api.autoscaling -}}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- fail "api.autoscaling: minReplicas is more than maxReplicas" -}}
{{- end -}}
{{- if and .enabled (not (dig "requests" "cpu" "" $.Values.api.resources)) -}}
{{- fail "api.autoscaling: needs api.resources.requests.cpu, of which it takes its share" -}}
{{- end -}}
{{- end -}}
{{- end -}}

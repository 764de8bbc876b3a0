{{/* The name of all objects of a release, at most 50 characters, so that suffixes fit. */}}
{{- define "twinstream.name" -}}
{{- if contains "twinstream" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-twinstream" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of the StatefulSet, at most 52 characters: its controller adds eleven in a label of each pod. */}}
{{- define "twinstream.matcher" -}}
{{- $name := include "twinstream.name" . -}}
{{- if gt (len $name) 44 -}}
{{- $name = printf "%s-%s" ($name | trunc 35 | trimSuffix "-") ($name | sha256sum | trunc 8) -}}
{{- end -}}
{{- $name -}}-matcher
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

{{/* The name of an `image` of the values, of the chart with the context `root`. */}}
{{- define "twinstream.image" -}}
{{- if .image.digest -}}
{{- printf "%s@%s" .image.repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" .image.repository (.image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The roles of the pods: with Spark there are no matchers, since its jobs compare. */}}
{{- define "twinstream.roles" -}}
{{ ternary "api" "api matcher" .Values.spark.enabled }}
{{- end -}}

{{/* The name of the job of a comparison, at most 50 characters, so that a driver's pod and Service fit. */}}
{{- define "twinstream.job" -}}
{{- $name := printf "%s-%s" (include "twinstream.name" .root) .comparison -}}
{{- if gt (len $name) 50 -}}
{{- $name = printf "%s-%s" ($name | trunc 41 | trimSuffix "-") ($name | sha256sum | trunc 8) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- define "twinstream.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "twinstream.noRights" -}}
allowPrivilegeEscalation: false
runAsNonRoot: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Where pods of the values run. */}}
{{- define "twinstream.scheduling" -}}
{{- range $name := list "priorityClassName" "nodeSelector" "tolerations" -}}
{{- with get $ $name }}
{{ dict $name . | toYaml }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A volume with one file of an existing secret, or with all of them if it names no key. */}}
{{- define "twinstream.secret" -}}
- name: {{ .volume }}
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
    {{- with .key }}
    items:
      - {key: {{ . }}, path: {{ . }}}
    {{- end }}
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
{{- if .Values.spark.enabled -}}
{{- include "twinstream.checkSpark" . -}}
{{- else if gt (int .Values.shards) 64 -}}
{{- fail "shards: matchers share a comparison in at most 64; beyond that let Spark carry it (spark.enabled)" -}}
{{- else if not (or $redis.url $redis.existingSecret.name) -}}
{{- fail "redis: give url, or existingSecret.name if it holds a password" -}}
{{- end -}}
{{- if and $redis.url $redis.existingSecret.name -}}
{{- fail "redis: give url or existingSecret.name, not both" -}}
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

{{/* What no schema can say of Spark. */}}
{{- define "twinstream.checkSpark" -}}
{{- $values := .Values -}}
{{- $spark := $values.spark -}}
{{- range $key := list "results" "checkpoint" -}}
{{- if not (get $spark $key) -}}
{{- fail (printf "spark: needs %s, of which values.yaml tells" $key) -}}
{{- end -}}
{{- end -}}
{{- if or $values.redis.url $values.redis.existingSecret.name -}}
{{- fail "spark: jobs keep their state in spark.checkpoint; take redis out, or install matchers as a release of their own" -}}
{{- end -}}
{{- $ofMatchers := dict "trials" $values.trials "memoryLimit" $values.memoryLimit -}}
{{- $_ := set $ofMatchers "readFrom" (ne $values.readFrom "earliest") -}}
{{- range $name, $given := $ofMatchers -}}
{{- if $given -}}
{{- fail (printf "spark: %s is for matchers, and a Spark job has none; take it out" $name) -}}
{{- end -}}
{{- end -}}
{{- $cores := mul $spark.executor.instances $spark.executor.cores -}}
{{- if lt (int $values.shards) (int $cores) -}}
{{- fail (printf "shards: %d leave some of the %d cores of spark.executor idle; give four for each core" (int $values.shards) $cores) -}}
{{- end -}}
{{- range $name, $_ := $spark.resets -}}
{{- if not (hasKey $values.comparisons $name) -}}
{{- fail (printf "spark.resets: comparisons has no %s" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

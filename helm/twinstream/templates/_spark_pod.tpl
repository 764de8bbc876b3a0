{{/*
What the job of a `comparison` wants of a `pod` of Spark, driver or executor; `root` is the context of the chart. A pod
template, which Spark itself reads, so that it needs no webhook of the operator. The driver reads the comparison file and
the settings, and hands them to the executors with their tasks; both read certificates and keys of Kafka as files.
*/}}
{{- define "twinstream.sparkPod" -}}
{{- $values := .root.Values -}}
{{- $driver := eq .pod "driver" -}}
{{- $volumes := list -}}
{{- if $driver -}}
{{- $file := printf "%s.yaml" .comparison -}}
{{- $files := dict "name" (printf "%s-comparisons" (include "twinstream.name" .root)) "items" (list (dict "key" $file "path" $file)) -}}
{{- $volumes = append $volumes (dict "name" "comparisons" "configMap" $files) -}}
{{- range $volume, $secret := dict "settings" $values.kafka.existingSecret "masking" $values.masking.existingSecret -}}
{{- if $secret.name -}}
{{- $volumes = append $volumes (include "twinstream.secret" (dict "volume" $volume "secret" $secret.name "key" $secret.key) | fromYamlArray | first) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $values.kafka.filesSecret -}}
{{- $volumes = append $volumes (include "twinstream.secret" (dict "volume" "kafka" "secret" .) | fromYamlArray | first) -}}
{{- end -}}
metadata:
  {{- with $values.podLabels }}
  labels: {{- toYaml . | nindent 4 }}
  {{- end }}
  annotations:
    # Another comparison file is another job.
    checksum/comparison: {{ get $values.comparisons .comparison | sha256sum }}
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- if not $driver }}
  automountServiceAccountToken: false
  {{- end }}
  enableServiceLinks: false
  securityContext: {{- include "twinstream.podSecurity" . | nindent 4 }}
  {{- with include "twinstream.scheduling" $values | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: spark-kubernetes-{{ .pod }}
      securityContext: {{- include "twinstream.noRights" . | nindent 8 }}
      {{- if $driver }}
      env:
        - name: TWINSTREAM_KAFKA
          value: {{ toJson $values.kafka.properties | quote }}
        {{- with $values.masking.existingSecret }}
        {{- if .name }}
        - name: TWINSTREAM_MASK_KEY_FILE
          value: /etc/twinstream/masking/{{ .key }}
        {{- end }}
        {{- end }}
      {{- end }}
      {{- with $values.spark.envSecret }}
      envFrom:
        - secretRef: {name: {{ . }}}
      {{- end }}
      {{- with $volumes }}
      volumeMounts:
        {{- range . }}
        - {name: {{ .name }}, mountPath: /etc/twinstream/{{ .name }}, readOnly: true}
        {{- end }}
  volumes: {{- toYaml . | nindent 4 }}
      {{- end }}
{{- end -}}

{{/*
The pod of a role: `root` is the context of the chart, `role` api or matcher, `own` the values of that role. Pods of
the API reach Redis alone, and have nothing of Kafka; with Spark they have no Redis, and read its results from Kafka.
*/}}
{{- define "twinstream.pod" -}}
{{- $values := .root.Values -}}
{{- $matcher := eq .role "matcher" -}}
{{- $kafka := or $matcher $values.spark.enabled -}}
metadata:
  labels:
    {{- include "twinstream.roleLabels" . | nindent 4 }}
    {{- with $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # Another comparison file is another pod.
    checksum/comparisons: {{ toJson $values.comparisons | sha256sum }}
    {{- if $values.trials }}
    checksum/trials: {{ toJson $values.trials | sha256sum }}
    {{- end }}
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "twinstream.name" .root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  # Its own bound for a stop is 20 s: last checkpoint, leases handed back, HTTP closed.
  terminationGracePeriodSeconds: 30
  securityContext: {{- include "twinstream.podSecurity" . | nindent 4 }}
  {{- with $values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with include "twinstream.scheduling" $values | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- if $values.affinity }}
  affinity: {{- toYaml $values.affinity | nindent 4 }}
  {{- else }}
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector:
              matchLabels: {{- include "twinstream.roleSelector" . | nindent 16 }}
  {{- end }}
  containers:
    - name: twinstream
      image: {{ include "twinstream.image" (dict "root" .root "image" $values.image) }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args:
        - serve
        - --role={{ .role }}
        {{- range $name, $_ := $values.comparisons }}
        - /etc/twinstream/comparisons/{{ $name }}.yaml
        {{- end }}
        {{- range $name, $_ := $values.trials }}
        - --trial=/etc/twinstream/comparisons/{{ $name }}.trial.yaml
        {{- end }}
        {{- if and $kafka $values.kafka.existingSecret.name }}
        - --config=/etc/twinstream/settings/{{ $values.kafka.existingSecret.key }}
        {{- end }}
      env:
        {{- if $values.spark.enabled }}
        - name: TWINSTREAM_RESULTS
          value: {{ $values.spark.results | quote }}
        {{- else }}
        - name: TWINSTREAM_REDIS
          {{- if $values.redis.existingSecret.name }}
          valueFrom:
            secretKeyRef: {{- toYaml $values.redis.existingSecret | nindent 14 }}
          {{- else }}
          value: {{ $values.redis.url | quote }}
          {{- end }}
        {{- end }}
        - name: TWINSTREAM_BIND
          value: {{ ternary "0.0.0.0:8080" "127.0.0.1:8080" (ne $values.access.tokenSecret.name "") | quote }}
        {{- with $values.access }}
        {{- if .tokenSecret.name }}
        - name: TWINSTREAM_TOKEN_FILE
          value: /etc/twinstream/access/{{ .tokenSecret.key }}
        {{- end }}
        {{- if .tlsSecret }}
        - name: TWINSTREAM_TLS_CERT
          value: /etc/twinstream/tls/tls.crt
        - name: TWINSTREAM_TLS_KEY
          value: /etc/twinstream/tls/tls.key
        {{- end }}
        {{- if .basePath }}
        - name: TWINSTREAM_BASE_PATH
          value: {{ .basePath | quote }}
        {{- end }}
        {{- end }}
        - name: TWINSTREAM_SHARDS
          value: {{ $values.shards | quote }}
        - name: TWINSTREAM_BROKERS
          value: {{ $values.kafka.brokers | quote }}
        {{- if not $matcher }}
        {{- with $values.kafka.recordUrl }}
        - name: TWINSTREAM_RECORD_URL
          value: {{ . | quote }}
        {{- end }}
        {{- end }}
        {{- if $matcher }}
        - name: TWINSTREAM_READ_FROM
          value: {{ $values.readFrom | quote }}
        {{- if $values.masking.existingSecret.name }}
        - name: TWINSTREAM_MASK_KEY_FILE
          value: /etc/twinstream/masking/{{ $values.masking.existingSecret.key }}
        {{- end }}
        {{- with $values.memoryLimit }}
        - name: TWINSTREAM_MEMORY_LIMIT
          value: {{ . | quote }}
        {{- end }}
        {{- end }}
        {{- if and $kafka $values.kafka.properties }}
        - name: TWINSTREAM_KAFKA
          value: {{ toJson $values.kafka.properties | quote }}
        {{- end }}
      {{- if $values.access.tokenSecret.name }}
      ports:
        - {name: http, containerPort: 8080, protocol: TCP}
      {{- end }}
      # One who answers is not started anew, whatever else is wrong. An API pod is ready when it answers, be it that
      # nothing is known; a matcher pod when it owns its comparisons or stands by, and reaches what it needs.
      startupProbe:
        {{- include "twinstream.probe" (dict "root" .root "path" "/healthz") | nindent 8 }}
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 60
      livenessProbe:
        {{- include "twinstream.probe" (dict "root" .root "path" "/healthz") | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        {{- include "twinstream.probe" (dict "root" .root "path" "/readyz") | nindent 8 }}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      securityContext:
        readOnlyRootFilesystem: true
        {{- include "twinstream.noRights" . | nindent 8 }}
      resources: {{- toYaml .own.resources | nindent 8 }}
      volumeMounts:
        - name: comparisons
          mountPath: /etc/twinstream/comparisons
          readOnly: true
        {{- if and $kafka $values.kafka.existingSecret.name }}
        - name: settings
          mountPath: /etc/twinstream/settings
          readOnly: true
        {{- end }}
        {{- if and $matcher $values.masking.existingSecret.name }}
        - name: masking
          mountPath: /etc/twinstream/masking
          readOnly: true
        {{- end }}
        {{- if and $kafka $values.kafka.filesSecret }}
        - name: kafka
          mountPath: /etc/twinstream/kafka
          readOnly: true
        {{- end }}
        {{- if $values.access.tokenSecret.name }}
        - name: access
          mountPath: /etc/twinstream/access
          readOnly: true
        {{- end }}
        {{- if $values.access.tlsSecret }}
        - name: tls
          mountPath: /etc/twinstream/tls
          readOnly: true
        {{- end }}
        - name: tmp
          mountPath: /tmp
  volumes:
    - name: comparisons
      configMap:
        name: {{ include "twinstream.name" .root }}-comparisons
    {{- with $values.kafka.existingSecret }}
    {{- if and $kafka .name }}
    {{- include "twinstream.secret" (dict "volume" "settings" "secret" .name "key" .key) | nindent 4 }}
    {{- end }}
    {{- end }}
    {{- with $values.masking.existingSecret }}
    {{- if and $matcher .name }}
    {{- include "twinstream.secret" (dict "volume" "masking" "secret" .name "key" .key) | nindent 4 }}
    {{- end }}
    {{- end }}
    {{- if and $kafka $values.kafka.filesSecret }}
    {{- include "twinstream.secret" (dict "volume" "kafka" "secret" $values.kafka.filesSecret) | nindent 4 }}
    {{- end }}
    {{- with $values.access.tokenSecret.name }}
    # The whole folder, not one file of it, so that a token that is given or withdrawn reaches the pod.
    {{- include "twinstream.secret" (dict "volume" "access" "secret" .) | nindent 4 }}
    {{- end }}
    {{- with $values.access.tlsSecret }}
    {{- include "twinstream.secret" (dict "volume" "tls" "secret" .) | nindent 4 }}
    {{- end }}
    - name: tmp
      emptyDir:
        sizeLimit: 64Mi
{{- end -}}
